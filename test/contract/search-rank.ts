/** Orders by the rank of what a search finds: which rank, on pages in both directions, and of how many documents. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { rankFieldOf } from '../../src/model/field.ts';
import type { Filter, Sort } from '../../src/model/filter.ts';
import {
  indexedText,
  rankedCharactersMax,
  rankedMax,
  rankWeights,
} from '../../src/model/search/search-index.ts';
import type { Store, Table } from '../../src/store/store.ts';
import type { Bench } from './engine.ts';
import { byId, fields, idsOn, walk } from './fixture.ts';
import { articles, commit, papers, put, searchFor, searchTables } from './search.ts';

const rank = rankFieldOf(new Map());
const best: readonly Sort[] = [
  { field: rank, direction: 'desc' },
  { field: fields.id, direction: 'desc' },
];

export function rankTests(bench: Bench): void {
  orderTests(bench);
  cursorTests(bench);
  manyTests(bench);
}

type Ranked = { readonly name?: string; readonly tags?: readonly string[]; readonly price?: number };

/** The measure, written a second time from its description. */
function rankOf(table: Table, body: Ranked, filter: Filter): number {
  assert.ok(table.words !== undefined && filter.op === 'search');
  const text = indexedText(table.words, body);
  const start = [...text].slice(0, rankedCharactersMax).join('');
  const length = 300 + Math.trunc((Buffer.byteLength(text) * 9) / 10);
  const headEnds = start.indexOf(' == ');
  return filter.terms
    .map((term) => {
      const at = start.indexOf(term);
      const times = Math.min(100, Math.max(1, start.split(term).length - 1));
      const inHead = at !== -1 && at <= headEnds ? rankWeights.head : 0;
      return inHead + Math.trunc((rankWeights.most * 1000) / (1000 + Math.trunc(length / times)));
    })
    .reduce((sum, one) => sum + one, 0);
}

/** Ids in the order of the rank, then the newest first. */
function expectedOf(table: Table, bodies: ReadonlyMap<string, Ranked>, filter: Filter): readonly string[] {
  return [...bodies]
    .map(([id, body]) => ({ id, rank: rankOf(table, body, filter) }))
    .sort((one, other) => other.rank - one.rank || (one.id < other.id ? 1 : -1))
    .map(({ id }) => id);
}

const first = { from: 'start' } as const;

async function ranked(
  store: Store,
  { name }: Table,
  filter: Filter,
  sort = best,
): Promise<readonly string[]> {
  return idsOn(await store.plan({ table: name, filter, sort, limit: 10_000 }).page(first));
}

const words = ['lamp', 'lamps', 'Lámp', 'chair', 'table', '東京', 'red', 'x'];

/** Documents of 1 to 400 words, the same for every store. */
function bodyOf(seed: number): Ranked {
  const at = (index: number): string => words[(seed * 31 + index * index * 7 + index) % words.length] ?? '';
  const length = 1 + ((seed * 97) % 400);
  const text = Array.from({ length }, (_, index) => at(index)).join(' ');
  return seed % 3 === 0
    ? { tags: [text, 'lamp'], price: seed % 4 }
    : { name: seed % 3 === 1 ? 'A lamp' : `${at(1)} ${at(2)}`, tags: [text, 'lamps lamp'], price: seed % 4 };
}

