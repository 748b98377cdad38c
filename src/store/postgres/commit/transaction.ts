/**
 * The statements around the changes of every commit, in this order: `begin`, `open` (the fence and the settings of this
 * transaction), `draw` (the revisions, and with them the lock that makes commits of all processes one after the other), the
 * changes, `close` (what the transaction touched, and who committed it), `commit`.
 *
 * `begin` and `commit` go as simple queries: a pooler that lost a prepared BEGIN would let every statement after it
 * commit by itself. Should that happen all the same, the statements of changes miss the setting `comity.rev` and fail.
 */
import { quoteName } from '../../quote-name.ts';
import type { Call, Rows } from '../connection/connection.ts';

/** What `comity_expect` says when another epoch of this writer has begun. */
export const fenceText = 'fence';
/** What it says when the session is not the one that the transaction was begun in. */
export const sessionText = 'session';

export const begin: Call = call('BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE');
export const commit: Call = call('COMMIT');
export const rollback: Call = call('ROLLBACK');

export type Frame = {
  /** @param timeoutMs how long the server lets the transaction take */
  open(epoch: number, timeoutMs: number): Call;
  /** Raises the store-wide revision and holds it until the end of the transaction; answers its new value. */
  draw(units: number): Call;
  /** Fails unless the transaction that drew is still under way: the first of a second flight, before which the connection may have changed. */
  resume(): Call;
  /** Answers the first revision of the batch. @param touched numbers of the tables that it changed */
  close(batch: number, units: number, touched: readonly number[]): Call;
};

const statementShare = 0.8;
/** The most table numbers that a notification names: its payload holds 8000 bytes. Others are found by polling. */
const notifiedTablesMax = 1000;

export function transactionFrame(schema: string, writer: string, channel: string): Frame {
  const quoted = quoteName(schema);
  const settings = [
    // A statement ends a little before the client gives up, so that the answer still arrives.
    ...['lock_timeout', 'statement_timeout'].map((name) => setting(name, '$3')),
    ...transactionBounds,
    // A server told not to wait for its disk would acknowledge writes that a crash undoes.
    setting(
      'synchronous_commit',
      `CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END`,
    ),
    ...plannerSettings.map(([name, value]) => setting(name, `'${value}'`)),
  ];
  const open = `SELECT ${settings.join(', ')}, ${quoted}.comity_expect((SELECT count(*) FROM (SELECT FROM ${quoted}.comity_writers WHERE writer = $1 AND epoch = $2 FOR NO KEY UPDATE) AS own), 1, '${fenceText}')`;
  const draw = `UPDATE ${quoted}.comity_counters SET rev = rev + $1::int WHERE n = 0 RETURNING rev, set_config('comity.rev', rev::text, true)`;
  const resume = `SELECT ${quoted}.comity_expect((SELECT rev FROM ${quoted}.comity_counters WHERE n = 0), nullif(current_setting('comity.rev', true), '')::bigint, '${sessionText}')`;
  const close = `WITH last AS MATERIALIZED (SELECT current_setting('comity.rev')::bigint AS rev),
 tables AS (UPDATE ${quoted}.comity_counters AS counter SET rev = last.rev FROM last WHERE n = ANY($4::int[])),
 own AS (UPDATE ${quoted}.comity_writers SET batch = $2, first_rev = last.rev - $3::int + 1, last_rev = last.rev, seen_at = ${serverTimeMs} FROM last WHERE writer = $1)
SELECT last.rev - $3::int + 1, CASE WHEN $5::text <> '' THEN pg_notify($6, last.rev || ':' || $5)::text END FROM last`;
  return {
    open: (epoch, timeoutMs) => {
      const statementMs = String(Math.ceil(timeoutMs * statementShare));
      return { sql: open, values: [writer, epoch, statementMs, String(Math.ceil(timeoutMs))] };
    },
    draw: (units) => ({ sql: draw, values: [units] }),
    resume: () => ({ sql: resume, values: [] }),
    close: (batch, units, touched) => ({
      sql: close,
      values: [writer, batch, units, touched, touched.slice(0, notifiedTablesMax).join(','), channel],
    }),
  };
}

/** Milliseconds since the epoch by the server's clock, which all writers share. */
export const serverTimeMs = '(extract(epoch FROM clock_timestamp()) * 1000)::bigint';

export function firstRevOf(rows: Rows | undefined): number {
  const rev = rows?.[0]?.[0];
  if (typeof rev !== 'number') throw new TypeError('the transaction gave no revision');
  return rev;
}

/**
 * A client that the network cut off in the middle of a flight must not hold the lock of all commits: the server would wait for
 * the rest until its kernel's keepalive fails, two hours by default. The first ends what stands idle between two
 * flights, the second (PostgreSQL 17) whatever is not over in time; before 17 the kernel is told to ask sooner.
 */
const transactionBounds: readonly string[] = [
  setting('idle_in_transaction_session_timeout', '$4'),
  `CASE WHEN current_setting('transaction_timeout', true) IS NOT NULL THEN set_config('transaction_timeout', $4, true)
 ELSE set_config('tcp_keepalives_idle', '2', true) || set_config('tcp_keepalives_interval', '1', true) || set_config('tcp_keepalives_count', '3', true) END`,
];

/**
 * Every statement looks a handful of rows up by index. The planner must not see a table that was small when its plan was made, and
 * prefer to read all of it: the plan is kept while the table grows. Plain index scans besides mark entries of dead rows, which
 * bitmap scans do not, and rows of counters leave many.
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
