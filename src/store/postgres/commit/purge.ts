/**
 * Removes old rows in one flight, under the same lock as every commit, and looks at the time of each once more. The revision and the
 * table's version rise only when a row went. References are not looked at: what is purged is a log, not a collection that
 * others refer to.
 */
import { quoteName } from '../../quote-name.ts';
import type { Call } from '../connection/connection.ts';
import { asUnavailable } from '../connection/failure.ts';
import type { CommitTable } from './commit-table.ts';
import { type Room, transactionMs } from './flight.ts';
import { drawnRev } from './statements.ts';
import { begin, commit } from './transaction.ts';

export type PurgeRoom = Room & { readonly schema: string; readonly channel: string };

/** Finds rows by id; those that are still old enough go. */
export type PurgeStep = {
  readonly table: CommitTable;
  readonly updatedBefore: number;
  readonly ids: readonly string[];
};

export type Purged = { readonly rows: number; readonly rev: number };

/** @throws StoreUnavailable, after which rows may be gone or not: the next purge finds those that stand */
export async function purgeStep(room: PurgeRoom, step: PurgeStep, endsAt: number): Promise<Purged> {
  const { connection, fence, frame } = room;
  try {
    await fence.ensure(endsAt);
    const timeoutMs = transactionMs(endsAt);
    const opening = [begin, frame.open(fence.epoch, timeoutMs), frame.draw(0)];
    const replies = await connection.send([...opening, purgeCall(room, step), commit], timeoutMs);
    const [rows, rev] = (replies[opening.length]?.rows[0] ?? []) as readonly number[];
    return { rows: rows ?? 0, rev: rev ?? 0 };
  } catch (error) {
    fence.drop();
    throw asUnavailable(error);
  }
}

function purgeCall({ schema, channel }: PurgeRoom, { table, updatedBefore, ids }: PurgeStep): Call {
  const counters = `${quoteName(schema)}.comity_counters`;
  const sql = `WITH gone AS (DELETE FROM ${table.layout.name} WHERE id = ANY($1::text[]) AND updated_at < $2::bigint AND rev <= ${drawnRev} RETURNING 1),
 purged AS MATERIALIZED (SELECT count(*) AS rows, ${drawnRev} + 1 AS rev FROM gone),
 raised AS (UPDATE ${counters} AS counter SET rev = purged.rev FROM purged WHERE n IN (0, $3::int) AND purged.rows > 0)
SELECT rows, rev, CASE WHEN rows > 0 THEN pg_notify($4, rev || ':' || $3::int)::text END FROM purged`;
  return { sql, values: [ids, updatedBefore, table.number, channel] };
}