function orderTests({ fresh }: Bench): void {
  test('a sort by rank is the same in both stores: the first field, occurrences and length decide, then the id', async () => {
    const { store } = await fresh(searchTables);
    const bodies = new Map(Array.from({ length: 120 }, (_, seed) => [`r${seed + 1000}`, bodyOf(seed)]));
    for (const table of [articles, papers]) {
      await commit(
        store,
        [...bodies].map(([id, body]) => put(table, id, body)),
      );
      for (const q of [
        'lamp',
        'lam*',
        'lamp red',
        '"lamp lamps"',
        'chair 東京',
        'lamp lamps table',
        'none',
      ]) {
        const filter = searchFor(table, q);
        const ids = await idsOf(store, table, filter);
        const found = new Map([...bodies].filter(([id]) => ids.includes(id)));
        assert.deepEqual(await ranked(store, table, filter), expectedOf(table, found, filter), q);
        const worst: readonly Sort[] = best.map(({ field }) => ({ field, direction: 'asc' }));
        const upwards = [...expectedOf(table, found, filter)].reverse();
        assert.deepEqual(await ranked(store, table, filter, worst), upwards, q);
      }
    }
  });

  test('pages in an order by rank follow each other in both directions, also with another key and a filter', async () => {
    const { store } = await fresh(searchTables);
    const bodies = new Map(Array.from({ length: 90 }, (_, seed) => [`r${seed + 1000}`, bodyOf(seed % 30)]));
    await commit(
      store,
      [...bodies].map(([id, body]) => put(articles, id, body)),
    );
    const search = searchFor(articles, 'lamp');
    const cheap: Filter = { op: 'lt', field: fields.price, value: 3 };
    const filter: Filter = { op: 'and', filters: [search, cheap] };
    for (const sort of [
      best,
      [{ field: fields.stock, direction: 'asc' }, ...best] satisfies readonly Sort[],
    ]) {
      const found = new Map([...bodies].filter(([, { price = 0 }]) => price < 3));
      const expected = expectedOf(articles, found, search);
      const plan = store.plan({ table: 'articles', filter, sort, limit: 7 });
      assert.equal(plan.bounded, false);
      const onwards = await walk(plan, 'after');
      assert.deepEqual(onwards.flatMap(idsOn), expected);
      const last = onwards.at(-1);
      const back = await walk(plan, 'before', last?.first ?? []);
      const rest = expected.slice(0, expected.length - (last?.docs.length ?? 0));
      assert.deepEqual([...back].reverse().flatMap(idsOn), rest);
      const third = await plan.page({ from: 'offset', offset: 14 });
      assert.deepEqual(idsOn(third), expected.slice(14, 21));
    }
  });
}

function cursorTests({ fresh }: Bench): void {
  test('a cursor of an order by rank holds while other documents change', async () => {
    const { store } = await fresh(searchTables);
    for (let at = 0; at < 20; at += 1) {
      await commit(store, [put(articles, `a${10 + at}`, { name: `${'lamp '.repeat(at + 1)}end` })]);
    }
    const filter = searchFor(articles, 'lamp');
    const plan = store.plan({ table: 'articles', filter, sort: best, limit: 5 });
    const one = await plan.page(first);
    // As statistics of words would: many more documents have the word.
    await commit(
      store,
      Array.from({ length: 50 }, (_, at) =>
        put(articles, `b${10 + at}`, { tags: [`lamp ${'x '.repeat(500)}`] }),
      ),
    );
    assert.ok(one.last !== null);
    const two = await plan.page({ from: 'after', key: one.last });
    const all = (await ranked(store, articles, filter)).filter((id) => id.startsWith('a'));
    assert.deepEqual([...idsOn(one), ...idsOn(two)], all.slice(0, 10));
  });

  test('a sort by rank without a search is a mistake of the caller', async () => {
    const { store } = await fresh(searchTables);
    await assert.rejects(async () => {
      await store.plan({ table: 'articles', filter: { op: 'always' }, sort: best, limit: 5 }).page(first);
    }, RangeError);
  });
}

async function idsOf(store: Store, { name }: Table, filter: Filter): Promise<readonly string[]> {
  return idsOn(await store.plan({ table: name, filter, sort: byId, limit: 10_000 }).page(first));
}

function manyTests({ fresh }: Bench): void {
  test('of more documents than are ranked, those stored last are listed, also among the rows of a filter', async () => {
    const { store } = await fresh(searchTables);
    const many = rankedMax + 904;
    const idOf = (at: number): string => `n${String(at).padStart(5, '0')}`;
    for (let from = 0; from < many; from += 500) {
      const part = Array.from({ length: Math.min(500, many - from) }, (_, at) => from + at);
      await commit(
        store,
        part.map((at) => put(articles, idOf(at), { name: `common item${at}`, price: at % 5 === 0 ? 1 : 2 })),
      );
    }
    const common = searchFor(articles, 'common');
    const ids = await ranked(store, articles, common);
    assert.equal(ids.length, rankedMax);
    const oldest = [...ids].sort()[0];
    assert.equal(oldest, idOf(many - rankedMax));
    const own: Filter = { op: 'and', filters: [common, { op: 'eq', field: fields.price, value: 1 }] };
    assert.equal((await ranked(store, articles, own)).length, many / 5);
    assert.deepEqual(await ranked(store, articles, searchFor(articles, 'item7')), [idOf(7)]);
  });
}
