/** Filters through a reference: on pages, counts and the log, against `matches`, and the versions that depend on them. */
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import fc from 'fast-check';
import type { Field } from '../../src/model/field.ts';
import type { Filter } from '../../src/model/filter.ts';
import { type Matchable, matches } from '../../src/model/matches.ts';
import type { NextRow, Store, TailEntry } from '../../src/store/store.ts';
import type { Bench } from './engine.ts';
import {
  byId,
  categories,
  commitAll,
  event,
  fields,
  idsOf,
  matchable,
  put,
  rowAt,
  things,
  walk,
} from './fixture.ts';

const names = ['a', 'b', 'ab', 'é', '😀', "a'b"];

/** A condition on the category that a thing names. */
function ofCategory(filter: Filter): Filter {
  return { op: 'related', field: fields.categoryId, table: 'categories', filter };
}

/** A condition on the category above a category. */
function above(filter: Filter): Filter {
  return { op: 'related', field: fields.parentId, table: 'categories', filter };
}

const scalar = fc.constantFrom(...names, null);
const text = fc.constantFrom<Field>(fields.name, fields.owner, fields.id, fields.categoryId, fields.parentId);
const filter: fc.Arbitrary<Filter> = fc.letrec<{ filter: Filter; leaf: Filter }>((tie) => ({
  leaf: fc.oneof(
    fc.record({ op: fc.constantFrom('eq', 'ne', 'gt', 'lte'), field: text, value: scalar }),
    fc.record({ op: fc.constant('in'), field: text, values: fc.array(scalar, { maxLength: 3 }) }),
    fc.record({ op: fc.constant('like'), field: text, pattern: fc.constantFrom('a%', '%', '_') }),
    fc.constantFrom<Filter>({ op: 'always' }, { op: 'never' }),
  ) as fc.Arbitrary<Filter>,
  filter: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    tie('leaf'),
    fc.record({ op: fc.constant('not'), filter: tie('filter') }),
    fc.record({ op: fc.constantFrom('and', 'or'), filters: fc.array(tie('filter'), { maxLength: 3 }) }),
    tie('filter').map(ofCategory),
    tie('filter').map(above),
  ) as fc.Arbitrary<Filter>,
})).filter;

type Sample = {
  readonly store: () => Store;
  readonly rows: ReadonlyMap<string, NextRow>;
  readonly expected: (asked: Filter) => readonly string[];
};

export function relatedTests(bench: Bench): void {
  const sample = sampleOf(bench);
  randomTests(sample, 100);
  chosenTests(sample);
  pageTests(sample);
  versionTests(bench);
  logTests(bench);
}

export function randomRelatedTests(bench: Bench, runs: number): void {
  randomTests(sampleOf(bench), runs);
}

/** Things and categories at random; some categories are beneath others, some are softly deleted. */
function sampleOf({ store }: Bench): Sample {
  const rows = new Map<string, NextRow>();
  const above = new Map<string, NextRow>();
  before(async () => {
    for (let at = 0; at < 24; at += 1) {
      const parentId = at === 0 || at % 4 === 0 ? undefined : `c${at >> 1}`;
      const body = { name: `${names[at % names.length]}${at < names.length ? '' : at}`, parentId };
      const change = put(categories, `c${at}`, body, undefined, { owner: names[at % 5] ?? null });
      await commitAll(store(), change);
      if (change.next !== null) above.set(change.id, change.next);
    }
    for (let at = 0; at < 120; at += 1) {
      const categoryId = [undefined, 7, ...Array.from({ length: 22 }, (_, of) => `c${of}`)][at % 24];
      const id = `row ${String(at).padStart(4, '0')}`;
      const change = put(things, id, { name: names[at % 5], categoryId }, undefined, {
        owner: names[at % 7] ?? null,
      });
      await commitAll(store(), change);
      if (change.next !== null) rows.set(id, change.next);
    }
    // Nothing refers to the last ones, so they may go.
    for (const id of ['c22', 'c23']) {
      const row = await rowAt(store(), categories, id);
      await commitAll(store(), put(categories, id, {}, row?.rev, { deletedAt: 1 }));
      above.delete(id);
    }
  });

  const related = (table: string, id: string): Matchable | undefined => {
    const row = table === 'categories' ? above.get(id) : rows.get(id);
    return row === undefined ? undefined : { ...matchable(row, id), related };
  };
  return {
    store,
    rows,
    expected: (asked) =>
      [...rows].filter(([id, row]) => matches(asked, { ...matchable(row, id), related })).map(([id]) => id),
  };
}

function randomTests({ store, rows, expected }: Sample, numRuns: number): void {
  test('passes exactly the rows that `matches` passes through references, at random', async () => {
    await fc.assert(
      fc.asyncProperty(filter, async (asked) => {
        const wanted = expected(asked);
        assert.deepEqual(await idsOf(store(), asked), wanted, JSON.stringify(asked));
        assert.equal(await store().count('things', asked), wanted.length);
        const dropped = await idsOf(store(), { op: 'not', filter: asked });
        assert.deepEqual([...wanted, ...dropped].sort(), [...rows.keys()]);
      }),
      { numRuns },
    );
  });
}

