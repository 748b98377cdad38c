/**
 * Makes the planner walk the index that serves a bounded read, without session settings, which a pooler would lose or leak. Otherwise it
 * does not: on a table of 10^5 rows just loaded, whose statistics come a minute later, a page of 20 by an indexed prefix was a bitmap scan
 * and a sort of 50,000 rows (318 ms; the walk takes 0.13 ms); likewise 1000 rows of an analysed one (53 ms; 0.7 ms).
 * `comity_costly` is never called. Its cost in the catalogue is 25 units, more than a random page read (4), so it is placed where other
 * plans pay for it; it also prevents parallel plans. parameters.ts hides the values.
 */
import { quoteName } from '../../quote-name.ts';

/**
 * True for every undeleted row, for walks of indexes that omit deleted rows: their predicate implies the second half too, so the planner
 * drops it from such a walk. Any other plan (a scan, a bitmap, the primary key) is charged for each row that it would touch.
 */
export function liveInIndex(schema: string): string {
  return `deleted_at IS NULL AND (deleted_at IS NULL OR ${costly(schema)})`;
}

/**
 * True for every undeleted row, for walks of the primary key. It implies no predicate, so no other index applies, and among the remaining
 * plans the walk touches the fewest rows. No revision is negative.
 */
export function liveInTable(schema: string): string {
  return `(deleted_at IS NULL OR (rev < 0 AND ${costly(schema)}))`;
}

/** True for every row, deleted or not. */
export function anyInTable(schema: string): string {
  return `(rev >= 0 OR ${costly(schema)})`;
}

/**
 * An equality from which the planner does not conclude that the key is constant, so that only an index that begins with the key provides an
 * order that begins with it. A kept plan knows no values: if the statistics of a column saw one owner, it would search a rare second one
 * along an index of the sort alone, through all rows of the first (20,000 of 20,000, measured).
 */
export function inOne(value: string, mark: string): string {
  return `${value} = ANY (ARRAY[${mark}])`;
}

/**
 * The condition, of which no index can serve a part: the walk along the order stays the only plan. Of the log, the index of histories begins
 * with the collection, by which a filtered tail was found and sorted.
 */
export function passedOver(condition: string): string {
  return `coalesce(${condition}, FALSE)`;
}

/**
 * A limit that the planner cannot evaluate: it assumes a tenth of the rows, whatever the statistics say, so that a walk never looks more
 * expensive than a sort. A literal limit around it keeps the estimate below the threshold of JIT.
 */
export function hiddenLimit(rows: number): string {
  return `LIMIT (SELECT ${rows})`;
}

/** Never true, at a cost that no plan for a bounded read takes. */
export function costly(schema: string): string {
  return `${quoteName(schema)}.comity_costly(id) IS NULL`;
}
