/**
 * The statements around the changes of every commit, in this order: `begin`, `open` (the fence and the settings of this transaction),
 * `draw` (the revisions, and with them the lock that serialises the commits of all processes), the changes, `close` (the tables touched and
 * the writer), `commit`.
 * `begin` and `commit` are simple queries: a pooler that lost a prepared BEGIN would let every later statement commit by itself. If that
 * happens nevertheless, the statements of changes lack the setting `comity.rev` and fail.
 */
import { setTimeout as pause } from 'node:timers/promises';
import {
  clockRevisionMax,
  raiseStepMin,
  raiseStepRange,
  raisesKeptMax,
  revisionsPerSecond,
} from '../../revision.ts';
import { quoteName } from '../../sql-text.ts';
import { StoreUnavailable } from '../../store.ts';
import { type Call, type Connection, ConnectionLost, type Rows } from '../connection/connection.ts';
import { unawaited } from '../connection/session.ts';
import { asUnavailable, isRetryable } from '../postgres-failure.ts';

/** Message of `comity_expect` if another epoch of this writer has begun. */
export const fenceText = 'fence';
/** Message of `comity_expect` if the session leads to another server than the one that this writer knows. */
export const serverText = 'server';
/** Message of `comity_expect` if the session is not the one that began the transaction. */
export const sessionText = 'session';

export const begin: Call = call('BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE');
export const commit: Call = call('COMMIT');
export const rollback: Call = call('ROLLBACK');

export type Frame = {
  /** @param timeoutMs the server's limit for the transaction */
  open(known: { readonly epoch: number; readonly server: string | null }, timeoutMs: number): Call;
  /** Raises the store-wide revision and locks it until the end of the transaction; returns the new value. */
  draw(units: number): Call;
  /** Fails unless the transaction that drew is still open: the first call of a second flight, which may use another session. */
  resume(): Call;
  /** Returns the first revision of the batch. @param touched numbers of the tables that it changed */
  close(batch: number, units: number, touched: readonly number[]): Call;
};

const statementShare = 0.8;
/** Limit of table numbers in a notification, whose payload holds 8000 bytes. Polling finds the others. */
const notifiedTablesMax = 1000;

export function transactionFrame(schema: string, writer: string, channel: string): Frame {
  const quoted = quoteName(schema);
  const settings = [
    // A statement ends a little before the client gives up, so that the reply still arrives.
    ...['lock_timeout', 'statement_timeout'].map((name) => setting(name, '$3')),
    ...transactionBounds,
    // With `off`, the server would acknowledge writes that a crash undoes.
    setting(
      'synchronous_commit',
      `CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END`,
    ),
    ...plannerSettings.map(([name, value]) => setting(name, `'${value}'`)),
  ];
  const open = `SELECT ${settings.join(', ')}, ${quoted}.comity_expect((SELECT count(*) FROM (SELECT FROM ${quoted}.comity_writers WHERE writer = $1 AND epoch = $2 FOR NO KEY UPDATE) AS own), 1, '${fenceText}'), ${quoted}.comity_expect((${serverSql} = coalesce($5::text, ${serverSql}))::int, 1, '${serverText}')`;
  const draw = `UPDATE ${quoted}.comity_counters SET rev = rev + $1::int WHERE n = 0 RETURNING rev, set_config('comity.rev', rev::text, true)`;
  const resume = `SELECT ${quoted}.comity_expect((SELECT rev FROM ${quoted}.comity_counters WHERE n = 0), nullif(current_setting('comity.rev', true), '')::bigint, '${sessionText}')`;
  const close = `WITH last AS MATERIALIZED (SELECT current_setting('comity.rev')::bigint AS rev),
 tables AS (UPDATE ${quoted}.comity_counters AS counter SET rev = last.rev FROM last WHERE n = ANY($4::int[])),
 own AS (UPDATE ${quoted}.comity_writers SET batch = $2, first_rev = last.rev - $3::int + 1, last_rev = last.rev, seen_at = ${serverTimeMs} FROM last WHERE writer = $1)
SELECT last.rev - $3::int + 1, CASE WHEN $5::text <> '' THEN pg_notify($6, last.rev || ':' || $5)::text END FROM last`;
  return {
    open: ({ epoch, server }, timeoutMs) => {
      const statementMs = String(Math.ceil(timeoutMs * statementShare));
      return { sql: open, values: [writer, epoch, statementMs, String(Math.ceil(timeoutMs)), server] };
    },
    draw: (units) => ({ sql: draw, values: [units] }),
    resume: () => ({ sql: resume, values: [] }),
    close: (batch, units, touched) => ({
      sql: close,
      values: [writer, batch, units, touched, touched.slice(0, notifiedTablesMax).join(','), channel],
    }),
  };
}

