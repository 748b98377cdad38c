/**
 * Who this writer is to the database, and whether a batch whose connection broke was committed (comity_writers).
 *
 * Every commit locks its writer's row at the epoch it knows, and leaves the number of the batch there. Taking the fence
 * begins a new epoch: it waits for a transaction that still holds the row, and any that comes later finds its
 * epoch gone and fails. What the row then says of the last batch stays true.
 *
 * Modes: `taken` (an epoch is known), `open` (none is, or what the last batch came to is not known). taken -> open when a batch's
 * outcome is lost or another epoch was found; open -> taken by `ensure` and `findOut`.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { quoteName } from '../../quote-name.ts';
import { type Call, type Connection, ConnectionLost } from '../connection/connection.ts';
import { asUnavailable, isRetryable, unavailable } from '../connection/failure.ts';
import { begin, commit, serverTimeMs } from './transaction.ts';

/** The last batch of this writer that was committed. */
type Committed = { readonly batch: number; readonly firstRev: number };

/** Rows of writers that did not commit for so long are removed; a writer that comes back makes its row anew. */
const forgottenAfterMs = 86_400_000;
/** Part of the time left after which the server gives up, so that its answer still arrives. */
const serverShare = 0.8;
/** Between two attempts to reach the database. */
const pauseMostMs = 50;

export class Fence {
  readonly #connection: Connection;
  readonly #writer: string;
  readonly #sql: ReturnType<typeof fenceSql>;
  #epoch = 0;
  #taken = false;
  #batch = 0;

  constructor(connection: Connection, schema: string, writer: string) {
    this.#connection = connection;
    this.#writer = writer;
    this.#sql = fenceSql(schema);
  }

  get epoch(): number {
    return this.#epoch;
  }

  /** A number for what is sent next: never one that was sent before. */
  nextBatch(): number {
    this.#batch += 1;
    return this.#batch;
  }

  /** Another epoch was found, or an outcome is unknown. */
  drop(): void {
    this.#taken = false;
  }

  /**
   * Begins an epoch, if none is known.
   * @param endsAt on the clock of `performance.now()`
   * @throws StoreUnavailable when there is no connection, or no answer in time
   */
  async ensure(endsAt: number): Promise<void> {
    if (!this.#taken) await this.#take(endsAt, 'at once');
  }

  /**
   * Whether the batch was committed: begins an epoch, after which it cannot be any more, however long that has to wait for a connection.
   * @returns the first revision of the batch, undefined if it was not committed
   * @throws StoreUnavailable when it cannot be found out in time
   */
  async findOut(batch: number, endsAt: number): Promise<number | undefined> {
    const last = await this.#take(endsAt, 'with patience');
    return last.batch === batch ? last.firstRev : undefined;
  }

  async #take(endsAt: number, manner: 'at once' | 'with patience'): Promise<Committed> {
    this.#taken = false;
    for (;;) {
      const leftMs = endsAt - performance.now();
      if (leftMs < 1) throw unavailable('the database did not answer in time');
      try {
        return await this.#takeOnce(leftMs);
      } catch (error) {
        const isAgain = isRetryable(error) || (error instanceof ConnectionLost && manner === 'with patience');
        if (!isAgain) throw asUnavailable(error);
        await pause(Math.min(leftMs, (0.5 + Math.random() / 2) * pauseMostMs));
      }
    }
  }

  /** Removes rows of writers that are no more. */
  async removeForgotten(timeoutMs: number): Promise<void> {
    await this.#connection.send(
      [{ sql: this.#sql.forget, values: [forgottenAfterMs, this.#writer], prepared: false }],
      timeoutMs,
    );
  }

  async removeOwn(timeoutMs: number): Promise<void> {
    this.#taken = false;
    await this.#connection.send(
      [{ sql: this.#sql.remove, values: [this.#writer], prepared: false }],
      timeoutMs,
    );
  }

  async #takeOnce(leftMs: number): Promise<Committed> {
    const calls: Call[] = [
      begin,
      { sql: this.#sql.bound, values: [String(Math.ceil(leftMs * serverShare))] },
      { sql: this.#sql.take, values: [this.#writer, this.#epoch + 1] },
      commit,
    ];
    const replies = await this.#connection.send(calls, leftMs);
    const [epoch, batch, firstRev] = (replies[2]?.rows[0] ?? []) as readonly number[];
    if (epoch === undefined || batch === undefined || firstRev === undefined) {
      throw new TypeError('the fence gave no epoch');
    }
    this.#epoch = epoch;
    this.#taken = true;
    return { batch, firstRev };
  }
}

function fenceSql(schema: string): {
  readonly bound: string;
  readonly take: string;
  readonly forget: string;
  readonly remove: string;
} {
  const writers = `${quoteName(schema)}.comity_writers`;
  return {
    bound: `SELECT set_config('lock_timeout', $1, true), set_config('statement_timeout', $1, true)`,
    // A row made anew, after it was removed as forgotten, begins above every epoch that this writer had.
    take: `INSERT INTO ${writers} AS own (writer, epoch, batch, first_rev, last_rev, seen_at)
VALUES ($1, $2, 0, 0, 0, ${serverTimeMs})
ON CONFLICT (writer) DO UPDATE SET epoch = greatest(own.epoch + 1, excluded.epoch), seen_at = excluded.seen_at
RETURNING epoch, batch, first_rev`,
    // Two processes that start at once must not wait for each other.
    forget: `DELETE FROM ${writers} WHERE writer IN (SELECT writer FROM ${writers} WHERE seen_at < ${serverTimeMs} - $1::bigint AND writer <> $2 FOR UPDATE SKIP LOCKED)`,
    remove: `DELETE FROM ${writers} WHERE writer = $1`,
  };
}
