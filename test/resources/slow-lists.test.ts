/** Which lists are noted as slow, by which shape, and what is forgotten (§4.21.7). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { memoryBounds } from '../../src/memory/bounds.ts';
import type { Filter } from '../../src/model/filter.ts';
import { type Read, SlowLists } from '../../src/resources/collection/slow-lists.ts';
import { fields } from '../contract/fixture.ts';

const sort = [{ field: fields.id, direction: 'desc' }] as const;

function listsAt(start = 1_800_000_000_000) {
  let now = start;
  const lists = new SlowLists({ slowListMs: 0, clock: () => now });
  const note = (given: Partial<Read> & { filter?: Filter } = {}) => {
    const { filter = { op: 'always' }, ...read } = given;
    const plan = 'scan;words="Looks at every document."';
    lists.note({ list: 'things', asked: { filter, sort }, plan, durationMs: 5, hasFailed: false, ...read });
  };
  const pass = (ms: number): void => {
    now += ms;
  };
  return { lists, note, pass };
}

test('counts the reads of one shape together, whatever their values', () => {
  const { lists, note } = listsAt();
  for (let value = 0; value < 9; value += 1)
    note({ filter: { op: 'eq', field: fields.name, value: `secret ${value}` }, durationMs: 10 });
  note({ filter: { op: 'eq', field: fields.name, value: 'x' }, durationMs: 300, hasFailed: true });
  const [list, ...others] = lists.list();
  assert.equal(others.length, 0);
  assert.deepEqual(
    [list?.filter, list?.sort, list?.plan, list?.words],
    ['name eq', '-id', 'scan', 'Looks at every document.'],
  );
  assert.deepEqual([list?.count, list?.failures, list?.maxMs], [10, 1, 300]);
  assert.ok((list?.p50Ms ?? 0) >= 10 && (list?.p50Ms ?? 0) < 15, String(list?.p50Ms));
  assert.ok(!JSON.stringify(lists.list()).includes('secret'));
});

test('lists the slowest shapes first, apart by filter, order and plan', () => {
  const { lists, note } = listsAt();
  note({ durationMs: 1 });
  note({ filter: { op: 'has', field: fields.tags, value: 'a' }, durationMs: 50 });
  note({ plan: 'index;words="Walks."', durationMs: 20 });
  const filters: readonly Filter[] = [
    { op: 'eq', field: fields.price, value: 1 },
    { op: 'not', filter: { op: 'search', terms: ['a'] } },
  ];
  note({ filter: { op: 'and', filters }, durationMs: 2 });
  const shown = lists.list().map(({ filter, plan, maxMs }) => [filter, plan, maxMs]);
  assert.deepEqual(shown, [
    ['tags has', 'scan', 50],
    ['', 'index', 20],
    ['(not q and price eq)', 'scan', 2],
    ['', 'scan', 1],
  ]);
});

test('keeps the slowest within its bound, and forgets what was not slow for an hour', () => {
  const { lists, note, pass } = listsAt();
  const { entries } = memoryBounds.slowLists;
  for (let at = 0; at < entries + 20; at += 1) note({ list: `list ${at}`, durationMs: 100 + at });
  assert.equal(lists.list().length, entries);
  assert.equal(lists.list()[0]?.list, `list ${entries + 19}`);
  note({ list: 'faster than all', durationMs: 1 });
  assert.ok(!lists.list().some(({ list }) => list === 'faster than all'));
  pass(3_600_001);
  assert.deepEqual(lists.list(), []);
  note({ list: 'new', durationMs: 1 });
  assert.equal(lists.list().length, 1);
});

test('keeps a bounded text of a long filter', () => {
  const { lists, note } = listsAt();
  const filters = Array.from(
    { length: 256 },
    (_, at): Filter => ({ op: 'eq', field: { ...fields.name, name: `n${at}` }, value: 1 }),
  );
  note({ filter: { op: 'or', filters } });
  assert.ok((lists.list()[0]?.filter.length ?? 0) <= 401);
});
