/** Searches of several words in SQLite, on each side of the numbers of rows at which the ways to find them change. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { rankFieldOf } from '../../src/model/field.ts';
import { createSearchIndex, indexedText } from '../../src/model/search/search-index.ts';
import { candidatesMax, listedMax } from '../../src/store/sqlite/compiled-shape.ts';
import type { ListQuery, Store, Table } from '../../src/store/store.ts';
import { byId, commitAll, idsOn, notes, put, remove } from '../contract/fixture.ts';
import { folderFor } from './folder.ts';

const words = createSearchIndex(['name'], undefined);
const table: Table = { ...notes, searched: true, words };
const rows = 1300;
const edges = [1, candidatesMax, candidatesMax + 1, listedMax, listedMax + 1];

/** Rows with each word: the first of them by their places. */
const has: Readonly<Record<string, (at: number) => boolean>> = {
  every: () => true,
  odd: (at) => at % 2 === 1,
  ...Object.fromEntries(edges.map((edge) => [`first${edge}`, (at: number) => at < edge])),
};

const idOf = (at: number): string => `n${String(at).padStart(4, '0')}`;
/** Every seventh row. */
const isRemoved = (at: number): boolean => at % 7 === 3;

async function fill(store: Store): Promise<void> {
  for (let from = 0; from < rows; from += 650) {
    const changes = Array.from({ length: 650 }, (_, index) => {
      const held = Object.keys(has).filter((word) => has[word]?.(from + index) === true);
      const name = [...held, `number${from + index}`].join(' ');
      return put(table, idOf(from + index), { name }, undefined, { search: indexedText(words, { name }) });
    });
    const rev = await commitAll(store, ...changes);
    const removed = changes.filter((_, index) => isRemoved(from + index));
    await commitAll(store, ...removed.map(({ id }) => remove(table, id, rev)));
  }
}

/** Ids of all pages, each of which begins after the last. */
async function allPages(store: Store, query: Omit<ListQuery, 'table'>): Promise<readonly string[]> {
  const plan = store.plan({ ...query, table: 'notes' });
  const ids: string[] = [];
  let page = await plan.page({ from: 'start' });
  for (;;) {
    ids.push(...idsOn(page));
    if (!page.more || page.last === null) return ids;
    page = await plan.page({ from: 'after', key: page.last });
  }
}

test('several words find the rows that have them all, however many rows have each', async (context) => {
  const store = await folderFor(context).open({ tables: [table] });
  await fill(store);
  const names = Object.keys(has);
  const asked = [
    ...names.flatMap((one) => names.map((other) => [one, other])),
    ['every', 'odd', `first${candidatesMax}`],
    ['every', 'nowhere'],
    ['nowhere', 'first1'],
  ];
  const places = Array.from({ length: rows }, (_, at) => at).filter((at) => !isRemoved(at));
  for (const several of asked) {
    const expected = places.filter((at) => several.every((word) => has[word]?.(at) === true)).map(idOf);
    const filter = { op: 'search', terms: several.map((word) => ` ${word} `), mark: words.mark } as const;
    const said = several.join(' ');
    assert.deepEqual(await allPages(store, { filter, sort: byId, limit: 300 }), expected, said);
    const ranked = [{ field: rankFieldOf(new Map()), direction: 'desc' } as const, ...byId];
    const byRank = await allPages(store, { filter, sort: ranked, limit: 300 });
    assert.deepEqual([...byRank].sort(), expected, `${said} by rank`);
  }
});

test('a rare word beside a prefix, a phrase or another word finds the rows that have both', async (context) => {
  const store = await folderFor(context).open({ tables: [table] });
  await fill(store);
  const search = (...terms: readonly string[]) =>
    allPages(store, { filter: { op: 'search', terms, mark: words.mark }, sort: byId, limit: 20 });
  const one = rows - 1;
  assert.equal(isRemoved(one), false);
  assert.deepEqual(await search(` number${one} `, ' numb'), [idOf(one)]);
  assert.deepEqual(await search(` number${one} `, ' every odd '), [idOf(one)]);
  assert.deepEqual(await search(` number${one} `, ' odd every '), []);
  assert.deepEqual(await search(` number${one} `, ' first'), []);
  assert.deepEqual(await search(` number${one} `, ` number${one - 1} `), []);
});
