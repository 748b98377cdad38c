/**
 * Counters shared by all processes (`tally` of the contract), in the unlogged table `comity_tallies`: a crash of the server empties it, and
 * no commit waits for a disk. All requests of one turn of the event loop are one statement.
 * Rows are locked in the order of their keys, so two processes never deadlock. Expired rows are swept in slices of the primary key, in
 * proportion to the requested keys; no statement reads the whole table. A lane that retries a call after its connection broke may add
 * twice; limits tolerate that.
 */
import { quoteName } from '../sql-text.ts';
import type { Tally } from '../store.ts';
import type { Call, Rows } from './connection/connection.ts';

type Lane = { send(call: Call): Promise<Rows> };

export type Tallies = (tallies: readonly Tally[]) => Promise<readonly number[]>;

/** A sweep checks two rows per requested key, so it keeps up with any rate of new keys. */
const keysBeforeSlice = 250;
const rowsOfSlice = 500;
/** Expired counters are kept this long for processes whose clocks are behind the server's. */
const expiredKeptMs = 60_000;

type Waiting = {
  readonly tallies: readonly Tally[];
  readonly resolve: (totals: readonly number[]) => void;
  readonly reject: (error: unknown) => void;
};

/** @param schema not quoted */
export function createTallies(lane: Lane, schema: string): Tallies {
  const table = `${quoteName(schema)}.comity_tallies`;
  const addSql = addSqlOf(table);
  const sweep = createSweep(lane, table);
  let waiting: Waiting[] = [];

  function flush(): void {
    const turn = waiting;
    waiting = [];
    const sums = sumsOf(turn);
    lane.send(addCall(addSql, sums)).then(
      (rows) => {
        const totals = new Map(rows.map(([key, total]) => [String(key), Number(total)]));
        for (const { tallies, resolve } of turn) resolve(tallies.map(({ key }) => totals.get(key) ?? 0));
        sweep(sums.size);
      },
      (error: unknown) => {
        for (const { reject } of turn) reject(error);
      },
    );
  }

  return (tallies) => {
    if (tallies.length === 0) return Promise.resolve([]);
    return new Promise((resolve, reject) => {
      if (waiting.length === 0) queueMicrotask(flush);
      waiting.push({ tallies, resolve, reject });
    });
  };
}

type Sum = { add: number; expiresAt: number };

/** Sums by key, because a statement may change a row only once. */
function sumsOf(turn: readonly Waiting[]): ReadonlyMap<string, Sum> {
  const sums = new Map<string, Sum>();
  for (const { tallies } of turn) {
    for (const { key, add, expiresAt } of tallies) {
      const sum = sums.get(key);
      if (sum === undefined) sums.set(key, { add, expiresAt });
      else {
        sum.add += add;
        sum.expiresAt = Math.max(sum.expiresAt, expiresAt);
      }
    }
  }
  return sums;
}

function addCall(sql: string, sums: ReadonlyMap<string, Sum>): Call {
  const values = [...sums.values()];
  return {
    sql,
    values: [[...sums.keys()], values.map(({ add }) => add), values.map(({ expiresAt }) => expiresAt)],
  };
}

/** A read of an unknown key creates no row. */
function addSqlOf(table: string): string {
  return `WITH asked AS (
  SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[]) AS given (key, added, expires_at)
), written AS (
  INSERT INTO ${table} AS kept (key, total, expires_at)
  SELECT key, added, expires_at FROM asked WHERE added <> 0 ORDER BY key COLLATE "C"
  ON CONFLICT (key) DO UPDATE
  SET total = kept.total + excluded.total, expires_at = greatest(kept.expires_at, excluded.expires_at)
  RETURNING kept.key, kept.total
)
SELECT asked.key,
  coalesce(written.total, (SELECT total FROM ${table} AS found WHERE found.key = asked.key COLLATE "C"), 0)
FROM asked LEFT JOIN written ON written.key = asked.key COLLATE "C"`;
}

/** Sweeps the table by its primary key, one slice at a time, round and round. */
function createSweep(lane: Lane, table: string): (keys: number) => void {
  const sql = sliceSqlOf(table);
  let asked = 0;
  let after = '';
  let sweeping = false;

  async function sweep(): Promise<void> {
    while (asked >= keysBeforeSlice) {
      asked -= keysBeforeSlice;
      const [row] = await lane.send({ sql, values: [after] });
      after = typeof row?.[0] === 'string' ? row[0] : '';
    }
  }

  return (keys) => {
    asked += keys;
    if (sweeping) return;
    sweeping = true;
    const ended = () => {
      sweeping = false;
    };
    // After a failure the next slice starts at the same key.
    sweep().then(ended, ended);
  };
}

/**
 * Returns the key after which the next slice starts; null at the end. Skips rows that another process locks. Finds rows by their place,
 * with the limit in the text, so that no plan, however wrong its estimates, reads the whole table.
 */
function sliceSqlOf(table: string): string {
  const isOver = `expires_at < (extract(epoch FROM clock_timestamp()) * 1000)::bigint - ${expiredKeptMs}`;
  return `WITH slice AS (
  SELECT ctid, key, expires_at FROM ${table} WHERE key > $1::text ORDER BY key LIMIT ${rowsOfSlice}
), over AS (
  SELECT ctid FROM ${table}
  WHERE ctid = ANY (ARRAY(SELECT ctid FROM slice WHERE ${isOver})) AND ${isOver}
  FOR UPDATE SKIP LOCKED
), gone AS (
  DELETE FROM ${table} WHERE ctid = ANY (ARRAY(SELECT ctid FROM over))
)
SELECT CASE WHEN count(*) = ${rowsOfSlice} THEN max(key) END FROM slice`;
}
