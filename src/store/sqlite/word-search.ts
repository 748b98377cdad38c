/**
 * Pages and counts of searches that an index of words serves. A probe counts what the index finds, up to a bound, and so chooses between
 * two ways whose costs do not grow with the table: few rows are fetched and sorted; of many, an index over the sort is walked, and each row
 * is asked for the words, because a page is then full soon.
 */

import { idField } from '../../model/field.ts';
import type { SqlValue } from '../field-value.ts';
import { conjuncts, isRanked, type Shape, searchIn } from '../filter-shape.ts';
import { quoteName } from '../quote-name.ts';
import { serve } from '../serve.ts';
import type { ListQuery, StoreUnavailable } from '../store.ts';
import type { Selection } from './compile/select.ts';
import type { ReaderPool } from './reader/pool.ts';
import { unavailable } from './sqlite-failure.ts';
import type { Layout } from './table-layout.ts';
import { pendingName } from './word-index.ts';

/** Rows that are fetched and sorted for one page: some 15 ms. */
export const foundMax = 4096;

export type WordSearch = {
  readonly found: { readonly name: string; readonly at: number };
  /** Where the values of the terms are. */
  readonly terms: readonly number[];
  /** One value, the query of the index: how many rows it finds, up to `foundMax` and one more, and 1 if the index is incomplete. */
  readonly probeSql: string;
};

export function wordSearchOf(layout: Layout, filter: Shape): WordSearch | undefined {
  const words = searchIn(filter);
  if (words === undefined || layout.words?.words.mark !== words.mark) return undefined;
  const { name, pendingSql } = layout.words;
  const counted = `SELECT 1 FROM ${name} WHERE ${name} MATCH ? LIMIT ${foundMax + 1}`;
  return {
    found: { name, at: words.at },
    terms: words.terms,
    probeSql: `SELECT (SELECT count(*) FROM (${counted})), EXISTS (SELECT 1 FROM ${layout.name} INDEXED BY ${quoteName(pendingName(layout.table))} WHERE ${pendingSql})`,
  };
}

export type Search = { readonly words: WordSearch; readonly few: Selection; readonly many: Selection };

/** @param scan walks the index over the sort, if there is one, and asks each row for the words */
export function searchOf(scan: Selection, words: WordSearch): Search {
  const few: Selection = { ...scan, service: undefined, found: words.found };
  return isRanked(scan.sort) ? rankedSearch(few, words) : { words, few, many: scan };
}

/** If the search finds many rows and the filter has an index of its own, it reads the rows of that index, which may be much fewer. */
function rankedSearch(found: Selection, words: WordSearch): Search {
  const few: Selection = { ...found, ranked: words.terms };
  const own = serve(few.layout, withoutSearch(few.filter), newestFirst);
  if (typeof own !== 'object' || own.index === few.layout.primaryKey) return { words, few, many: few };
  return { words, few, many: { ...few, found: undefined, service: own } };
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
  party: string | undefined,
): Promise<number> {
  const { rows } = await readers.read(probeSql, [values[found.at] ?? null], tableNumber, { party });
  const [count, isPending] = rows[0] ?? [];
  if (isPending === 1) throw beingBuilt(layout);
  return Number(count);
}

export function beingBuilt({ table }: Layout): StoreUnavailable {
  return unavailable(`the search index of ${table.name} is being built; repeat the request later`);
}
