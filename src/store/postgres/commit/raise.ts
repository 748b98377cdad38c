/**
 * The counter of revisions raised on PostgreSQL (raised-revision.ts): when a process begins to commit, when the server is not the one of the last
 * raise, or when the process knows a revision that the counter has not reached. Processes that meet the same new server raise once.
 */
import { quoteName } from '../../quote-name.ts';
import {
  clockRevisionMax,
  raiseStepMin,
  raiseStepRange,
  raisesKeptMax,
  revisionsPerSecond,
} from '../../raised-revision.ts';
import type { Call } from '../connection/connection.ts';
import { serverSql, serverTimeMs } from './transaction.ts';

/**
 * Calls within a transaction. The last returns the server, and the raised counter or null.
 * @param schema not quoted
 * @param clock milliseconds since the epoch; the database's counts if it is ahead
 */
export function raiseCalls(
  schema: string,
  clock: () => number,
): (newestRev: number, isFirst: boolean) => readonly Call[] {
  const counters = `${quoteName(schema)}.comity_counters`;
  const raises = `${quoteName(schema)}.comity_raises`;
  // By a statement of its own, so that the next one sees what another process committed meanwhile.
  const lock = `SELECT rev FROM ${counters} WHERE n = 0 FOR NO KEY UPDATE`;
  const seconds = `greatest(extract(epoch FROM clock_timestamp()), $3::bigint / 1000.0)`;
  const byClock = `least(floor(${seconds} * ${revisionsPerSecond}), ${clockRevisionMax})::bigint`;
  const byStep = `known + ${raiseStepMin} + floor(random() * ${raiseStepRange})::bigint`;
  const sql = `WITH counter AS (SELECT rev AS before, greatest(rev, $1::bigint) AS known, ${byClock} AS by_clock FROM ${counters} WHERE n = 0),
raised AS MATERIALIZED (
  SELECT before, CASE WHEN by_clock > known THEN by_clock ELSE ${byStep} END AS after FROM counter
  WHERE $2::boolean OR before < $1::bigint
    OR ${serverSql} IS DISTINCT FROM (SELECT server FROM ${raises} ORDER BY before DESC LIMIT 1)
),
counted AS (UPDATE ${counters} SET rev = raised.after FROM raised WHERE n = 0),
forgotten AS (
  DELETE FROM ${raises} WHERE before IN (SELECT before FROM ${raises} ORDER BY before DESC OFFSET ${raisesKeptMax - 1})
),
extended AS (
  UPDATE ${raises} AS last SET after = raised.after, made_at = ${serverTimeMs}, server = ${serverSql}
  FROM raised WHERE last.after = raised.before RETURNING 1
),
added AS (
  INSERT INTO ${raises} (before, after, made_at, server)
  SELECT before, after, ${serverTimeMs}, ${serverSql} FROM raised WHERE NOT EXISTS (SELECT FROM extended)
)
SELECT ${serverSql}, (SELECT after FROM raised)`;
  return (newestRev, isFirst) => [
    { sql: lock, values: [], prepared: false },
    { sql, values: [newestRev, isFirst, clock()], prepared: false },
  ];
}

/** True if no unit can have the revision (`Store.isLost`). @param schema not quoted @param rev SQL of a bigint */
export function isLostSql(schema: string, rev = '$1::bigint'): string {
  const counters = `${quoteName(schema)}.comity_counters`;
  const raises = `${quoteName(schema)}.comity_raises`;
  // Ranges do not overlap: the last that begins before the revision is the only one that can hold it.
  const last = `SELECT after FROM ${raises} WHERE before = (SELECT max(before) FROM ${raises} WHERE before < ${rev})`;
  return `((SELECT rev FROM ${counters} WHERE n = 0) < ${rev} OR coalesce(${rev} <= (${last}), false))`;
}
