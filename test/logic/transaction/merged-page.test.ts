/** Lists of a unit that is not committed: each page is the one that the store gives once it is. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import fc from 'fast-check';
import { createOverlay } from '../../../src/logic/transaction/overlay.ts';
import type { Field } from '../../../src/model/field.ts';
import { always, type Filter, type Sort } from '../../../src/model/filter.ts';
import type { Change, ListQuery, Page, Plan, Store } from '../../../src/store/store.ts';
import type { Opened } from '../../contract/engine.ts';
import { commitAll, event, fields, notes, put, suiteTables, things, walk } from '../../contract/fixture.ts';
import { postgresEngine } from '../../contract/postgres-engine.ts';
import { sqliteEngine } from '../../contract/sqlite-engine.ts';
import { roundsOf } from '../../harness/rounds.ts';

const rounds = roundsOf(8, 25);
const rows = 40;
const ids = Array.from({ length: rows }, (_, index) => `row ${String(index).padStart(2, '0')}`);

const body = fc.record(
  {
    name: fc.constantFrom('a', 'b', '😀', '\uffff', null, 7),
    price: fc.constantFrom(null, 1, 2, 2.5),
    live: fc.boolean(),
    address: fc.constantFrom({ city: 'x' }, { city: 'y' }, 'nowhere'),
    tags: fc.constantFrom(['red'], ['red', 'blue'], []),
  },
  { requiredKeys: [] },
);
const write = fc.record({
  id: fc.constantFrom(...ids),
  kind: fc.constantFrom('put', 'put', 'put', 'remove', 'soft'),
  body,
  createdAt: fc.constantFrom(1_700_000_000_000, 1_700_000_000_005, 1_800_000_000_000),
  search: fc.constantFrom('red apple', 'apple', null),
  owner: fc.constantFrom('usr_1', null),
});
type Write = typeof write extends fc.Arbitrary<infer T> ? T : never;

const sortable: readonly Field[] = [fields.name, fields.price, fields.live, fields.createdAt, fields.city];
const sort: fc.Arbitrary<readonly Sort[]> = fc
  .tuple(
    fc.uniqueArray(fc.constantFrom(...sortable), { maxLength: 2 }),
    fc.tuple(fc.boolean(), fc.boolean(), fc.boolean()),
  )
  .map(([keys, ways]) =>
    [...keys, fields.id].map((field, index) => ({ field, direction: ways[index] === true ? 'asc' : 'desc' })),
  );
const filter = fc.constantFrom<Filter>(
  always,
  { op: 'eq', field: fields.name, value: 'a' },
  { op: 'ne', field: fields.name, value: 'a' },
  { op: 'gte', field: fields.price, value: 2 },
  { op: 'gt', field: fields.createdAt, value: '2023-11-14T22:13:20.000Z' },
  { op: 'has', field: fields.tags, value: 'blue' },
  { op: 'search', terms: ['red'] },
  { op: 'eq', field: fields.owner, value: 'usr_1' },
  { op: 'in', field: fields.city, values: ['x', null] },
  { op: 'like', field: fields.name, pattern: 'a*' },
);
const query = fc
  .tuple(
    filter,
    sort,
    fc.integer({ min: 1, max: rows + 10 }),
    fc.option(fc.integer({ min: 50, max: 3000 }), { nil: undefined }),
    fc.integer({ min: 0, max: rows + 10 }),
  )
  .map(([passes, by, limit, bytesMax, offset]) => ({ filter: passes, sort: by, limit, bytesMax, offset }));

async function changeOf(store: Store, { id, kind, ...made }: Write): Promise<Change | undefined> {
  const row = await store.read('things', id);
  if (row === undefined && kind !== 'put') return undefined;
  const expect = row === undefined ? ({ absent: true } as const) : { rev: row.rev };
  const deletedAt = kind === 'soft' ? 5 : null;
  const { next } = put(things, id, made.body, undefined, { ...made, deletedAt });
  return { table: 'things', id, expect, next: kind === 'remove' ? null : next };
}

const shape = ({ docs, more, first, last }: Page) => ({ docs, more, first, last });

/** Each page of the query, from both ends and from an offset. */
async function pagesOf(plan: Plan, offset: number): Promise<unknown> {
  const forwards = await walk(plan, 'after');
  const last = forwards.at(-1)?.last ?? undefined;
  const backwards = last === undefined ? [] : await walk(plan, 'before', last);
  return [...forwards, ...backwards, await plan.page({ from: 'offset', offset })].map(shape);
}

for (const [name, engine] of [
  ['SQLite', sqliteEngine],
  ['PostgreSQL', postgresEngine],
] as const) {
  describe(`a list within a unit on ${name}`, () => {
    let opened: Opened;

    before(async () => {
      opened = await engine(suiteTables);
    });

    after(() => opened.dispose());

    it('is what the store lists after the commit, whatever is written, filtered and sorted', async () => {
      const { store } = opened;
      await fc.assert(
        fc.asyncProperty(
          fc.array(write, { minLength: 1, maxLength: 25 }),
          fc.tuple(query, query, query, query),
          async (writes, queries) => {
            const overlay = createOverlay(store);
            for (const each of writes) {
              const change = await changeOf(overlay.store, each);
              if (change !== undefined)
                await overlay.store.commit({ changes: [change], events: [event(`evt_${each.id}`)] });
            }
            const listed = (from: Store) =>
              Promise.all(
                queries.map(({ offset, bytesMax, ...asked }) => {
                  const octets = bytesMax === undefined ? {} : { bytesMax };
                  const whole: ListQuery = { table: 'things', ...asked, ...octets };
                  return pagesOf(from.plan(whole), offset);
                }),
              );
            const before = await listed(overlay.store);
            const changes: Change[] = [];
            for (const each of overlay.writes()) {
              if (!('kind' in each)) continue;
              const { table, id, expect, next } = each;
              if (next !== null || 'rev' in expect) changes.push({ table, id, expect, next });
            }
            await commitAll(store, ...changes);
            assert.deepEqual(before, await listed(store));
          },
        ),
        { numRuns: rounds },
      );
    });

    it('leaves the lists of other tables as they are', async () => {
      const { store } = opened;
      await commitAll(store, put(notes, 'one', { name: 'n' }));
      const overlay = createOverlay(store);
      const change = put(things, 'other', { name: 'a' });
      await overlay.store.commit({ changes: [change], events: [event('evt_other')] });
      const asked: ListQuery = {
        table: 'notes',
        filter: always,
        sort: [{ field: fields.id, direction: 'asc' }],
        limit: 5,
      };
      assert.deepEqual(
        shape(await overlay.store.plan(asked).page({ from: 'start' })),
        shape(await store.plan(asked).page({ from: 'start' })),
      );
    });
  });
}
