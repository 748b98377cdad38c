/**
 * Makes the planner walk the index that serves a bounded read, without settings of a session, which a pooler would lose or give
 * to others. Left alone it does not: on a table of 10^5 rows just loaded, whose statistics come a minute later, a page of 20 by
 * an indexed prefix was a bitmap scan and a sort of 50,000 rows (318 ms; the walk takes 0.13 ms); 1000 rows of an analysed
 * one likewise (53 ms; 0.7 ms).
 *
 * `comity_costly` is never called. The catalogue says that it costs 25 units, more than a random read of a page (4), so it
 * stands where other plans pay for it; it also keeps plans from being made parallel. Values are hidden by parameters.ts.
 */
import { quoteName } from '../../quote-name.ts';

/**
 * True for every row that is not deleted, for walks of the indexes that leave deleted rows out: their predicate implies the second
 * half too, which the planner therefore leaves out of a walk of one. Any other plan (a scan, a bitmap, the primary key) is
 * charged for each row that it would touch.
 */
export function liveInIndex(schema: string): string {
  return `deleted_at IS NULL AND (deleted_at IS NULL OR ${costly(schema)})`;
}

/**
 * True for every row that is not deleted, for walks of the primary key. It implies no predicate, so no other index will do; and of
 * the plans that are left that walk touches the fewest rows. No revision is negative.
 */
export function liveInTable(schema: string): string {
  return `(deleted_at IS NULL OR (rev < 0 AND ${costly(schema)}))`;
}

/** True for every row, deleted or not. */
export function anyInTable(schema: string): string {
  return `(rev >= 0 OR ${costly(schema)})`;
}

/**
 * Equality of which the planner does not conclude that the key is constant, so that only an index that begins with it has an order
 * that begins with it. A kept plan knows no values: where the statistics of a column saw one owner, a rare second one would be
 * looked for along an index of the sort alone, through all rows of the first (20,000 of 20,000, tried).
 */
export function inOne(value: string, mark: string): string {
  return `${value} = ANY (ARRAY[${mark}])`;
}

/**
 * A limit that the planner does not look into: it takes a tenth of the rows to be wanted, whatever the statistics say, so that a
 * walk never looks dearer than a sort. Around it stands a literal one, which keeps the estimate below what JIT starts at.
 */
export function hiddenLimit(rows: number): string {
  return `LIMIT (SELECT ${rows})`;
}

function costly(schema: string): string {
  return `${quoteName(schema)}.comity_costly(id) IS NULL`;
}
