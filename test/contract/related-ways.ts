/**
 * Lists under a condition on rows that references name, by how many rows are named and how many refer to them: an engine may begin with
 * those rows where they are few, and finds the same rows in the same order however it reads.
 */
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import type { Filter, Sort } from '../../src/model/filter.ts';
import { compareText } from '../../src/model/matches.ts';
import type { Change, Position, Store } from '../../src/store/store.ts';
import { roundsOf } from '../harness/rounds.ts';
import type { Bench } from './engine.ts';
import { byId, categories, commitAll, fields, idsOf, idsOn, put, rowAt, things, walk } from './fixture.ts';

/** Each category above others, with the number of these, and that of things of each of them. */
const groups = {
  none: [0, 0],
  empty: [3, 0],
  few: [5, 7],
  'edge of things': [4, 128],
  'past the edge of things': [3, 171],
  'edge of categories': [64, 2],
  'past the edge of categories': [65, 2],
  thousands: [10, 411],
} as const satisfies Readonly<Record<string, readonly [categories: number, things: number]>>;
type Group = keyof typeof groups;

type Thing = { readonly id: string; readonly price: number | undefined; readonly live: boolean };

type Made = ReadonlyMap<string, readonly Thing[]>;

export function relatedWaysTests(bench: Bench): void {
  const all = new Map<string, readonly Thing[]>();
  before(() => seed(bench.store(), all));
  for (const group of Object.keys(groups) as Group[]) groupTest(bench, all, group);
  firstRowsTest(bench, all);
  octetTest(bench, all);
  settledTest(bench, all);
  deletedTest(bench);
}

const beneath = (filter: Filter): Filter => ({
  ...{ op: 'related', field: fields.categoryId, table: 'categories' },
  filter,
});
const inGroup = (group: Group): Filter =>
  beneath({ op: 'eq', field: fields.parentId, value: `g${Object.keys(groups).indexOf(group)}` });
/** The same by the name of the category above, over two references. */
const inNamed = (group: Group): Filter =>
  beneath({
    ...{ op: 'related', field: fields.parentId, table: 'categories' },
    filter: { op: 'eq', field: fields.name, value: group },
  });
const isLive: Filter = { op: 'eq', field: fields.live, value: true };
const and = (...filters: readonly Filter[]): Filter => ({ op: 'and', filters });

const byPrice = (direction: Sort['direction']): readonly Sort[] => [
  { field: fields.price, direction },
  { field: fields.id, direction },
];

const allSorts: readonly (readonly Sort[])[] = [
  byId,
  byPrice('desc'),
  [{ field: fields.id, direction: 'desc' }],
  byPrice('asc'),
  [{ field: fields.createdAt, direction: 'asc' }, ...byId],
];

/** The page that neither way reads by an index is a look at every thing. */
const pagesAWalk = roundsOf(3, 6);
/** Of some 850 pages. */
const pagesOfOctets = roundsOf(100, 10_000);
const sorts = allSorts.slice(0, roundsOf(2, allSorts.length));

function expected(
  all: Made,
  group: Group,
  passes: (thing: Thing) => boolean,
  sort: readonly Sort[],
): readonly string[] {
  const ofPrice = (thing: Thing): number => thing.price ?? Number.NEGATIVE_INFINITY;
  const sign = sort[0]?.direction === 'desc' ? -1 : 1;
  const isByPrice = sort[0]?.field === fields.price;
  const order = (one: Thing, other: Thing): number =>
    (isByPrice && ofPrice(one) !== ofPrice(other)
      ? ofPrice(one) - ofPrice(other)
      : compareText(one.id, other.id)) * sign;
  return (all.get(group) ?? [])
    .filter(passes)
    .toSorted(order)
    .map(({ id }) => id);
}

async function seed(store: Store, all: Map<string, readonly Thing[]>): Promise<void> {
  for (const [at, [group, [within, of]]] of Object.entries(groups).entries()) {
    const changes: Change[] = [put(categories, `g${at}`, { name: group })];
    const made: Thing[] = [];
    for (let category = 0; category < within; category += 1) {
      const categoryId = `g${at}-${category}`;
      changes.push(put(categories, categoryId, { parentId: `g${at}` }));
      for (let n = 0; n < of; n += 1) {
        // The ids of all categories are mixed.
        const id = `${String((n * 7919 + category * 104_729) % 100_003).padStart(6, '0')}-${at}-${category}`;
        const thing = { id, price: n % 3 === 0 ? undefined : n % 5, live: n % 2 === 0 };
        made.push(thing);
        // Some are longer than what a thread that must not wait looks into.
        const name = n % 97 === 5 ? 'x'.repeat(5000) : 'short';
        changes.push(put(things, id, { ...thing, categoryId, name }));
      }
    }
    // A unit names what it refers to before it does.
    for (let from = 0; from < changes.length; from += 500)
      await commitAll(store, ...changes.slice(from, from + 500));
    all.set(group, made);
  }
}

