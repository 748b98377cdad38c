/**
 * The other processes on this schema. Each process keeps a row in `comity_processes` with the facts that must be equal in all, and reads
 * the others' rows at the same time: it logs a process that was started with another configuration, as during a rolling restart. Work that
 * a process claimed and did not finish is released once the process counts as gone. Times are the database's, so clocks that differ between
 * machines do no harm here; they do elsewhere (times of jobs and retries), so each process measures its own against the database's, writes
 * the difference, and compares it with the others'.
 */
import type { Observe } from '../../observe/observation.ts';
import { quoteName } from '../sql-text.ts';
import { type Call, type Rows, unawaited } from './connection/session.ts';

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
  /** Milliseconds since the epoch. Default `Date.now`. */
  readonly clock?: () => number;
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
/** Clocks that differ by more are reported. */
const clocksDifferMsMax = 3000;
/** A clock is measured by the answers that come within this time: a slower one says too little. */
const measuredWithinMs = 1000;
const aheadFact = 'clockAheadMs';

export function startPeers(options: PeersOptions): Peers {
  const { send, process, facts, observe, clock = Date.now } = options;
  const everyMs = options.everyMs ?? everyMsDefault;
  const table = `${quoteName(options.schema)}.comity_processes`;
  const lookSql = lookSqlOf(table);
  const ours = new Map(Object.entries(facts));
  const told = new Set<string>();
  let failing = false;
  let looking: Promise<void> | undefined;
  const clocks = compareClocks(clock, observe);

  function tell(name: string, theirs: string): void {
    const difference = JSON.stringify([name, theirs]);
    if (ours.get(name) === theirs || told.has(difference)) return;
    if (told.size >= toldMax) told.clear();
    told.add(difference);
    observe({ kind: 'processes-differ', what: phrases[name] ?? `another ${name}` });
  }

  async function lookOnce(): Promise<void> {
    try {
      const sentAt = clock();
      const rows = await send({
        sql: lookSql,
        values: [process, JSON.stringify({ ...facts, ...clocks.fact() }), everyMs * missedMax, keptMs],
      });
      clocks.take(sentAt, rows);
      for (const [name, theirs] of rows) {
        if (name !== databaseClock && name !== aheadFact) tell(String(name), String(theirs));
      }
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
      await send({
        sql: `DELETE FROM ${table} USING ${unawaited} WHERE process = $1 RETURNING process`,
        values,
      }).catch(() => {
        // The other processes soon consider this one gone, and remove the row.
      });
    },
  };
}

/** Observes a difference when it begins and when it ends. A look measures this clock, and the next one writes that and compares. */
function compareClocks(clock: () => number, observe: Observe) {
  /** Milliseconds by which this clock is ahead of the database's, as last measured. */
  let aheadMs: number | undefined;
  let differed = false;
  return {
    fact: () => (aheadMs === undefined ? {} : { [aheadFact]: String(aheadMs) }),
    /** @param sentAt when the statement that gave the rows was sent */
    take(sentAt: number, rows: Rows): void {
      const tookMs = clock() - sentAt;
      const databaseMs = Number(rows.find(([name]) => name === databaseClock)?.[1]);
      if (tookMs >= 0 && tookMs <= measuredWithinMs) aheadMs = Math.round(sentAt + tookMs / 2 - databaseMs);
      if (aheadMs === undefined) return;
      const own = aheadMs;
      const others = rows.filter(([name]) => name === aheadFact).map(([, ahead]) => Number(ahead) - own);
      const furthest = others.sort((one, other) => Math.abs(other) - Math.abs(one))[0] ?? 0;
      const differs = Math.abs(furthest) > clocksDifferMsMax;
      if (differs !== differed) observe({ kind: 'clocks-differ', otherAheadMs: differs ? furthest : 0 });
      differed = differs;
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

/** Names the row of the database's time among those of facts. */
const databaseClock = '';

/** One statement, so a process that reads others' rows has renewed its own. Locks rows in one order, and skips locked ones. */
function lookSqlOf(table: string): string {
  return `WITH moment AS MATERIALIZED (SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS ms FROM ${unawaited}),
mine AS (
  INSERT INTO ${table} (process, seen_at, facts) SELECT $1::text, ms, $2::text FROM moment
  ON CONFLICT (process) DO UPDATE SET seen_at = excluded.seen_at, facts = excluded.facts
),
gone AS (
  SELECT process FROM ${table}, moment WHERE seen_at < ms - $4::bigint AND process <> $1::text
  ORDER BY process FOR UPDATE SKIP LOCKED
),
removed AS (DELETE FROM ${table} USING gone WHERE ${table}.process = gone.process)
SELECT '${databaseClock}'::text, ms::text FROM moment
UNION SELECT fact.name, fact.told FROM ${table}, moment, json_each_text(facts::json) AS fact (name, told)
WHERE process <> $1::text AND seen_at >= ms - $3::bigint ORDER BY 1, 2`;
}
