/**
 * Fences off earlier epochs of this writer, finds out if a batch was committed whose connection broke (comity_writers), and raises the counter
 * of revisions (raised-revision.ts) when the writer begins and when its session leads to another server: with the fence, so that no batch is
 * committed before.
 * Every commit locks its writer's row at the known epoch, and stores the number of the batch in it. Taking the fence starts a new epoch: it
 * waits for a transaction that still holds the row, and any later one does not find its epoch and fails. So what the row then says about
 * the last batch is final.
 * Modes: `taken` (an epoch is known) and `open` (none is, or the outcome of the last batch is unknown). taken -> open when a batch's
 * outcome is lost or another epoch was found; open -> taken by `ensure` and `findOut`.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { quoteName } from '../../quote-name.ts';
import { StoreUnavailable } from '../../store.ts';
import { unawaited } from '../connection/call.ts';
import { type Call, type Connection, ConnectionLost } from '../connection/connection.ts';
import { asUnavailable, isRetryable } from '../connection/connection-failure.ts';
import { raiseCalls } from './raise.ts';
import { begin, commit, serverTimeMs } from './transaction.ts';

type Committed = { readonly batch: number; readonly firstRev: number };

/** Rows of writers without a commit for this long are removed; a writer that returns creates its row again. */
const forgottenAfterMs = 86_400_000;
/** Share of the remaining time that the server may use, so that its reply still arrives. */
const serverShare = 0.8;
/** Upper bound of the pause between two attempts to reach the database. */
const pauseMostMs = 50;

export type FenceOptions = {
  readonly connection: Connection;
  /** Not quoted. */
  readonly schema: string;
  readonly writer: string;
  /** The newest revision that this process knows; undefined: the counter is not raised, for a store that is only looked at. */
  readonly newestRev: (() => number) | undefined;
  /** Milliseconds since the epoch. Default `Date.now`. */
  readonly clock?: (() => number) | undefined;
  /** Called after the counter was raised, by this process or by another that met the new server first. */
  readonly onRaised: () => void;
};

export class Fence {
  readonly #options: FenceOptions;
  readonly #connection: Connection;
  readonly #writer: string;
  readonly #sql: ReturnType<typeof fenceSql>;
  readonly #raise: ReturnType<typeof raiseCalls>;
  #epoch = 0;
  /** The server of the last epoch; null before the first one, and for a store that is only looked at. */
  #server: string | null = null;
  #taken = false;
  #batch = 0;

  constructor(options: FenceOptions) {
    this.#options = options;
    this.#connection = options.connection;
    this.#writer = options.writer;
    this.#sql = fenceSql(options.schema);
    this.#raise = raiseCalls(options.schema, options.clock ?? Date.now);
  }

  get epoch(): number {
    return this.#epoch;
  }

  get server(): string | null {
    return this.#server;
  }

  /** The number of the next batch, never used before. */
  nextBatch(): number {
    this.#batch += 1;
    return this.#batch;
  }

  /** Records that another epoch was found, or an outcome is unknown. */
  drop(): void {
    this.#taken = false;
  }

  /**
   * Starts an epoch unless one is known.
   * @param endsAt on the clock of `performance.now()`
   * @throws StoreUnavailable without a connection or a reply in time
   */
  async ensure(endsAt: number): Promise<void> {
    if (!this.#taken) await this.#take(endsAt, 'at once');
  }

  /**
   * Finds out if the batch was committed: starts an epoch, after which it cannot be any more, and waits for a connection if necessary.
   * @returns the first revision of the batch, undefined if it was not committed
   * @throws StoreUnavailable if the outcome cannot be found out in time
   */
  async findOut(batch: number, endsAt: number): Promise<number | undefined> {
    const last = await this.#take(endsAt, 'with patience');
    return last.batch === batch ? last.firstRev : undefined;
  }

  async #take(endsAt: number, manner: 'at once' | 'with patience'): Promise<Committed> {
    this.#taken = false;
    for (;;) {
      const leftMs = endsAt - performance.now();
      if (leftMs < 1)
        throw new StoreUnavailable('the database did not respond in time (COMITY_DATABASE_TIMEOUT_MS)');
      try {
        return await this.#takeOnce(leftMs);
      } catch (error) {
        const isAgain = isRetryable(error) || (error instanceof ConnectionLost && manner === 'with patience');
        if (!isAgain) throw asUnavailable(error);
        await pause(Math.min(leftMs, (0.5 + Math.random() / 2) * pauseMostMs));
      }
    }
  }

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
    const { newestRev, onRaised } = this.#options;
    const calls: Call[] = [
      begin,
      { sql: this.#sql.bound, values: [String(Math.ceil(leftMs * serverShare))] },
      { sql: this.#sql.take, values: [this.#writer, this.#epoch + 1] },
      ...(newestRev === undefined ? [] : this.#raise(newestRev(), this.#server === null)),
      commit,
    ];
    const replies = await this.#connection.send(calls, leftMs);
    if (newestRev !== undefined) {
      const [server, raised] = replies.at(-2)?.rows[0] ?? [];
      const isOther = this.#server !== String(server);
      this.#server = String(server);
      if (raised !== null || isOther) onRaised();
    }
    const [epoch, batch, firstRev] = (replies[2]?.rows[0] ?? []) as readonly number[];
    if (epoch === undefined || batch === undefined || firstRev === undefined) {
      throw new TypeError('the fence returned no epoch');
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
    // A row created again after its removal starts above every epoch that this writer had.
    take: `INSERT INTO ${writers} AS own (writer, epoch, batch, first_rev, last_rev, seen_at)
VALUES ($1, $2, 0, 0, 0, ${serverTimeMs})
ON CONFLICT (writer) DO UPDATE SET epoch = greatest(own.epoch + 1, excluded.epoch), seen_at = excluded.seen_at
RETURNING epoch, batch, first_rev`,
    // SKIP LOCKED, so that two processes that start at the same time do not wait for each other.
    forget: `DELETE FROM ${writers} USING ${unawaited} WHERE writer IN (SELECT writer FROM ${writers} WHERE seen_at < ${serverTimeMs} - $1::bigint AND writer <> $2 FOR UPDATE SKIP LOCKED)`,
    remove: `DELETE FROM ${writers} USING ${unawaited} WHERE writer = $1`,
  };
}