function groupTest({ store }: Bench, all: Made, group: Group): void {
  test(`finds and counts every row once, in order, page by page: ${group}`, async () => {
    for (const [what, filter, passes] of [
      ['alone', inGroup(group), () => true],
      ['over two references', inNamed(group), () => true],
      ['twice', and(inGroup(group), inNamed(group)), () => true],
      ['with a condition', and(inGroup(group), isLive), ({ live }: Thing) => live],
    ] as const) {
      assert.equal(await store().count('things', filter), expected(all, group, passes, byId).length, what);
      // The order says nothing of how rows are found.
      for (const sort of what === 'alone' ? sorts : sorts.slice(0, 1)) {
        const wanted = expected(all, group, passes, sort);
        assert.deepEqual(await idsOf(store(), filter, sort), wanted, what);
        const limit = Math.max(7, Math.ceil(wanted.length / pagesAWalk));
        const plan = store().plan({ table: 'things', filter, sort, limit, bytesMax: 1_000_000 });
        const pages = await walk(plan, 'after');
        assert.deepEqual(pages.flatMap(idsOn), wanted, what);
        const last = pages.at(-1)?.last;
        if (last === null || last === undefined) continue;
        const back = await walk(plan, 'before', last);
        assert.deepEqual([...back.toReversed().flatMap(idsOn), wanted.at(-1)], wanted, what);
        for (const offset of [0, 3]) {
          const skipped = await plan.page({ from: 'offset', offset });
          assert.deepEqual(idsOn(skipped), wanted.slice(offset, offset + limit));
          assert.equal(skipped.more, wanted.length > offset + limit);
        }
      }
    }
  });
}

function firstRowsTest({ store }: Bench, all: Made): void {
  test('fills a short page from the first rows of the list where most of them match', async () => {
    for (const [filter, passes] of [
      [inGroup('thousands'), () => true],
      [inNamed('thousands'), () => true],
      [and(inGroup('thousands'), isLive), ({ live }: Thing) => live],
      [and(inGroup('thousands'), { op: 'like', field: fields.name, pattern: 'x%' }), undefined],
    ] as const) {
      for (const sort of sorts) {
        const wanted = passes === undefined ? undefined : expected(all, 'thousands', passes, sort);
        for (const limit of [5, 20, 63, 64]) {
          const plan = store().plan({ table: 'things', filter, sort, limit, bytesMax: 1_000_000 });
          const first = await plan.page({ from: 'start' });
          const second = await plan.page({ from: 'after', key: first.last ?? [] });
          const found = [...idsOn(first), ...idsOn(second)];
          if (second.last !== null) {
            const back = await plan.page({ from: 'before', key: second.last });
            assert.deepEqual(idsOn(back), found.slice(0, -1).slice(-limit));
          }
          if (wanted === undefined) assert.equal(new Set(found).size, found.length);
          else assert.deepEqual(found, wanted.slice(0, 2 * limit));
        }
      }
    }
  });
}

function octetTest({ store }: Bench, all: Made): void {
  test('ends a page at its octets, whichever way it reads', async () => {
    for (const group of ['few', 'thousands'] as const) {
      const plan = store().plan({
        table: 'things',
        filter: inGroup(group),
        sort: byId,
        limit: 50,
        bytesMax: 400,
      });
      const pages = await walk(plan, 'after', undefined, pagesOfOctets);
      const found = pages.flatMap(idsOn);
      const wanted = expected(all, group, () => true, byId);
      assert.deepEqual(found, pages.length < pagesOfOctets ? wanted : wanted.slice(0, found.length));
      for (const { docs } of pages) assert.ok(docs.length < 10, String(docs.length));
    }
  });
}

function settledTest({ store }: Bench, all: Made): void {
  test('decides once for all rows where the filter says which row is named', async () => {
    const at = Object.keys(groups).indexOf('thousands');
    const ofOne: Filter = { op: 'eq', field: fields.categoryId, value: `g${at}-0` };
    const wanted = expected(all, 'thousands', ({ id }) => id.endsWith(`-${at}-0`), byPrice('asc'));
    const first: Position = { from: 'start' };
    for (const [filter, found] of [
      [and(ofOne, inGroup('thousands')), wanted],
      [and(ofOne, inNamed('thousands')), wanted],
      [and(ofOne, inGroup('few')), []],
      [and(ofOne, { op: 'not', filter: inGroup('few') }), wanted],
      [and(ofOne, { op: 'not', filter: inGroup('thousands') }), []],
      [and(ofOne, { op: 'or', filters: [inGroup('few'), inNamed('thousands')] }), wanted],
    ] as const) {
      const plan = store().plan({ table: 'things', filter, sort: byPrice('asc'), limit: 20 });
      assert.equal(plan.bounded, true);
      assert.deepEqual(idsOn(await plan.page(first)), found.slice(0, 20));
      const rows = await plan.rows(first);
      assert.deepEqual(
        rows.map(({ id }) => id),
        found.slice(0, 20),
      );
      assert.equal(await store().count('things', filter), found.length);
    }
  });
}

function deletedTest({ store }: Bench): void {
  test('finds nothing beyond a row that is softly deleted', async () => {
    const table: Store = store();
    const named: Filter = beneath({ op: 'eq', field: fields.name, value: 'a category of its own' });
    const rev = await commitAll(table, put(categories, 'own', { name: 'a category of its own' }));
    const thing = await commitAll(table, put(things, 'own thing', { categoryId: 'own' }));
    const plan = table.plan({ table: 'things', filter: named, sort: byId, limit: 5 });
    assert.deepEqual(idsOn(await plan.page({ from: 'start' })), ['own thing']);
    const row = await rowAt(table, things, 'own thing');
    await commitAll(
      table,
      put(things, 'own thing', { categoryId: 'own' }, row?.rev ?? thing, { deletedAt: 1 }),
    );
    assert.deepEqual(idsOn(await plan.page({ from: 'start' })), []);
    assert.equal(await table.count('things', named), 0);
    await commitAll(table, put(categories, 'own', {}, rev, { deletedAt: 1 }));
    assert.deepEqual(idsOn(await plan.page({ from: 'start' })), []);
  });
}
