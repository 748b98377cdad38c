/** Lists: order, keyset pages in both directions, boundedness told truly, versions of one snapshot. */
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import fc from 'fast-check';
import type { Field, Scalar } from '../../src/model/field.ts';
import { always, type Filter, type Sort } from '../../src/model/filter.ts';
import { compareText, matches, memberAt } from '../../src/model/matches.ts';
import type { NextRow, Row, Store } from '../../src/store/store.ts';
import type { Bench } from './engine.ts';
import {
  byId,
  categories,
  commitAll,
  fields,
  idsOn,
  matchable,
  put,
  remove,
  things,
  walk,
} from './fixture.ts';

const sortable: readonly Field[] = [
  fields.price,
  fields.name,
  fields.stock,
  fields.live,
  fields.createdAt,
  fields.owner,
  fields.categoryId,
  fields.city,
];
const direction = fc.constantFrom('asc' as const, 'desc' as const);
const sortArbitrary: fc.Arbitrary<readonly Sort[]> = fc
  .tuple(
    fc.uniqueArray(fc.constantFrom(...sortable), { maxLength: 3 }),
    fc.array(direction, { minLength: 4, maxLength: 4 }),
    fc.boolean(),
  )
  .map(([keys, directions, uniform]) =>
    [...keys, fields.id].map((field, index) => ({
      field,
      direction: directions[uniform ? 0 : index] ?? 'asc',
    })),
  );
const filterArbitrary: fc.Arbitrary<Filter> = fc.constantFrom<Filter>(
  always,
  always,
  { op: 'eq', field: fields.categoryId, value: 'c1' },
  { op: 'eq', field: fields.categoryId, value: null },
  { op: 'eq', field: fields.live, value: true },
  { op: 'eq', field: fields.name, value: 'b' },
  { op: 'gte', field: fields.price, value: 2 },
  { op: 'lt', field: fields.price, value: 3 },
  {
    op: 'and',
    filters: [
      { op: 'eq', field: fields.categoryId, value: 'c1' },
      { op: 'gt', field: fields.price, value: 1 },
    ],
  },
  { op: 'ne', field: fields.name, value: 'b' },
  { op: 'eq', field: fields.sku, value: 'sku 3' },
  { op: 'eq', field: fields.id, value: 'row 005' },
  { op: 'never' },
);

/** What a list asks, and how a title names it. */
type ListCase = readonly [what: string, filter: Filter, sort: readonly Sort[]];

const bounded: readonly ListCase[] = [
  ['all by id', always, order([fields.id], 'asc')],
  ['all by id, descending', always, order([fields.id], 'desc')],
  ['all by an indexed field', always, order([fields.price, fields.id], 'asc')],
  ['all by an indexed field, descending', always, order([fields.price, fields.id], 'desc')],
  ['all by two indexed fields', always, order([fields.name, fields.stock, fields.id], 'desc')],
  ['all by a column with an index', always, order([fields.createdAt, fields.id], 'desc')],
  [
    'an equal prefix by the rest',
    { op: 'eq', field: fields.categoryId, value: 'c1' },
    order([fields.price, fields.id], 'desc'),
  ],
  [
    'an equal null prefix by the rest',
    { op: 'eq', field: fields.categoryId, value: null },
    order([fields.price, fields.id], 'asc'),
  ],
  [
    'a range of the sort key',
    { op: 'gt', field: fields.price, value: 1 },
    order([fields.price, fields.id], 'asc'),
  ],
  ['an equal field by id', { op: 'eq', field: fields.live, value: true }, order([fields.id], 'asc')],
  [
    'a unique value by anything',
    { op: 'eq', field: fields.sku, value: 'sku 3' },
    order([fields.city, fields.id], 'asc'),
  ],
  [
    'one id by anything',
    { op: 'eq', field: fields.id, value: 'row 005' },
    order([fields.city, fields.id], 'asc'),
  ],
];

const unbounded: readonly ListCase[] = [
  ['a sort without an index', always, order([fields.city, fields.id], 'asc')],
  ['a filter without an index', { op: 'eq', field: fields.city, value: 'city 1' }, byId],
  [
    'a filter that only the first key of an index serves, by another',
    { op: 'eq', field: fields.name, value: 'b' },
    order([fields.price, fields.id], 'asc'),
  ],
  [
    'a sort key with two bounds on one side',
    {
      op: 'and',
      filters: [
        { op: 'gt', field: fields.price, value: 0 },
        { op: 'and', filters: [{ op: 'gte', field: fields.price, value: 2 }] },
      ],
    },
    order([fields.price, fields.id], 'asc'),
  ],
  ['a search', { op: 'search', terms: ['a'] }, byId],
  ['a negation', { op: 'not', filter: { op: 'eq', field: fields.live, value: true } }, byId],
  [
    'an indexed sort with a filter beside it',
    { op: 'gt', field: fields.stock, value: 0 },
    order([fields.price, fields.id], 'asc'),
  ],
];

