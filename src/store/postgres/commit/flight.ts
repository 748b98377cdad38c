/**
 * Sends what a batch consists of, within its time, and finds out what became of it where the connection broke: a flight that
 * ends with COMMIT is made, or certainly not made, or nobody knows (StoreUnavailable).
 */
import type { Call, Connection, Reply } from '../connection/connection.ts';
import { ConnectionLost } from '../connection/connection.ts';
import { unavailable } from '../connection/failure.ts';
import type { CommitTable, Work } from './commit-table.ts';
import { meaningOf } from './error-meaning.ts';
import type { Fence } from './fence.ts';
import { commit, type Frame, firstRevOf, rollback } from './transaction.ts';

/** What every way of committing needs. */
export type Room = {
  readonly connection: Connection;
  readonly tables: readonly CommitTable[];
  readonly fence: Fence;
  readonly frame: Frame;
};

/** Units to be made, and until when, on the clock of `performance.now()`. */
export type Batch = { readonly works: readonly Work[]; readonly endsAt: number };

/** The batch is certain not to be committed and may be done again. */
export class NotCommitted extends Error {
  override readonly name = 'NotCommitted';
}

/** Part of the time left that a transaction may take: the rest is for finding out what became of it. */
const transactionShare = 0.6;
/** A transaction is not begun for less. */
const transactionLeastMs = 5;

/** @throws StoreUnavailable when too little time is left to begin one */
export function transactionMs(endsAt: number): number {
  const leftMs = (endsAt - performance.now()) * transactionShare;
  if (leftMs < transactionLeastMs) throw unavailable('the database did not answer in time');
  return leftMs;
}

/**
 * Sends calls that commit nothing. After a failure the transaction is over.
 * @throws NotCommitted when the connection broke, or the DatabaseError of the server
 */
export async function ask(
  { connection }: Room,
  calls: readonly Call[],
  timeoutMs: number,
): Promise<readonly Reply[]> {
  try {
    return await connection.send(calls, timeoutMs);
  } catch (error) {
    if (error instanceof ConnectionLost && error.sent)
      throw new NotCommitted('the connection broke', { cause: error });
    if (!(error instanceof ConnectionLost)) await giveUp(connection);
    throw error;
  }
}

/** Ends the transaction under way; a connection that breaks over it ends it as well. */
export async function giveUp(connection: Connection): Promise<void> {
  await connection.send([rollback]).catch(() => undefined);
}

/** How a transaction ends. */
export type Ending = {
  /** How many it commits; the first of them gets the revision that is answered. */
  readonly units: number;
  /** Numbers of the tables that it changes. */
  readonly touched: readonly number[];
  readonly timeoutMs: number;
  /** Until when its outcome may be found out, on the clock of `performance.now()`. */
  readonly endsAt: number;
};

/**
 * Sends the last calls of a transaction with its `close` and COMMIT.
 * @throws NotCommitted, the DatabaseError of the server (nothing is committed then), or StoreUnavailable
 */
export async function commitCalls(
  { connection, fence, frame }: Room,
  calls: readonly Call[],
  { units, touched, timeoutMs, endsAt }: Ending,
): Promise<number> {
  const batch = fence.nextBatch();
  const flight = [...calls, frame.close(batch, units, touched), commit];
  try {
    const replies = await connection.send(flight, timeoutMs);
    return firstRevOf(replies.at(-2)?.rows);
  } catch (error) {
    if (error instanceof ConnectionLost && !error.sent) throw error;
    if (!(error instanceof ConnectionLost) && meaningOf(error) !== 'unknown') throw error;
    fence.drop();
    const firstRev = await fence.findOut(batch, endsAt);
    if (firstRev === undefined) {
      throw new NotCommitted('the connection broke before the commit', { cause: error });
    }
    return firstRev;
  }
}
