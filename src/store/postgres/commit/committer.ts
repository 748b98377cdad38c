/**
 * Commits on PostgreSQL: what each batch of the queue (group-commit.ts) becomes, over one connection and under the writer's fence; purges; and
 * whether commits hang.
 */

import {
  type CommitEngine,
  GroupCommit,
  type Batch as QueuedBatch,
  storageFailure,
  type UnitBounds,
} from '../../group-commit.ts';
import { quoteName } from '../../quote-name.ts';
import { type Commit, eventsTable, StoreUnavailable, type Unit } from '../../store.ts';
import { purgedCounter, purgedCounterName } from '../../version-text.ts';
import type { Call, Connection } from '../connection/connection.ts';
import { asUnavailable } from '../connection/connection-failure.ts';
import type { Layout, TableNumbers } from '../schema/schema-layout.ts';
import { type BatchContext, commitBatch } from './commit-batch.ts';
import { type CommitTable, commitTables, resolveUnit, type Work } from './commit-table.ts';
import { Fence, type FenceOptions } from './fence.ts';
import { type CommitContext, transactionMs } from './flight.ts';
import { drawnRev } from './statements.ts';
import { begin, commit, transactionFrame } from './transaction.ts';

export type CommitterOptions = {
  readonly connection: Connection;
  readonly layouts: readonly Layout[];
  readonly numbers: TableNumbers;
  readonly schema: string;
  readonly channel: string;
  /** Identifies this committer among all, of any process and at any time. */
  readonly writer: string;
  /** Timeout of a batch from its start to its outcome; a unit that waited longer is not started. */
  readonly timeoutMs: number;
  /** Retries of a batch that the database rolled back. */
  readonly retriesMax: number;
  /** Finds ids of rows last updated before the time (ms), at most `limit`; may take long. */
  readonly findOld: (table: string, updatedBefore: number, limit: number) => Promise<readonly string[]>;
  /** Called after a batch's promises settled: numbers of tables, each with the last revision that changed it. */
  readonly onChanged: (touched: ReadonlyMap<number, number>) => void;
} & Pick<CommitEngine, 'revisions' | 'observe'> &
  Pick<FenceOptions, 'newestRev' | 'onRaised' | 'clock'>;

export class Committer {
  readonly queue: GroupCommit;
  /** Resolves when the first attempt to begin has ended, successful or not. */
  readonly ready: Promise<void>;
  readonly #options: CommitterOptions;
  readonly #context: BatchContext & PurgeContext;
  readonly #byName: ReadonlyMap<string, CommitTable>;
  #isStalled = false;
  #probing: Promise<void> | undefined;
  #closing: Promise<void> | undefined;

  constructor(options: CommitterOptions, bounds: UnitBounds) {
    const { connection, layouts, numbers, schema, channel, writer, retriesMax } = options;
    const { revisions, observe, timeoutMs } = options;
    const tables = commitTables(layouts, numbers, schema);
    const fence = new Fence(options);
    const frame = transactionFrame(schema, writer, channel);
    this.#options = options;
    this.#context = { connection, tables, fence, frame, schema, channel, retriesMax };
    this.#byName = new Map(tables.map((table) => [table.layout.table.name, table]));
    this.queue = new GroupCommit(
      { begin: () => this.#begin(), revisions, observe, unitWaitMs: timeoutMs },
      bounds,
    );
    this.ready = this.queue.alone(() => this.#arrive());
  }

  /** @throws TypeError for an undeclared table or reference; UnitTooLarge; StoreUnavailable */
  commit(unit: Unit): Promise<Commit> {
    return this.queue.commit(unit);
  }

  /** True since a batch failed with the storage and none was committed afterwards. */
  get isStalled(): boolean {
    return this.#isStalled;
  }

  /** Commits a change of its own, unless writes that clients wait for do so soon. @throws StoreUnavailable */
  probe(): Promise<void> {
    this.#probing ??= this.#probeOnce().finally(() => {
      this.#probing = undefined;
    });
    return this.#probing;
  }