/** The rows that lists are asked of, and how they should be listed. */
type Sample = {
  readonly store: () => Store;
  /** The ids of the rows that the filter passes, in the order of the sort. */
  readonly sorted: (filter: Filter, sort: readonly Sort[]) => readonly string[];
};

/** Lists walked at random, from end to end. test/full/stores/contract.test.ts walks six times as many. */
const fewWalks = 40;

export function pageTests(bench: Bench): void {
  const sample = sampleOf(bench);
  walkTests(sample, fewWalks);
  rowTests(sample);
  positionTests(bench, sample);
  ownerTests(sample);
  boundTests(sample);
  snapshotTests(bench);
  refusalTests(bench);
}

export function randomPageTests(bench: Bench, walks: number): void {
  walkTests(sampleOf(bench), walks);
}

/** Loads the sample before the tests of the topic. */
function sampleOf({ store }: Bench): Sample {
  const rows = new Map<string, NextRow>();

  before(async () => {
    await commitAll(store(), put(categories, 'c1', {}), put(categories, 'c2', { name: 'two' }));
    for (let index = 0; index < 120; index += 1) {
      const id = `row ${String((index * 53) % 120).padStart(3, '0')}`;
      const body: Record<string, unknown> = { sku: `sku ${index}` };
      if (index % 3 !== 0) body.price = [null, 1, 2, 2.5, 2 ** 55][index % 5];
      if (index % 4 !== 0) body.name = ['a', 'b', '😀', '\uffff'][(index >> 2) % 4];
      if (index % 7 !== 0) body.stock = index % 3;
      if (index % 5 !== 0) body.live = index % 2 === 0;
      if (index % 2 !== 0) body.categoryId = index % 6 === 1 ? 'c2' : 'c1';
      if (index % 8 === 0) body.address = { city: `city ${index % 3}` };
      const deletedAt = index % 17 === 16 ? 1 : null;
      const owner = index % 3 === 1 ? `usr_${index % 4}` : null;
      const change = put(things, id, body, undefined, {
        deletedAt,
        owner,
        createdAt: 1_700_000_000_000 + (index % 9),
      });
      await commitAll(store(), change);
      if (change.next !== null && deletedAt === null) rows.set(id, change.next);
    }
  });

  function sorted(filter: Filter, sort: readonly Sort[]): readonly string[] {
    const kept = [...rows].filter(([id, row]) => matches(filter, matchable(row, id)));
    return kept.sort((left, right) => compareRows(left, right, sort)).map(([id]) => id);
  }

  return { store, sorted };
}

/** All pages from one end to the other. */
function walkTests({ store, sorted }: Sample, walks: number): void {
  test('a read that may take long is not begun for a client that has left before its turn', async () => {
    const filter: Filter = { op: 'like', field: fields.city, pattern: '%s' };
    let isGone = false;
    const client = {
      name: 'ada',
      get isGone() {
        return isGone;
      },
    };
    const plan = store().plan({ table: 'things', filter, sort: byId, limit: 5 });
    await plan.page({ from: 'start' }, client);
    isGone = true;
    const left = { name: 'StoreUnavailable', message: /the client has left/ };
    await assert.rejects(async () => plan.page({ from: 'start' }, client), left);
    await assert.rejects(async () => store().count('things', filter, client), left);
    assert.ok((await store().count('things', filter, 'ada')) >= 0);
  });

  test('pages through any sort forwards and backwards, over ties, nulls and mixed directions', async () => {
    await fc.assert(
      fc.asyncProperty(
        sortArbitrary,
        filterArbitrary,
        fc.integer({ min: 1, max: 130 }),
        async (sort, filter, limit) => {
          const wanted = sorted(filter, sort);
          const plan = store().plan({ table: 'things', filter, sort, limit });
          const forwards = await walk(plan, 'after');
          assert.deepEqual(forwards.flatMap(idsOn), wanted);
          for (const page of forwards.slice(0, -1)) assert.equal(page.docs.length, limit);
          const last = forwards.at(-1)?.last;
          if (last === null || last === undefined) return;
          const backwards = await walk(plan, 'before', last);
          assert.deepEqual([...backwards].reverse().flatMap(idsOn), wanted.slice(0, -1));
          const middle = forwards[forwards.length >> 1];
          if (middle?.first === null || middle?.first === undefined) return;
          const before = await plan.page({ from: 'before', key: middle.first });
          const at = wanted.indexOf(idsOn(middle)[0] ?? '');
          assert.deepEqual(idsOn(before), wanted.slice(Math.max(0, at - limit), at));
          assert.equal(before.more, at > limit);
        },
      ),
      { numRuns: walks },
    );
  });
}

