/** What becomes of units by what stands, without a database: the order of refusals, and what accepted units come to. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { netWrites } from '../../../src/store/postgres/commit/flight.ts';
import { type Judgement, judge, Ledger } from '../../../src/store/postgres/commit/judge.ts';
import type { Row, Unit } from '../../../src/store/store.ts';
import { categories, event, nextRow, put, remove, things, unit } from '../../contract/fixture.ts';
import { resolved, tableOf, tables } from './pure.ts';

function row(
  id: string,
  rev: number,
  body: Readonly<Record<string, unknown>> = {},
  deletedAt: number | null = null,
): Row {
  const { doc, owner, createdAt, updatedAt } = nextRow(things, id, body);
  return { id, rev, doc, owner, createdAt, updatedAt, deletedAt };
}

/** The last revision given out is 100. */
function judged(ledger: Ledger, ...units: readonly Unit[]): Judgement {
  return judge(units.map(resolved), ledger, tables, 100);
}

test('accepts what is as expected and says which tables it changes', () => {
  const ledger = new Ledger(tables);
  ledger.addRow(tableOf('things'), row('a', 7));
  const { refusals, touched } = judged(ledger, unit(put(things, 'a', {}, 7)), unit(event('e')));
  assert.deepEqual(refusals, [undefined, undefined]);
  assert.deepEqual(touched, [1, 3]);
});

test('does not count a table as changed by a row that is only expected absent', () => {
  const expected = {
    changes: [{ table: 'things', id: 'x', expect: { absent: true as const }, next: null }],
    events: [],
  };
  const { refusals, touched } = judged(new Ledger(tables), expected);
  assert.deepEqual([refusals, touched], [[undefined], []]);
});

test('lets the first of two changes of one revision win, and shows the second what it made', () => {
  const ledger = new Ledger(tables);
  ledger.addRow(tableOf('things'), row('a', 7));
  const [first, second] = [put(things, 'a', { stock: 1 }, 7), put(things, 'a', { stock: 2 }, 7)];
  const { refusals } = judged(ledger, unit(first), unit(second));
  assert.equal(refusals[0], undefined);
  const refused = refusals[1];
  assert.ok(refused?.outcome === 'superseded');
  assert.equal(refused.current?.rev, 101);
  assert.equal(refused.current?.doc, first.next?.doc);
});

test('takes back everything of a unit that is refused, down to values, counts and events', () => {
  const ledger = new Ledger(tables);
  ledger.addRow(tableOf('things'), row('a', 7, { sku: 'S', categoryId: 'c' }));
  ledger.addHolder(tableOf('things'), 0, ['S'], 'a');
  ledger.addRow(tableOf('categories'), row('c', 3));
  ledger.addNamings(tableOf('categories'), 0, 'c', 1);
  const stale = put(things, 'b', {}, 1);
  const { refusals } = judged(
    ledger,
    unit(remove(things, 'a', 7), remove(categories, 'c', 3), stale, event('e')),
    unit(put(things, 'x', { sku: 'S' })),
    unit(remove(categories, 'c', 3)),
    unit(event('e')),
  );
  assert.deepEqual(refusals, [
    { outcome: 'superseded', change: 2, current: undefined },
    { outcome: 'taken', change: 0, fields: ['sku'] },
    { outcome: 'depended-on', change: 0, table: 'things', field: 'categoryId', count: 1 },
    undefined,
  ]);
});

test('sees what earlier units freed, made and removed', () => {
  const ledger = new Ledger(tables);
  ledger.addRow(tableOf('things'), row('a', 7, { sku: 'S', categoryId: 'c' }));
  ledger.addHolder(tableOf('things'), 0, ['S'], 'a');
  ledger.addRow(tableOf('categories'), row('c', 3));
  ledger.addNamings(tableOf('categories'), 0, 'c', 1);
  const { refusals } = judged(
    ledger,
    unit(put(things, 'a', { sku: 'T' }, 7)),
    unit(put(things, 'b', { sku: 'S' })),
    unit(remove(categories, 'c', 3)),
    unit(put(things, 'd', { categoryId: 'c' })),
    unit(put(categories, 'c', {})),
    unit(put(things, 'd', { categoryId: 'c' })),
  );
  assert.deepEqual(
    refusals.map((refused) => refused?.outcome),
    [undefined, undefined, undefined, 'dangling', undefined, undefined],
  );
});

test('says that a change is stale before that it dangles, is taken or is depended on', () => {
  const ledger = new Ledger(tables);
  ledger.addRow(tableOf('things'), row('a', 7));
  ledger.addHolder(tableOf('things'), 0, ['S'], 'other');
  ledger.addRow(tableOf('categories'), row('c', 3));
  ledger.addNamings(tableOf('categories'), 0, 'c', 1);
  const { refusals } = judged(
    ledger,
    unit(put(things, 'a', { sku: 'S', categoryId: 'nowhere' }, 6)),
    unit(remove(categories, 'c', 2)),
    unit(put(things, 'a', { sku: 'S', categoryId: 'nowhere' }, 7)),
  );
  assert.deepEqual(
    refusals.map((refused) => refused?.outcome),
    ['superseded', 'superseded', 'dangling'],
  );
});

test('lets a row name itself while it is made, and go while it names itself', () => {
  const ledger = new Ledger(tables);
  const { refusals } = judged(ledger, unit(put(categories, 'c', { parentId: 'c' })));
  assert.deepEqual(refusals, [undefined]);
  const standing = new Ledger(tables);
  standing.addRow(tableOf('categories'), row('c', 3, { parentId: 'c' }));
  assert.deepEqual(judged(standing, unit(remove(categories, 'c', 3))).refusals, [undefined]);
});

test('counts an event of a known id as a change after the unit’s changes', () => {
  const ledger = new Ledger(tables);
  ledger.addRow(tableOf('events'), row('e', 5));
  const { refusals } = judged(ledger, unit(put(things, 'a', {}), event('new'), event('e')));
  const refused = refusals[0];
  assert.ok(refused?.outcome === 'superseded' && refused.change === 2 && refused.current?.rev === 5);
});

test('writes each row once: gone rows first, then changed ones in order, then new ones', () => {
  const ledger = new Ledger(tables);
  for (const id of ['a', 'b', 'c']) ledger.addRow(tableOf('things'), row(id, 7));
  const { accepted, refusals } = judged(
    ledger,
    unit(put(things, 'new', {}), remove(things, 'a', 7)),
    unit(put(things, 'a', { name: 'again' })),
    unit(put(things, 'b', {}, 7)),
    unit(remove(things, 'c', 7)),
  );
  assert.deepEqual(refusals, [undefined, undefined, undefined, undefined]);
  const { statements } = tableOf('things');
  const calls = netWrites(accepted, ledger, tables);
  assert.deepEqual(
    calls.map(({ sql }) => sql),
    [statements.remove, statements.update, statements.insert],
  );
  assert.deepEqual(calls[0]?.values.slice(0, 2), [
    ['a', 'c'],
    [7, 7],
  ]);
  assert.deepEqual(calls[1]?.values.slice(2, 5), [['b'], [7], [3]]);
  // The place of each unit, which its revision comes from.
  assert.deepEqual(calls[2]?.values.slice(2, 4), [
    ['new', 'a'],
    [1, 2],
  ]);
});

test('writes nothing for a row that a batch makes and removes again', () => {
  const ledger = new Ledger(tables);
  const made = put(things, 'a', {});
  const { accepted, touched } = judged(ledger, unit(made, remove(things, 'a', 101)));
  assert.deepEqual(touched, [1]);
  assert.deepEqual(netWrites(accepted, ledger, tables), []);
});