  /** Takes the fence anew, which is a commit that waits for what every commit waits for. */
  async #probeOnce(): Promise<void> {
    if (this.queue.isBusy) throw new StoreUnavailable('no write was committed since one failed');
    await this.queue.alone(async () => {
      this.#context.fence.drop();
      await this.#context.fence.ensure(this.#endsAt());
      this.#isStalled = false;
    });
  }

  async purge(name: string, updatedBefore: number, limit: number): Promise<number> {
    const table = this.#byName.get(name);
    if (table === undefined) throw new TypeError(`no table is named ${name}`);
    const find = () => this.#options.findOld(name, updatedBefore, limit);
    return this.queue.purge(find, async (ids) => {
      const { rows, rev } = await purgeStep(this.#context, { table, updatedBefore, ids }, this.#endsAt());
      if (rows > 0) this.#options.onChanged(new Map([[table.number, rev]]));
      return rows;
    });
  }

  /** Commits accepted units, then deletes the writer's row. The connection stays open. */
  close(): Promise<void> {
    this.#closing ??= this.#leave();
    return this.#closing;
  }

  #endsAt(): number {
    return performance.now() + this.#options.timeoutMs;
  }

  /** Creates the writer's row before the first batch needs it; if this fails, the first batch creates it. */
  async #arrive(): Promise<void> {
    const { fence } = this.#context;
    try {
      await fence.ensure(this.#endsAt());
      await fence.removeForgotten(this.#options.timeoutMs);
    } catch {
      // The first batch reports the failure if it persists.
      this.#isStalled = true;
    }
  }

  async #leave(): Promise<void> {
    await this.queue.close();
    // Another process eventually removes a row that stays.
    await this.#context.fence.removeOwn(this.#options.timeoutMs).catch(() => undefined);
  }

  #begin(): QueuedBatch {
    const { revisions, onChanged } = this.#options;
    const works: Work[] = [];
    return {
      add: (unit) => void works.push(resolveUnit(unit, this.#byName, revisions)),
      commit: async () => {
        const { outcomes, touched } = await commitBatch(this.#context, { works, endsAt: this.#endsAt() });
        if (storageFailure(outcomes) !== undefined) this.#isStalled = true;
        else if (touched.size > 0) this.#isStalled = false;
        return { outcomes, announce: () => (touched.size > 0 ? onChanged(touched) : undefined) };
      },
    };
  }
}

type PurgeContext = CommitContext & { readonly schema: string; readonly channel: string };

type PurgeStep = {
  readonly table: CommitTable;
  readonly updatedBefore: number;
  readonly ids: readonly string[];
};

type Purged = { readonly rows: number; readonly rev: number };

/**
 * Removes old rows in one flight, under the lock of every commit, and checks the time of each again. The revision and the table's version
 * rise only if a row was removed. Only for logs: references are not checked.
 * @throws StoreUnavailable; rows may then be removed or not, and the next purge finds the remaining ones
 */
async function purgeStep(context: PurgeContext, step: PurgeStep, endsAt: number): Promise<Purged> {
  const { connection, fence, frame } = context;
  try {
    await fence.ensure(endsAt);
    const timeoutMs = transactionMs(endsAt);
    const opening = [begin, frame.open(fence, timeoutMs), atThisServer, frame.draw(0)];
    const replies = await connection.send([...opening, purgeCall(context, step), commit], timeoutMs);
    const [rows, rev] = (replies[opening.length]?.rows[0] ?? []) as readonly number[];
    return { rows: rows ?? 0, rev: rev ?? 0 };
  } catch (error) {
    fence.drop();
    throw asUnavailable(error);
  }
}

/** A purge waits for no replica: what it removed may come back, and is removed again. */
const atThisServer: Call = { sql: 'SET LOCAL synchronous_commit = local', values: [], prepared: false };

function purgeCall({ schema, channel }: PurgeContext, { table, updatedBefore, ids }: PurgeStep): Call {
  const counters = `${quoteName(schema)}.comity_counters`;
  const isLog = table.layout.table.name === eventsTable;
  const sql = `WITH gone AS (DELETE FROM ${table.layout.name} WHERE id = ANY($1::text[]) AND updated_at < $2::bigint AND rev <= ${drawnRev} RETURNING rev),
 ${
   isLog
     ? `kept AS (INSERT INTO ${counters} AS counter (n, name, rev) SELECT ${purgedCounter}, '${purgedCounterName}', max(rev) FROM gone HAVING count(*) > 0
   ON CONFLICT (n) DO UPDATE SET rev = greatest(counter.rev, excluded.rev)),`
     : ''
 }
 purged AS MATERIALIZED (SELECT count(*) AS rows, ${drawnRev} + 1 AS rev FROM gone),
 raised AS (UPDATE ${counters} AS counter SET rev = purged.rev FROM purged WHERE n IN (0, $3::int) AND purged.rows > 0)
SELECT rows, rev, CASE WHEN rows > 0 THEN pg_notify($4, rev || ':' || $3::int)::text END FROM purged`;
  return { sql, values: [ids, updatedBefore, table.number, channel] };
}