/** Whole rows, which the program reads for itself. */
function rowTests({ store, sorted }: Sample): void {
  const ids = (rows: readonly Row[]) => rows.map(({ id }) => id);

  test('reads whole rows along any bounded plan, as pages of it are', async () => {
    for (const [what, filter, sort] of bounded) {
      const plan = store().plan({ table: 'things', filter, sort, limit: 50 });
      const wanted = sorted(filter, sort);
      assert.deepEqual(ids(await plan.rows({ from: 'start' })), wanted.slice(0, 50), what);
      assert.deepEqual(ids(await plan.rows({ from: 'start' }, 7)), wanted.slice(0, 7), what);
      assert.deepEqual(ids(await plan.rows({ from: 'start' }, 0)), [], what);
      const { last } = await store()
        .plan({ table: 'things', filter, sort, limit: 20 })
        .page({ from: 'start' });
      if (last === null) continue;
      const at = Math.min(20, wanted.length);
      assert.deepEqual(ids(await plan.rows({ from: 'after', key: last }, 9)), wanted.slice(at, at + 9), what);
      const before = await plan.rows({ from: 'before', key: last }, 5);
      assert.deepEqual(ids(before), wanted.slice(Math.max(0, at - 6), at - 1), what);
    }
  });

  test('reads a row of a plan as it is read by id', async () => {
    const sort = order([fields.price, fields.id], 'desc');
    const rows = await store()
      .plan({ table: 'things', filter: always, sort, limit: 200 })
      .rows({ from: 'start' });
    assert.ok(rows.length > 100);
    for (const row of rows) assert.deepEqual(row, await store().read('things', row.id));
  });

  test('finds what is due of a queue, without what is not: null, later, and of others', async () => {
    const filter: Filter = {
      op: 'and',
      filters: [
        { op: 'eq', field: fields.categoryId, value: 'c1' },
        { op: 'lte', field: fields.price, value: 2 },
      ],
    };
    const sort = order([fields.price, fields.id], 'asc');
    const plan = store().plan({ table: 'things', filter, sort, limit: 100 });
    assert.equal(plan.bounded, true);
    const wanted = sorted(filter, sort);
    assert.ok(wanted.length > 3);
    assert.deepEqual(ids(await plan.rows({ from: 'start' })), wanted);
  });

  test('gives no rows where none can be, and refuses them of a plan that is not bounded', async () => {
    const none = store().plan({ table: 'things', filter: { op: 'never' }, sort: byId, limit: 5 });
    assert.deepEqual(await none.rows({ from: 'start' }), []);
    const scan = store().plan({
      table: 'things',
      filter: { op: 'search', terms: ['a'] },
      sort: byId,
      limit: 5,
    });
    await assert.rejects(async () => scan.rows({ from: 'start' }), RangeError);
    const all = store().plan({ table: 'things', filter: always, sort: byId, limit: 5 });
    for (const limit of [-1, 1.5, Number.NaN])
      await assert.rejects(async () => all.rows({ from: 'start' }, limit), RangeError);
  });
}

/** The heads of the rows of a page. */
function ownerTests({ store, sorted }: Sample): void {
  test('gives the owners and revisions of the documents where they are asked for, in each direction', async () => {
    for (const keys of [
      [fields.id],
      [fields.price, fields.id],
      [fields.owner, fields.id],
      [fields.city, fields.id],
    ]) {
      const sort = order(keys, 'asc');
      const plan = store().plan({
        table: 'things',
        filter: always,
        sort,
        limit: 30,
        bytesMax: 4000,
        heads: true,
      });
      const forwards = await walk(plan, 'after');
      const backwards = await walk(plan, 'before', forwards.at(-1)?.last ?? []);
      assert.deepEqual(forwards.flatMap(idsOn), sorted(always, sort));
      for (const page of [...forwards, ...backwards]) {
        const rows = await Promise.all(idsOn(page).map((id) => store().read('things', id)));
        assert.deepEqual(
          page.heads,
          rows.map((row) => ({ owner: row?.owner, rev: row?.rev })),
        );
      }
      const without = await store()
        .plan({ table: 'things', filter: always, sort, limit: 30 })
        .page({ from: 'start' });
      assert.equal(without.heads, undefined);
    }
  });
}

