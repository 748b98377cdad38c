/** Searches by an index of words: which documents are found, on pages in any order, and that the index follows every write. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Filter, Sort } from '../../src/model/filter.ts';
import { matches } from '../../src/model/matches.ts';
import {
  createSearchIndex,
  indexedText,
  parseSearch,
  type SearchIndex,
} from '../../src/model/search/search-index.ts';
import type { Change, Store, Table } from '../../src/store/store.ts';
import type { Bench } from './engine.ts';
import { byId, fields, idsOn, matchable, nextRow, unit, walk } from './fixture.ts';

const english = createSearchIndex(['name', 'tags'], 'english');
const plain = createSearchIndex(['name', 'tags'], undefined);

export const articles = tableOf('articles', english);
export const papers = tableOf('papers', plain);
export const searchTables = [articles, papers];

function tableOf(name: string, words: SearchIndex): Table {
  return {
    name,
    fields: [fields.id, fields.name, fields.price, fields.tags],
    indexes: [[fields.price], [fields.name, fields.price]],
    unique: [],
    references: [],
    searched: true,
    words,
  };
}

type Article = { readonly name?: string; readonly tags?: readonly string[]; readonly price?: number };

export function put(
  table: Table,
  id: string,
  body: Article,
  rev?: number,
  deletedAt: number | null = null,
): Change {
  const search = table.words === undefined ? null : indexedText(table.words, body);
  const expect = rev === undefined ? ({ absent: true } as const) : { rev };
  return { table: table.name, id, expect, next: nextRow(table, id, body, { search, deletedAt }) };
}

export function searchFor(table: Table, q: string): Filter {
  const { words } = table;
  assert.ok(words !== undefined);
  const { terms } = parseSearch(words, q, { termsMax: 64, termCharactersMax: 10_000 });
  return { op: 'search', terms, mark: words.mark };
}

export async function commit(store: Store, changes: readonly Change[]): Promise<void> {
  assert.equal((await store.commit(unit(...changes))).outcome, 'committed');
}

async function found(store: Store, table: Table, q: string): Promise<readonly string[]> {
  return idsOf(store, table, searchFor(table, q));
}

async function idsOf(store: Store, { name }: Table, filter: Filter): Promise<readonly string[]> {
  return idsOn(await store.plan({ table: name, filter, sort: byId, limit: 10_000 }).page({ from: 'start' }));
}

export function searchTests(bench: Bench): void {
  agreementTests(bench);
  followingTests(bench);
  manyTests(bench);
}

const atoms = [
  ...['lamp', 'lamps', 'Lampe', 'lam', 'red', 'reds', 'running', 'run', 'a', '1', '42', 'x1'],
  ...['é', 'É', 'e\u0301', 'ß', 'SS', 'İ', 'ﬁn', '東京', '京都', '東', 'ไทย', 'привет', 'ΟΔΟΣ', 'οδοσ'],
  ...[
    '🚀',
    '👩‍🚀',
    '"',
    "'",
    '*',
    '-',
    '=',
    '#',
    ':',
    '&',
    '|',
    '!',
    '(',
    ')',
    '\\',
    '%',
    '_',
    '\n',
    ' ',
    '\t',
    '\u0000',
  ],
  ...['AND', 'OR', 'NOT', 'NEAR', 'words:', '^', '{', '}', '+', 'lamp*', '"red lamp"', '\ud800', 'rowid'],
];
const text = fc.array(fc.constantFrom(...atoms), { maxLength: 6 }).map((parts) => parts.join(''));
const spaced = fc.array(fc.constantFrom(...atoms), { maxLength: 6 }).map((parts) => parts.join(' '));
const anyText = fc.oneof(text, spaced);
const body = fc.record({ name: anyText, tags: fc.array(anyText, { maxLength: 2 }) });

function agreementTests({ fresh }: Bench): void {
  test('a search finds exactly the documents that match one by one, whatever the text and the query', async () => {
    const { store } = await fresh(searchTables);
    // The texts of both stores: PostgreSQL holds no U+0000.
    const bodies = fc
      .sample(body, { numRuns: 150, seed: 7 })
      .map(({ name, tags }) => ({ name: clean(name), tags: tags.map(clean) }));
    for (const table of searchTables) {
      const changes = bodies.map((each, index) => put(table, `row ${index + 1000}`, each));
      await commit(store, changes);
      for (const q of [...fc.sample(anyText, { numRuns: 120, seed: 11 }), ...atoms]) {
        const filter = searchFor(table, q);
        const expected = changes
          .filter(({ id, next }) => next !== null && matches(filter, matchable(next, id)))
          .map(({ id }) => id);
        const ids = await idsOf(store, table, filter);
        assert.deepEqual(ids, expected, JSON.stringify(q));
        assert.equal(await store.count(table.name, filter), expected.length);
        const not: Filter = { op: 'not', filter };
        const others = await idsOf(store, table, not);
        assert.equal(others.length, changes.length - expected.length);
      }
    }
  });

  test('words, prefixes, phrases and stems find what they say', async () => {
    const { store } = await fresh(searchTables);
    const bodies: readonly Article[] = [
      { name: 'Red lamps for réading', tags: ['sale', 'night lamp'] },
      { name: 'A reading lamp, red', tags: [] },
      { name: '東京都の天気', tags: ['weather'] },
      { name: "Printer doesn't print", tags: ['lampshade'] },
    ];
    for (const table of searchTables)
      await commit(
        store,
        bodies.map((each, at) => put(table, `${at}`, each)),
      );
    const cases: readonly (readonly [q: string, english: string, plain: string])[] = [
      ['lamp', '01', '01'],
      ['lamps', '01', '0'],
      ['LAMP red', '01', '01'],
      ['lam*', '013', '013'],
      ['lamp*', '013', '013'],
      ['"red lamps"', '0', '0'],
      ['"lamp red"', '1', '1'],
      ['"sale night"', '', ''],
      ['read', '01', ''],
      ['reading', '01', '01'],
      ['printing', '3', ''],
      ["doesn't", '3', '3'],
      ['京都', '2', '2'],
      ['都京', '', ''],
      ['天', '2', '2'],
      ['shade', '', ''],
      ['"unclosed lamp', '', ''],
    ];
    for (const [q, stemmed, unstemmed] of cases) {
      assert.equal((await found(store, articles, q)).join(''), stemmed, `${q} in English`);
      assert.equal((await found(store, papers, q)).join(''), unstemmed, q);
    }
  });
}

function clean(value: string): string {
  return value.replaceAll('\0', '').toWellFormed();
}

function followingTests({ fresh }: Bench): void {
  test('the index follows updates, soft deletion, restoring and removal', async () => {
    const { store } = await fresh(searchTables);
    await commit(store, [
      put(articles, 'a', { name: 'green chair' }),
      put(articles, 'b', { name: 'green table' }),
    ]);
    assert.deepEqual(await found(store, articles, 'green'), ['a', 'b']);
    const rev = async (id: string): Promise<number> => (await store.read('articles', id))?.rev ?? 0;
    await commit(store, [put(articles, 'a', { name: 'blue chair' }, await rev('a'))]);
    assert.deepEqual(await found(store, articles, 'green'), ['b']);
    assert.deepEqual(await found(store, articles, 'blue chair'), ['a']);
    await commit(store, [put(articles, 'a', { name: 'blue chair' }, await rev('a'), 1_700_000_000_000)]);
    assert.deepEqual(await found(store, articles, 'blue'), []);
    await commit(store, [put(articles, 'a', { name: 'blue stool' }, await rev('a'))]);
    assert.deepEqual(await found(store, articles, 'blue'), ['a']);
    assert.deepEqual(await found(store, articles, 'chair'), []);
    await commit(store, [{ table: 'articles', id: 'a', expect: { rev: await rev('a') }, next: null }]);
    assert.deepEqual(await found(store, articles, 'blue'), []);
    await store.purge('articles', 1_800_000_000_000, 10);
    assert.deepEqual(await found(store, articles, 'green'), []);
  });

  test('a change that is refused leaves the index as it was', async () => {
    const { store } = await fresh(searchTables);
    await commit(store, [put(articles, 'a', { name: 'one' })]);
    const refused = await store.commit(
      unit(put(articles, 'b', { name: 'two' }), put(articles, 'a', { name: 'three' }, 999_999)),
    );
    assert.equal(refused.outcome, 'superseded');
    assert.deepEqual(await found(store, articles, 'one'), ['a']);
    assert.deepEqual(await found(store, articles, 'two'), []);
    assert.deepEqual(await found(store, articles, 'three'), []);
  });
}

/** More rows than are fetched and sorted for one page. */
const many = 5000;

