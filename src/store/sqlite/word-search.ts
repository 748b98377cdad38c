/**
 * Pages and counts of searches that an index of words serves. A probe counts what the index finds, up to a bound, and so chooses between
 * two ways whose costs do not grow with the table: few rows are fetched and sorted; of many, an index over the sort is walked, and each row
 * is asked for the words, because a page is then full soon.
 */

import type { Party } from '../../model/fair-queue.ts';
import { idField } from '../../model/field.ts';
import { wordsOfTerm } from '../../model/search/parse-search.ts';
import type { SqlValue } from '../field-value.ts';
import { conjuncts, isRanked, type Shape, searchIn } from '../filter-shape.ts';
import { quoteName } from '../quote-name.ts';
import { serve } from '../serve.ts';
import { type ListQuery, StoreUnavailable } from '../store.ts';
import { matchOf } from './compile/filter.ts';
import type { Found, Selection } from './compile/select.ts';
import type { ReaderPool } from './reader/pool.ts';
import type { Layout } from './table-layout.ts';
import { pendingName } from './word-index.ts';

/** Rows that are fetched and sorted for one page: some 15 ms. */
export const foundMax = 4096;

/** Rows whose numbers are passed to the statement of the page, which then does not ask the index of words again. */
export const listedMax = 512;

/** Rows with one word of several whose texts are asked for the others, which costs less than to find these rows in long lists of the index. */
export const candidatesMax = 64;

export type WordSearch = {
  readonly found: Found;
  /** Where the values of the terms are. */
  readonly terms: readonly number[];
  /** One value, the query of the index: how many rows it finds, up to `foundMax` and one more, and 1 if the index is incomplete. */
  readonly probeSql: string;
  /** Two values, the query of the index and a limit. As `probeSql`, up to the limit, with the numbers of the rows as JSON. */
  readonly listSql: string;
};

export function wordSearchOf(layout: Layout, filter: Shape): WordSearch | undefined {
  const words = searchIn(filter);
  if (words === undefined || layout.words?.words.mark !== words.mark) return undefined;
  const { name, pendingSql } = layout.words;
  const first = (limit: string): string =>
    `(SELECT rowid AS n FROM ${name} WHERE ${name} MATCH ? LIMIT ${limit})`;
  const isPending = `EXISTS (SELECT 1 FROM ${layout.name} INDEXED BY ${quoteName(pendingName(layout.table))} WHERE ${pendingSql})`;
  return {
    found: { name, at: words.at, by: 'query' },
    terms: words.terms,
    probeSql: `SELECT count(*), ${isPending} FROM ${first(String(foundMax + 1))}`,
    listSql: `SELECT count(*), ${isPending}, json_group_array(n) FROM ${first('?')}`,
  };
}

export type Search = {
  readonly words: WordSearch;
  /** As `few`, of rows whose numbers are listed. */
  readonly listed: Selection;
  readonly candidates: Selection;
  readonly few: Selection;
  readonly many: Selection;
};

/** @param scan walks the index over the sort, if there is one, and asks each row for the words */
export function searchOf(scan: Selection, words: WordSearch): Search {
  const few: Selection = {
    ...{ ...scan, service: undefined, found: words.found },
    ...(isRanked(scan.sort) ? { ranked: words.terms } : {}),
  };
  const by = (way: Found['by']): Selection => ({ ...few, found: { ...words.found, by: way } });
  const many = few.ranked === undefined ? scan : manyRanked(few);
  return { words, listed: by('rows'), candidates: by('candidates'), few, many };
}

/** The queries of the index for each word of several. Phrases are left out, and prefixes, for which FTS5 gathers all rows before the first. */
export function singleWords({ terms }: WordSearch, values: readonly SqlValue[]): readonly string[] {
  if (terms.length < 2) return [];
  return terms.flatMap((at) => {
    const term = String(values[at + 1]);
    const { words, isPrefix } = wordsOfTerm(term);
    return isPrefix || words.length > 1 ? [] : [matchOf([term])];
  });
}

/** If the search finds many rows and the filter has an index of its own, it reads the rows of that index, which may be much fewer. */
function manyRanked(few: Selection): Selection {
  const own = serve(few.layout, withoutSearch(few.filter), newestFirst);
  if (typeof own !== 'object' || own.index === few.layout.primaryKey) return few;
  return { ...few, found: undefined, service: own };
}

const newestFirst: ListQuery['sort'] = [{ field: idField, direction: 'desc' }];

/** The rest of a conjunction, which decides if an index serves the sort. */
export function withoutSearch(filter: Shape): Shape {
  return { op: 'and', parts: conjuncts(filter).filter(({ op }) => op !== 'search') };
}

/** @returns the number of rows that the index finds, up to `foundMax` and one more @throws StoreUnavailable while it is incomplete */
export async function probe(
  { found, probeSql }: WordSearch,
  values: readonly SqlValue[],
  { readers, layout, tableNumber }: { readers: ReaderPool; layout: Layout; tableNumber: number },
  party: Party | undefined,
): Promise<number> {
  const { rows } = await readers.read(probeSql, [values[found.at] ?? null], tableNumber, { party });
  const [count, isPending] = rows[0] ?? [];
  if (isPending === 1) throw beingBuilt(layout);
  return Number(count);
}

export function beingBuilt({ table }: Layout): StoreUnavailable {
  return new StoreUnavailable(`the search index of ${table.name} is being built; repeat the request later`);
}