/** Pages from an offset, from a key, and of nothing. */
function positionTests({ fresh }: Bench, { store, sorted }: Sample): void {
  test('starts a page at an offset', async () => {
    for (const sort of [byId, [{ field: fields.price, direction: 'desc' as const }, ...byId]]) {
      const wanted = sorted(always, sort);
      const plan = store().plan({ table: 'things', filter: always, sort, limit: 10 });
      for (const offset of [0, 5, wanted.length - 3, wanted.length, 5000]) {
        const page = await plan.page({ from: 'offset', offset });
        assert.deepEqual(idsOn(page), wanted.slice(offset, offset + 10));
        assert.equal(page.more, offset + 10 < wanted.length);
      }
    }
  });

  test('goes on from a key whose row is gone', async () => {
    const sort: readonly Sort[] = [{ field: fields.price, direction: 'asc' }, ...byId];
    const opened = await fresh();
    const revs = new Map<string, number>();
    for (const id of ['a', 'b', 'c', 'd'])
      revs.set(id, await commitAll(opened.store, put(things, id, { price: 1 })));
    const plan = opened.store.plan({ table: 'things', filter: always, sort, limit: 2 });
    const first = await plan.page({ from: 'start' });
    await commitAll(opened.store, remove(things, 'b', revs.get('b') ?? 0));
    assert.deepEqual(idsOn(await plan.page({ from: 'after', key: first.last ?? [] })), ['c', 'd']);
    assert.deepEqual(idsOn(await plan.page({ from: 'before', key: first.last ?? [] })), ['a']);
  });

  test('answers an empty page with no keys, nothing more, and a version', async () => {
    const filters: readonly Filter[] = [
      { op: 'eq', field: fields.price, value: 77 },
      { op: 'eq', field: fields.city, value: 'nowhere' },
      { op: 'never' },
    ];
    for (const filter of filters) {
      const { docs, first, last, more, version } = await store()
        .plan({ table: 'things', filter, sort: byId, limit: 5 })
        .page({ from: 'start' });
      assert.deepEqual({ docs, first, last, more }, { docs: [], first: null, last: null, more: false });
      assert.equal(version, await store().version('things'));
    }
  });
}

/** Which lists cost no more than their page. */
function boundTests({ store, sorted }: Sample): void {
  for (const [what, filter, sort] of bounded) {
    test(`bounds ${what}`, async () => {
      const plan = store().plan({ table: 'things', filter, sort, limit: 7 });
      assert.equal(plan.bounded, true);
      assert.deepEqual((await walk(plan, 'after')).flatMap(idsOn), sorted(filter, sort));
    });
  }

  for (const [what, filter, sort] of unbounded) {
    test(`does not claim to bound ${what}`, () => {
      assert.equal(store().plan({ table: 'things', filter, sort, limit: 7 }).bounded, false);
    });
  }
}

/** A page and its version belong together. */
function snapshotTests({ fresh }: Bench): void {
  test('reads a page and its version from one snapshot while units are committed', async () => {
    const opened = await fresh();
    const plans = [byId, [{ field: fields.city, direction: 'asc' as const }, ...byId]].map((sort) =>
      opened.store.plan({ table: 'things', filter: always, sort, limit: 1000 }),
    );
    const seen = new Map<string, number>();
    let writing = true;
    const writer = (async () => {
      // Until enough of it has been seen, as 300 commits may take no longer than a few pages.
      for (let index = 0; index < 300 || (seen.size <= 10 && index < 5000); index += 1)
        await commitAll(opened.store, put(things, `w ${index}`, {}));
      writing = false;
    })();
    while (writing) {
      for (const plan of plans) {
        const { version, docs } = await plan.page({ from: 'start' });
        assert.equal(docs.length, seen.get(version) ?? docs.length, 'one version, one content');
        seen.set(version, docs.length);
      }
      await new Promise((resolve) => setImmediate(resolve));
    }
    await writer;
    assert.ok(seen.size > 10);
  });
}

/** Positions that no page gave. */
function refusalTests({ store }: Bench): void {
  test('refuses a position with too few or too many values', async () => {
    const plan = store().plan({ table: 'things', filter: always, sort: byId, limit: 7 });
    for (const key of [[], ['a', 'b']]) {
      await assert.rejects(async () => plan.page({ from: 'after', key }), RangeError);
    }
  });
}

function order(keys: readonly Field[], way: 'asc' | 'desc'): readonly Sort[] {
  return keys.map((field) => ({ field, direction: way }));
}

function compareRows(
  left: readonly [string, NextRow],
  right: readonly [string, NextRow],
  sort: readonly Sort[],
): number {
  for (const { field, direction: way } of sort) {
    const by = compareScalars(scalarAt(left, field), scalarAt(right, field));
    if (by !== 0) return way === 'asc' ? by : -by;
  }
  return 0;
}

function scalarAt([id, row]: readonly [string, NextRow], field: Field): Scalar {
  if (field.column === 'id') return id;
  if (field.column === 'owner') return row.owner;
  return (memberAt(JSON.parse(row.doc), field.path) ?? null) as Scalar;
}

function compareScalars(left: Scalar, right: Scalar): number {
  if (left === null || right === null) return Number(left !== null) - Number(right !== null);
  if (typeof left === 'string') return compareText(left, String(right));
  return Number(left) - Number(right);
}
