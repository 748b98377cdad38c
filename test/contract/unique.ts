/** Values that are unique together, with nulls as SQL has them, and without regard to case, the same on both stores. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ignoringCase } from '../../src/model/field.ts';
import { allOf, equals } from '../../src/model/filter.ts';
import { foldedLetters } from '../../src/model/fold-case.ts';
import type { Commit, Store, Table } from '../../src/store/store.ts';
import type { Bench } from './engine.ts';
import { byId, fields, idsOn, put, remove, unit } from './fixture.ts';

const { name, sku, price } = fields;
const folded = ignoringCase(name);
const parts: Table = {
  ...{ name: 'parts', fields: [fields.id, name, sku, price], indexes: [], references: [], searched: false },
  unique: [[sku, price], [folded]],
};
const many = 1000;

const taken = (change: number, ...names: string[]): Commit => ({ outcome: 'taken', change, fields: names });

export function uniqueTests({ fresh }: Bench): void {
  const open = async (): Promise<Store> => (await fresh([parts])).store;
  togetherTests(open);
  caseTests(open);
}

function togetherTests(open: () => Promise<Store>): void {
  test('refuses values that another undeleted row has together, and names all of them', async () => {
    const store = await open();
    await store.commit(
      unit(put(parts, 'a', { sku: 's', price: 1 }), put(parts, 'b', { sku: 's', price: 2 })),
    );
    assert.deepEqual(
      await store.commit(unit(put(parts, 'c', { sku: 's', price: 1 }))),
      taken(0, 'sku', 'price'),
    );
    for (const [id, body] of [
      ['d', { sku: 's' }],
      ['e', { sku: 's', price: null }],
      ['f', { sku: 's', price: '1' }],
      ['g', { price: 1 }],
      ['h', { price: 1 }],
      ['i', { sku: 't', price: 1 }],
    ] as const) {
      assert.equal((await store.commit(unit(put(parts, id, body)))).outcome, 'committed', id);
    }
  });

  test('lets two rows exchange what is unique in one unit, as far as no step of it has a value twice', async () => {
    const store = await open();
    const made = await store.commit(
      unit(put(parts, 'a', { sku: 's', price: 1 }), put(parts, 'b', { name: 'B' })),
    );
    assert.ok(made.outcome === 'committed');
    const { rev } = made;
    const moved = unit(
      remove(parts, 'a', rev),
      put(parts, 'b', { sku: 's', price: 1 }, rev),
      put(parts, 'c', { name: 'b' }),
    );
    assert.equal((await store.commit(moved)).outcome, 'committed');
    const back = unit(put(parts, 'd', { sku: 's', price: 1 }), put(parts, 'e', { sku: 's', price: 1 }));
    assert.deepEqual(await store.commit(back), taken(0, 'sku', 'price'));
  });

  test('finds one row by all of its unique values, at the cost of one', async () => {
    const store = await open();
    await store.commit(
      unit(put(parts, 'a', { sku: 's', price: 1, name: 'Ärmel' }), put(parts, 'b', { sku: 's', price: 2 })),
    );
    for (const filter of [allOf([equals(price, 1), equals(sku, 's')]), equals(folded, 'äRMEL')]) {
      const plan = store.plan({ table: 'parts', filter, sort: byId, limit: 2 });
      assert.ok(plan.bounded);
      assert.equal(plan.way().by, 'one');
      assert.deepEqual(idsOn(await plan.page({ from: 'start' })), ['a']);
    }
    assert.equal(
      store.plan({ table: 'parts', filter: equals(sku, 's'), sort: byId, limit: 2 }).bounded,
      false,
    );
  });

  test(`gives values that ${many} rows want at once to one of them`, async () => {
    const store = await open();
    const commits = await Promise.all(
      Array.from({ length: many }, (_, at) =>
        store.commit(unit(put(parts, `r${at}`, { sku: 's', price: 7, name: at % 2 ? 'Ö' : 'ö' }))),
      ),
    );
    assert.equal(commits.filter(({ outcome }) => outcome === 'committed').length, 1);
    assert.equal(commits.filter(({ outcome }) => outcome === 'taken').length, many - 1);
  });
}

function caseTests(open: () => Promise<Store>): void {
  test('disregards the case of every letter that has a pair, and nothing else', async () => {
    const store = await open();
    const pairs = [...foldedLetters, ['A', 'a'], ['Z', 'z']] as const;
    const upper = pairs.map(([letter], at) => put(parts, `u${at}`, { name: `${at}${letter}x` }));
    assert.equal((await store.commit(unit(...upper))).outcome, 'committed');
    for (const [at, [, letter]] of pairs.entries()) {
      if (at % 40 !== 0 && at < pairs.length - 4) continue;
      const lower = unit(put(parts, 'l', { name: `${at}${letter}X` }));
      assert.deepEqual(await store.commit(lower), taken(0, 'name'), letter);
    }
    const found = await store.count('parts', {
      op: 'or',
      filters: pairs.map(([, letter], at) => equals(folded, `${at}${letter}X`)),
    });
    assert.equal(found, pairs.length);
    const apart = ['é', 'e', 'e\u0301', 'ﬀ', 'ff', 'İ', 'i', '\u212a', 'k', 'ß', 'ss', ' k'];
    const made = unit(...apart.map((text, at) => put(parts, `a${at}`, { name: text })));
    assert.equal((await store.commit(made)).outcome, 'committed');
  });
}