const byPrice: readonly Sort[] = [
  { field: fields.price, direction: 'desc' },
  { field: fields.id, direction: 'desc' },
];

function manyTests({ fresh }: Bench): void {
  test('pages of few and of many found documents follow each other in both directions', async () => {
    const { store } = await fresh(searchTables);
    const all = Array.from({ length: many }, (_, index) => {
      const name = `common ${index % 10 === 0 ? 'tenth' : 'other'} item${index}`;
      return { id: `n${String(index).padStart(5, '0')}`, name, price: (index * 7919) % many };
    });
    for (let from = 0; from < many; from += 500) {
      const part = all.slice(from, from + 500);
      await commit(
        store,
        part.map(({ id, name, price }) => put(articles, id, { name, price })),
      );
    }
    for (const q of ['common', 'com*', 'tenth', 'item4999', 'nothing']) {
      const expected = all
        .filter(({ name }) => q === 'com*' || name.split(' ').includes(q))
        .sort((one, other) => other.price - one.price)
        .map(({ id }) => id);
      const filter = searchFor(articles, q);
      assert.equal(await store.count('articles', filter), expected.length);
      // Frequent words fill the short page from the first documents of the list, and the long one not.
      for (const limit of [700, 60]) {
        const plan = store.plan({ table: 'articles', filter, sort: byPrice, limit });
        const onwards = await walk(plan, 'after');
        assert.deepEqual(onwards.flatMap(idsOn), expected, q);
        const key = onwards.at(-1)?.first ?? null;
        if (key === null) continue;
        const back = await walk(plan, 'before', key);
        const rest = onwards.at(-1)?.docs.length ?? 0;
        assert.deepEqual([...back].reverse().flatMap(idsOn), expected.slice(0, expected.length - rest), q);
      }
    }
    // Words that many documents have, of which few pass another condition.
    for (const q of ['common', 'tenth', 'item4999']) {
      for (const cheap of [50, 4000]) {
        const passing = all.filter(({ name, price }) => name.split(' ').includes(q) && price < cheap);
        const filter: Filter = {
          ...{ op: 'and' },
          filters: [searchFor(articles, q), { op: 'lt', field: fields.price, value: cheap }],
        };
        for (const [sort, expected] of [
          [byId, passing],
          [byPrice, passing.toSorted((one, other) => other.price - one.price)],
        ] as const) {
          const plan = store.plan({ table: 'articles', filter, sort, limit: 20 });
          const ids = (await walk(plan, 'after')).flatMap(idsOn);
          assert.deepEqual(
            ids,
            expected.map(({ id }) => id),
            `${q} under ${cheap}`,
          );
        }
      }
    }
  });
}
