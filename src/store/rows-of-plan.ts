/**
 * What reading whole rows along a plan has in common in both engines. A page gives documents to clients; rows go to the program, which
 * needs their revisions to change them and reads every one, so there is neither a version nor a row more than was asked for.
 */
import { rowOf } from './row-cells.ts';
import type { ListQuery, Row } from './store.ts';

/**
 * How many rows to read: what is asked for, within the query's limit.
 * @throws RangeError for what is no number of rows
 */
export function rowsLimit({ limit }: Pick<ListQuery, 'limit'>, asked: number | undefined): number {
  if (asked === undefined) return limit;
  if (!Number.isInteger(asked) || asked < 0) throw new RangeError(`cannot read ${asked} rows`);
  return Math.min(asked, limit);
}

/**
 * In the order of the sort, from the cells that a statement over `rowColumns` gave.
 * @param backwards whether they were read against the sort
 */
export function rowsInOrder(found: readonly (readonly unknown[])[], backwards: boolean): readonly Row[] {
  const rows = found.map(rowOf);
  return backwards ? rows.reverse() : rows;
}

/** Why a query that no index serves gives no rows. */
export function unbounded(): RangeError {
  return new RangeError('rows are read along an index, and none serves this query');
}
