/**
 * The statements around the changes of every commit, in this order: `begin`, `open` (the fence and the settings of this transaction),
 * `draw` (the revisions, and with them the lock that serialises the commits of all processes), the changes, `close` (the tables touched and
 * the writer), `commit`.
 * `begin` and `commit` are simple queries: a pooler that lost a prepared BEGIN would let every later statement commit by itself. If that
 * happens nevertheless, the statements of changes lack the setting `comity.rev` and fail.
 */
import { quoteName } from '../../quote-name.ts';
import type { Call, Rows } from '../connection/connection.ts';

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
export const serverSql = '(extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint::text';

/** Milliseconds since the epoch by the server's clock, which all writers share. */
export const serverTimeMs = '(extract(epoch FROM clock_timestamp()) * 1000)::bigint';

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
