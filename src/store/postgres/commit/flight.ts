/** Sends a batch's statements. A flight that ends with COMMIT is committed, not committed, or unknown (StoreUnavailable). */

import { DatabaseError } from 'pg';
import { StoreUnavailable } from '../../store.ts';
import { type Call, type Connection, ConnectionLost, type Reply } from '../connection/connection.ts';
import { isRetryable, sqlState } from '../connection/connection-failure.ts';
import type { CommitTable, Work } from './commit-table.ts';
import type { Fence } from './fence.ts';
import {
  commit,
  type Frame,
  fenceText,
  firstRevOf,
  rollback,
  serverText,
  sessionText,
} from './transaction.ts';

export type CommitContext = {
  readonly connection: Connection;
  readonly tables: readonly CommitTable[];
  readonly fence: Fence;
  readonly frame: Frame;
};

/** Units to commit; `endsAt` is on the clock of `performance.now()`. */
export type Batch = { readonly works: readonly Work[]; readonly endsAt: number };

/** Thrown for a batch that is certainly not committed and may be retried. */
export class NotCommitted extends Error {
  override readonly name = 'NotCommitted';
}

/** Share of the remaining time for the transaction: the rest is for finding out its outcome. */
const transactionShare = 0.6;
const transactionLeastMs = 5;

/** @throws StoreUnavailable if too little time is left to start a transaction */
export function transactionMs(endsAt: number): number {
  const leftMs = (endsAt - performance.now()) * transactionShare;
  if (leftMs < transactionLeastMs)
    throw new StoreUnavailable('the database did not respond in time (COMITY_DATABASE_TIMEOUT_MS)');
  return leftMs;
}

/**
 * Sends calls without a commit. After a failure the transaction has ended.
 * @throws NotCommitted if the connection broke, or the server's DatabaseError
 */
export async function ask(
  { connection }: CommitContext,
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

/** Rolls back the transaction; if the connection breaks, the server does. */
export async function giveUp(connection: Connection): Promise<void> {
  await connection.send([rollback]).catch(() => undefined);
}

export type Ending = {
  /** Units that it commits; the reply is the revision of the first. */
  readonly units: number;
  /** Numbers of the tables that it changes. */
  readonly touched: readonly number[];
  readonly timeoutMs: number;
  /** Deadline for finding out the outcome, on the clock of `performance.now()`. */
  readonly endsAt: number;
};

/**
 * Sends the last calls of a transaction with its `close` and COMMIT.
 * @throws NotCommitted, the server's DatabaseError (nothing is committed then), or StoreUnavailable
 */
export async function commitCalls(
  { connection, fence, frame }: CommitContext,
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
    if (isUnencodable(error)) await giveUp(connection);
    if (!(error instanceof ConnectionLost) && meaningOf(error) !== 'unknown') throw error;
    fence.drop();
    const firstRev = await fence.findOut(batch, endsAt);
    if (firstRev === undefined) {
      throw new NotCommitted('the connection broke before the commit', { cause: error });
    }
    return firstRev;
  }
}

/**
 * `refused`: an assumption of the units does not hold. `values`: some unit's values are invalid. `again`: a retry may succeed immediately.
 * `fence`: another epoch began; take the fence and retry. `failed`: storage fails; the transaction was rolled back. `unknown`: it may have
 * been committed.
 */
type Meaning = 'refused' | 'values' | 'again' | 'fence' | 'failed' | 'unknown';

/** SQLSTATE raised by `comity_expect`. */
const unexpected = 'CM001';

/** Classes of errors that roll back the transaction; others, such as a full disk (53100), may stop the server during a commit. */
const undoing: ReadonlySet<string> = new Set([
  '0A',
  '20',
  '21',
  '22',
  '23',
  '25',
  '26',
  '40',
  '42',
  '54',
  '55',
  'P0',
]);
const ofValues: ReadonlySet<string> = new Set(['21', '22', '23', '54']);

/** No statement could be made of the units' values, such as a text that would be too long. */
function isUnencodable(error: unknown): boolean {
  return error instanceof TypeError || error instanceof RangeError || error instanceof SyntaxError;
}

/** Classifies a failed commit by SQLSTATE, by what is certain about the transaction (connection/connection-failure.ts has the others). */
export function meaningOf(error: unknown): Meaning {
  if (isUnencodable(error)) return 'values';
  const state = sqlState(error);
  if (state === undefined) return 'unknown';
  if (state === unexpected) {
    const { message } = error as DatabaseError;
    return [fenceText, serverText, sessionText].includes(message) ? 'fence' : 'refused';
  }
  if (isRetryable(error)) return 'again';
  const kind = state.slice(0, 2);
  if (ofValues.has(kind)) return 'values';
  return undoing.has(kind) ? 'failed' : 'unknown';
}

/** The constraint or index that a value violated, and its table. */
export function violationOf(error: unknown): { readonly index: string; readonly table: string } | undefined {
  if (sqlState(error) !== '23505' || !(error instanceof DatabaseError)) return undefined;
  const { constraint, table } = error;
  return constraint === undefined || table === undefined ? undefined : { index: constraint, table };
}
