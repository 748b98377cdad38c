/**
 * Brings a batch to its outcome: boldly, where its units do not bear on each other, else carefully; carefully once an assumption did
 * not hold; again, after a pause, where the database undid it without fault of ours; in halves, where some unit's values are
 * at fault and nobody says whose, down to the one, which is then rejected alone.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { quoteName } from '../../quote-name.ts';
import type { Commit } from '../../store.ts';
import { asUnavailable } from '../connection/failure.ts';
import { commitBoldly } from './commit-boldly.ts';
import { commitCarefully } from './commit-carefully.ts';
import type { Work } from './commit-table.ts';
import { meaningOf, violationOf } from './error-meaning.ts';
import { type Batch, NotCommitted, type Room } from './flight.ts';
import { interacts } from './interaction.ts';
import { failed, joined, type Made, type Outcome } from './outcome.ts';

export type BatchRoom = Room & { readonly schema: string; readonly retriesMax: number };

/** The pause before a batch is done again, drawn between nothing and this. */
const pauseMostMs = 20;

/** Never rejects: what failed is the outcome of the units that it failed. */
export async function commitBatch(room: BatchRoom, batch: Batch): Promise<Made> {
  const { works, endsAt } = batch;
  let careful = interacts(works, room.tables);
  for (let retries = 0; ; retries += 1) {
    try {
      return careful ? await commitCarefully(room, batch) : await commitBoldly(room, batch);
    } catch (error) {
      const meaning = error instanceof NotCommitted ? 'again' : meaningOf(error);
      if (!careful && (meaning === 'refused' || meaning === 'values')) {
        careful = true;
        continue;
      }
      if (meaning === 'values') return failApart(room, batch, error);
      if (meaning === 'fence') room.fence.drop();
      else if (meaning !== 'again' && meaning !== 'refused')
        return failed(works.length, asUnavailable(causeOf(error)));
      if (retries >= room.retriesMax || performance.now() + pauseMostMs > endsAt) {
        return failed(works.length, asUnavailable(causeOf(error)));
      }
    }
    await pause(Math.random() * pauseMostMs);
  }
}

async function failApart(room: BatchRoom, { works, endsAt }: Batch, error: unknown): Promise<Made> {
  const [first, second] = works;
  if (first === undefined || second === undefined) {
    const outcome: Outcome = first === undefined ? { error } : await faultOf(room, first, error);
    return { outcomes: [outcome], touched: new Map() };
  }
  const middle = works.length >> 1;
  const before = await commitBatch(room, { works: works.slice(0, middle), endsAt });
  return joined(before, await commitBatch(room, { works: works.slice(middle), endsAt }));
}

/** A value may be taken by an index of a newer declaration that this program does not know. */
async function faultOf(room: BatchRoom, { unit }: Work, error: unknown): Promise<Outcome> {
  const violation = violationOf(error);
  if (violation === undefined) return { error };
  const change = unit.changes.findIndex(
    ({ table, next }) => table === violation.table && next !== null && next.deletedAt === null,
  );
  const field = await fieldOf(room, violation.index);
  if (change < 0 || field === undefined) return { error };
  const commit: Commit = { outcome: 'taken', change, field };
  return { commit };
}

async function fieldOf({ connection, schema }: BatchRoom, index: string): Promise<string | undefined> {
  const sql = `SELECT fields::text FROM ${quoteName(schema)}.comity_indexes WHERE name = $1`;
  try {
    const [reply] = await connection.send([{ sql, values: [index] }]);
    const fields = reply?.rows[0]?.[0];
    return fields === undefined ? undefined : String(JSON.parse(String(fields))[0]);
  } catch {
    // The violation itself is told then.
    return undefined;
  }
}

/** The statements are the program's own: whatever they fail with that no unit is at fault for, storage is. */
function causeOf(error: unknown): unknown {
  return error instanceof NotCommitted ? error.cause : error;
}