function chosenTests({ store, expected }: Sample): void {
  const isA: Filter = { op: 'like', field: fields.name, pattern: 'a%' };

  test('looks at the other row in the other table, at every level, also of a table that refers to itself', async () => {
    for (const asked of [
      ofCategory(isA),
      ofCategory(above(isA)),
      ofCategory(above(above(isA))),
      ofCategory({ op: 'and', filters: [isA, { op: 'not', filter: above(isA) }] }),
    ]) {
      const wanted = expected(asked);
      assert.ok(wanted.length > 0 && wanted.length < 120, JSON.stringify(asked));
      assert.deepEqual(await idsOf(store(), asked), wanted);
    }
  });

  test('passes no row by a reference that is absent, no text, or names nothing in the table', async () => {
    const any = ofCategory({ op: 'always' });
    const wanted = expected(any);
    assert.equal(wanted.length, 110);
    assert.deepEqual(await idsOf(store(), any), wanted);
    const elsewhere: Filter = { ...any, table: 'things' } as Filter;
    assert.deepEqual(await idsOf(store(), elsewhere), []);
    const byNumber: Filter = { ...any, field: fields.price } as Filter;
    assert.deepEqual(await idsOf(store(), byNumber), []);
  });
}

function pageTests({ store, expected }: Sample): void {
  test('gives every row once, in order, page by page in both directions', async () => {
    const isA: Filter = { op: 'like', field: fields.name, pattern: 'a%' };
    const owned: Filter = { op: 'eq', field: fields.owner, value: 'b' };
    for (const [asked, sort] of [
      [ofCategory(isA), byId],
      [ofCategory(owned), byId],
      [ofCategory({ op: 'eq', field: fields.id, value: 'c3' }), byId],
      [ofCategory({ op: 'eq', field: fields.name, value: 'b' }), byId],
      [{ op: 'and', filters: [ofCategory(above(isA)), { op: 'ne', field: fields.name, value: 'a' }] }, byId],
    ] as const) {
      const wanted = expected(asked);
      assert.ok(wanted.length > 2);
      const plan = store().plan({ table: 'things', filter: asked, sort, limit: 3 });
      const forth = (await walk(plan, 'after')).flatMap(({ docs }) => docs.map(idIn));
      assert.deepEqual(forth, wanted);
      const end = ['zzz'];
      const back = (await walk(plan, 'before', end)).toReversed().flatMap(({ docs }) => docs.map(idIn));
      assert.deepEqual(back, wanted);
      const skipped = await plan.page({ from: 'offset', offset: 2 });
      assert.deepEqual(skipped.docs.map(idIn), wanted.slice(2, 5));
    }
  });
}

function idIn(doc: string): string {
  return String((JSON.parse(doc) as { readonly id: unknown }).id);
}

function versionTests({ fresh }: Bench): void {
  test('changes the version of a page with each table that the filter looks at, and with no other', async () => {
    const { store } = await fresh();
    await commitAll(store, put(categories, 'top', { name: 'top' }));
    const rev = await commitAll(store, put(categories, 'c', { name: 'old', parentId: 'top' }));
    await commitAll(store, put(things, 't', { categoryId: 'c' }));
    const filters = [
      ofCategory({ op: 'eq', field: fields.name, value: 'old' }),
      ofCategory({ op: 'never' }),
      { op: 'not', filter: ofCategory({ op: 'always' }) },
    ] as const;
    const pages = async () =>
      Promise.all(
        filters.map(async (each) =>
          store.plan({ table: 'things', filter: each, sort: byId, limit: 5 }).page({ from: 'start' }),
        ),
      );
    const first = await pages();
    assert.deepEqual(first[0]?.docs.map(idIn), ['t']);
    await commitAll(store, put(categories, 'other', { name: 'unrelated' }));
    const second = await pages();
    for (const [at, page] of second.entries()) {
      if (at !== 1) assert.notEqual(page.version, first[at]?.version);
    }
    await commitAll(store, put(categories, 'c', { name: 'new' }, rev));
    const third = await pages();
    assert.deepEqual(third[0]?.docs, []);
    assert.notEqual(third[0]?.version, second[0]?.version);
    assert.deepEqual(
      (await pages()).map(({ version }) => version),
      third.map(({ version }) => version),
    );
  });
}

/** Members of the resource in an event: the log has no document but the event's. */
function inEvent(field: Field): Field {
  return { ...field, path: ['data', 'object', ...field.path] };
}

function logTests({ fresh }: Bench): void {
  test('reads the log by rows of another table as they are now, near the head and far from it', async () => {
    const { store } = await fresh();
    const rev = await commitAll(store, put(categories, 'c', { name: 'old' }));
    const told = (id: string, categoryId: string | null) => ({
      ...event(id),
      doc: JSON.stringify({ id, type: 'things.created', data: { object: { categoryId } } }),
    });
    await commitAll(store, told('evt_1', 'c'), told('evt_2', null), told('evt_3', 'gone'));
    const ask = async (name: string): Promise<readonly string[]> => {
      const asked: Filter = {
        op: 'related',
        field: inEvent(fields.categoryId),
        table: 'categories',
        filter: { op: 'eq', field: fields.name, value: name },
      };
      const entries: readonly TailEntry[] = await store.tail({ rev: 0, id: '' }, asked, 100);
      return entries.map(({ id }) => id);
    };
    assert.deepEqual(await ask('old'), ['evt_1']);
    await commitAll(store, put(categories, 'c', { name: 'new' }, rev));
    assert.deepEqual([await ask('old'), await ask('new')], [[], ['evt_1']]);
    for (let at = 0; at < 300; at += 1)
      await commitAll(store, event(`evt_far_${String(at).padStart(3, '0')}`));
    assert.deepEqual([await ask('old'), await ask('new')], [[], ['evt_1']]);
  });
}
