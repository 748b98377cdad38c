/**
 * The other processes on this schema. Each process keeps a row in `comity_processes` with the facts that must be equal in all, and reads
 * the others' rows at the same time: it logs a process that was started with another configuration, as during a rolling restart. Work that
 * a process claimed and did not finish is released once the process counts as gone. Times are the database's, so clocks that differ between
 * machines do no harm.
 */
import type { Observe } from '../../observe/observation.ts';
import { quoteName } from '../quote-name.ts';
import type { Call, Rows } from './connection/call.ts';

export type PeersOptions = {
  readonly send: (call: Call) => Promise<Rows>;
  /** Not quoted. */
  readonly schema: string;
  /** Identifies this process among all that ever run. */
  readonly process: string;
  /** Facts that must be equal in all processes, such as those of `fingerprintOf`. */
  readonly facts: Readonly<Record<string, string>>;
  /** Interval of the heartbeat. Default 5 s. */
  readonly everyMs?: number;
  readonly observe: Observe;
};

export type Peers = {
  /** Resolves after the first heartbeat, before which others take this process for gone; never rejects. */
  readonly ready: Promise<void>;
  /** Writes a heartbeat and reads the others; never rejects. */
  look(): Promise<void>;
  /** True if the process stopped, or missed so many heartbeats that it counts as gone. */
  hasEnded(process: string): Promise<boolean>;
  stop(): Promise<void>;
};

const everyMsDefault = 5000;
/** Heartbeats that a process may miss before it counts as gone. */
const missedMax = 3;
/** Any process removes a row that was not renewed for this long. */
const keptMs = 60_000;
/** Limit of remembered differences; beyond it they are logged again. */
const toldMax = 1000;

export function startPeers(options: PeersOptions): Peers {
  const { send, process, facts, observe } = options;
  const everyMs = options.everyMs ?? everyMsDefault;
  const table = `${quoteName(options.schema)}.comity_processes`;
  const lookSql = lookSqlOf(table);
  const ours = new Map(Object.entries(facts));
  const written = JSON.stringify(facts);
  const told = new Set<string>();
  let failing = false;
  let looking: Promise<void> | undefined;

  function tell(name: string, theirs: string): void {
    const difference = JSON.stringify([name, theirs]);
    if (ours.get(name) === theirs || told.has(difference)) return;
    if (told.size >= toldMax) told.clear();
    told.add(difference);
    observe({ kind: 'processes-differ', what: phrases[name] ?? `another ${name}` });
  }

  async function lookOnce(): Promise<void> {
    try {
      const rows = await send({
        sql: lookSql,
        values: [process, written, everyMs * missedMax, keptMs],
      });
      for (const [name, theirs] of rows) tell(String(name), String(theirs));
      failing = false;
    } catch (error) {
      if (!failing) observe({ kind: 'store-failed', what: 'looking for other processes', error });
      failing = true;
    }
  }

  function look(): Promise<void> {
    looking ??= lookOnce().finally(() => {
      looking = undefined;
    });
    return looking;
  }

  const timer = setInterval(look, everyMs).unref();

  return {
    ready: look(),
    look,
    async hasEnded(other) {
      if (other === process) return false;
      const rows = await send({ sql: aliveSqlOf(table), values: [other, everyMs * missedMax] });
      return rows.length === 0;
    },
    async stop() {
      clearInterval(timer);
      await looking;
      const values = [process];
      await send({ sql: `DELETE FROM ${table} WHERE process = $1 RETURNING process`, values }).catch(() => {
        // The other processes soon consider this one gone, and remove the row.
      });
    },
  };
}

const phrases: Readonly<Record<string, string>> = {
  program: 'another version of the program',
  collections: 'other collections',
  settings: 'other settings that must agree',
};

function aliveSqlOf(table: string): string {
  return `SELECT process FROM ${table}
WHERE process = $1 AND seen_at >= (extract(epoch FROM clock_timestamp()) * 1000)::bigint - $2::bigint`;
}

/** One statement, so a process that reads others' rows has renewed its own. Locks rows in one order, and skips locked ones. */
function lookSqlOf(table: string): string {
  return `WITH moment AS (SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS ms),
mine AS (
  INSERT INTO ${table} (process, seen_at, facts) SELECT $1::text, ms, $2::text FROM moment
  ON CONFLICT (process) DO UPDATE SET seen_at = excluded.seen_at, facts = excluded.facts
),
gone AS (
  SELECT process FROM ${table}, moment WHERE seen_at < ms - $4::bigint AND process <> $1::text
  ORDER BY process FOR UPDATE SKIP LOCKED
),
removed AS (DELETE FROM ${table} USING gone WHERE ${table}.process = gone.process)
SELECT DISTINCT fact.name, fact.told FROM ${table}, moment, json_each_text(facts::json) AS fact (name, told)
WHERE process <> $1::text AND seen_at >= ms - $3::bigint ORDER BY 1, 2`;
}
