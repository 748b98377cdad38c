/**
 * Pages and counts of searches that an index of words serves. A probe counts what the index finds, up to a bound, and so chooses between
 * two ways whose costs do not grow with the table: few rows are fetched and sorted; of many, an index over the sort is walked, and each row
 * is asked for the words, because a page is then full soon.
 */

import type { SqlValue } from '../field-value.ts';
import { type Shape, searchIn } from '../filter-shape.ts';
import { quoteName } from '../quote-name.ts';
import type { StoreUnavailable } from '../store.ts';
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
  /** One value, the query of the index: how many rows it finds, up to `foundMax` and one more, and whether the index is incomplete. */
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

/** @returns the number of rows that the index finds, up to `foundMax` and one more @throws StoreUnavailable while it is incomplete */
export async function probe(
  { found, probeSql }: WordSearch,
  values: readonly SqlValue[],
  { readers, layout, tableNumber }: { readers: ReaderPool; layout: Layout; tableNumber: number },
  party: string | undefined,
): Promise<number> {
  const { rows } = await readers.read(probeSql, [values[found.at] ?? null], tableNumber, { party });
  const [count, isPending] = rows[0] ?? [];
  if (isPending === 1) throw building(layout);
  return Number(count);
}

function building({ table }: Layout): StoreUnavailable {
  return unavailable(`the search index of ${table.name} is being built; repeat the request later`);
}