/**
 * The server, as one run of it: when it started, in microseconds. A standby that takes over, a restored copy and a restarted server each have
 * a time of their own.
 */
const serverSql = '(extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint::text';

/** Milliseconds since the epoch by the server's clock, which all writers share. */
const serverTimeMs = '(extract(epoch FROM clock_timestamp()) * 1000)::bigint';

export function firstRevOf(rows: Rows | undefined): number {
  const rev = rows?.[0]?.[0];
  if (typeof rev !== 'number') throw new TypeError('the transaction returned no revision');
  return rev;
}

/**
 * Bounds a transaction whose client was cut off by the network, because it holds the lock of all commits: the server would wait until its
 * kernel's keepalive fails, two hours by default. The first setting ends a transaction idle between two flights, the second (PostgreSQL 17)
 * any that takes too long; before 17 the transaction makes the kernel probe sooner.
 */
const transactionBounds: readonly string[] = [
  setting('idle_in_transaction_session_timeout', '$4'),
  `CASE WHEN current_setting('transaction_timeout', true) IS NOT NULL THEN set_config('transaction_timeout', $4, true)
 ELSE set_config('tcp_keepalives_idle', '2', true) || set_config('tcp_keepalives_interval', '1', true) || set_config('tcp_keepalives_count', '3', true) END`,
];

/**
 * Every statement looks a few rows up by index. The planner must not prefer a sequential scan because a table was small when its plan was
 * made: the plan is kept while the table grows. Plain index scans also mark entries of dead rows, which bitmap scans do not, and rows of
 * counters leave many.
 */
const plannerSettings: readonly (readonly [string, string])[] = [
  ['plan_cache_mode', 'force_generic_plan'],
  ['enable_seqscan', 'off'],
  ['enable_bitmapscan', 'off'],
  ['enable_nestloop', 'off'],
  ['enable_mergejoin', 'off'],
  ['jit', 'off'],
];

function setting(name: string, value: string): string {
  return `set_config('${name}', ${value}, true)`;
}

function call(sql: string): Call {
  return { sql, values: [], prepared: false };
}

/*
 * Fences off earlier epochs of this writer, finds out if a batch was committed whose connection broke (comity_writers), and raises the counter
 * of revisions (revision.ts) when the writer begins and when its session leads to another server: with the fence, so that no batch is
 * committed before.
 * Every commit locks its writer's row at the known epoch, and stores the number of the batch in it. Taking the fence starts a new epoch: it
 * waits for a transaction that still holds the row, and any later one does not find its epoch and fails. So what the row then says about
 * the last batch is final.
 * Modes: `taken` (an epoch is known) and `open` (none is, or the outcome of the last batch is unknown). taken -> open when a batch's
 * outcome is lost or another epoch was found; open -> taken by `ensure` and `findOut`.
 */

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

/*
 * The counter of revisions raised on PostgreSQL (revision.ts): when a process begins to commit, when the server is not the one of the last
 * raise, or when the process knows a revision that the counter has not reached. Processes that meet the same new server raise once.
 */

/**
 * Calls within a transaction. The last returns the server, and the raised counter or null.
 * @param schema not quoted
 * @param clock milliseconds since the epoch; the database's counts if it is ahead
 */
function raiseCalls(
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
