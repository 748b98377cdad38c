/**
 * Collects units and keeps exactly one batch under way, so that all units that arrive during a transaction form the next one (group
 * commit). Units are taken in order of arrival, and get revisions in that order.
 * States: idle; busy (one batch or purge under way); closed (accepts nothing, and `close` waits until accepted units are settled). In the
 * idle state the first unit waits for the end of the turn of the event loop, so that a turn is one batch; in the busy state the end of a
 * batch starts the next immediately, before the promises of the last one settle.
 */

import type { ProvisionalRevisions } from '../../line.ts';
import { quoteName } from '../../quote-name.ts';
import { type Commit, eventsTable, StoreUnavailable, type Unit } from '../../store.ts';
import {
  batchCharacters,
  demandUnitFits,
  octetsPerCharacter,
  unitCharactersMaxOf,
  unitCharactersMost,
} from '../../unit-size.ts';
import { purgedCounter, purgedCounterName } from '../../version-text.ts';
import type { Call, Connection } from '../connection/connection.ts';
import { asUnavailable, unavailable } from '../connection/connection-failure.ts';
import type { Layout, TableNumbers } from '../schema/schema-layout.ts';
import { type BatchContext, commitBatch } from './commit-batch.ts';
import { type CommitTable, commitTables, resolveUnit, type Work, withRevisions } from './commit-table.ts';
import { Fence, type FenceOptions } from './fence.ts';
import { type CommitContext, transactionMs } from './flight.ts';
import type { BatchOutcome, Outcome } from './outcome.ts';
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
  /** Units that may wait; more get StoreUnavailable. */
  readonly unitsWaitingMax: number;
  readonly unitsWaitingBytesMax: number;
  readonly unitsPerTransactionMax: number;
  /** Characters of documents after which a batch takes no further unit. */
  readonly charactersPerTransactionMax: number;
  /** Timeout of a batch from its start to its outcome; a unit that waited longer is not started. */
  readonly timeoutMs: number;
  /** Retries of a batch that the database rolled back. */
  readonly retriesMax: number;
  /** Finds ids of rows last updated before the time (ms), at most `limit`; may take long. */
  readonly findOld: (table: string, updatedBefore: number, limit: number) => Promise<readonly string[]>;
  /** Called after a batch's promises settled: numbers of tables, each with the last revision that changed it. */
  readonly onChanged: (touched: ReadonlyMap<number, number>) => void;
  readonly onBatch: (units: number, durationMs: number) => void;
  /** Called when a batch or purge failed with StoreUnavailable. */
  readonly onFailed: (error: unknown) => void;
  readonly revisions: ProvisionalRevisions;
} & Pick<FenceOptions, 'newestRev' | 'onRaised' | 'clock'>;

export type Committer = {
  /** The longest unit that `commit` takes. */
  readonly unitCharactersMax: number;
  /** @throws TypeError for an undeclared table or reference; UnitTooLarge; StoreUnavailable */
  commit(unit: Unit): Promise<Commit>;
  purge(table: string, updatedBefore: number, limit: number): Promise<number>;
  readonly unitsWaiting: number;
  /** True since a batch failed with the storage and none was committed afterwards. */
  readonly isStalled: boolean;
  /** Commits a change of its own, unless writes that clients wait for do so soon. @throws StoreUnavailable */
  probe(): Promise<void>;
  /** Resolves when the first attempt to begin has ended, successful or not. */
  readonly ready: Promise<void>;
  /** Commits accepted units, then deletes the writer's row. The connection stays open. */
  close(): Promise<void>;
};

const rowsPerPurge = 500;

export function createCommitter(options: CommitterOptions): Committer {
  return new BatchingCommitter(options);
}

type Waiting = {
  readonly work: Work;
  readonly since: number;
  readonly resolve: (commit: Commit) => void;
  readonly reject: (error: unknown) => void;
};

type WaitingPurge = {
  readonly step: PurgeStep;
  readonly resolve: (purged: Purged) => void;
  readonly reject: (error: unknown) => void;
};

class BatchingCommitter implements Committer {
  readonly ready: Promise<void>;
  readonly #options: CommitterOptions;
  readonly #context: BatchContext & PurgeContext;
  readonly #byName: ReadonlyMap<string, CommitTable>;
  #waiting: Waiting[] = [];
  #charactersWaiting = 0;
  readonly #purges: WaitingPurge[] = [];
  #busy = false;
  #scheduled = false;
  #idle: (() => void) | undefined;
  #isStalled = false;
  #probing: Promise<void> | undefined;
  #closing: Promise<void> | undefined;

  constructor(options: CommitterOptions) {
    const { connection, layouts, numbers, schema, channel, writer, retriesMax } = options;
    const tables = commitTables(layouts, numbers, schema);
    const fence = new Fence(options);
    const frame = transactionFrame(schema, writer, channel);
    this.#options = options;
    this.#context = { connection, tables, fence, frame, schema, channel, retriesMax };
    this.#byName = new Map(tables.map((table) => [table.layout.table.name, table]));
    this.ready = this.#arrive();
  }

  get unitCharactersMax(): number {
    return unitCharactersMaxOf(this.#options.unitsWaitingBytesMax);
  }

  get unitsWaiting(): number {
    return this.#waiting.length;
  }

  get isStalled(): boolean {
    return this.#isStalled;
  }

  probe(): Promise<void> {
    this.#probing ??= this.#probeOnce().finally(() => {
      this.#probing = undefined;
    });
    return this.#probing;
  }

  /** Takes the fence anew, which is a commit that waits for what every commit waits for. */
  async #probeOnce(): Promise<void> {
    if (this.#busy) throw unavailable('no write was committed since one failed');
    this.#busy = true;
    try {
      const { fence } = this.#context;
      fence.drop();
      await fence.ensure(performance.now() + this.#options.timeoutMs);
      this.#isStalled = false;
    } finally {
      this.#busy = false;
      this.#next();
    }
  }

  commit(unit: Unit): Promise<Commit> {
    if (this.#closing !== undefined) return Promise.reject(unavailable('the store is closed'));
    if (this.#waiting.length >= this.#options.unitsWaitingMax) {
      return Promise.reject(
        unavailable(`${this.#waiting.length} writes wait to be committed: the queue is full`),
      );
    }
    return new Promise((resolve, reject) => {
      // `resolveUnit` throws for invalid units, which rejects the promise.
      const work = resolveUnit(unit, this.#byName);
      const { unitsWaitingBytesMax } = this.#options;
      demandUnitFits(work.characters, this.unitCharactersMax);
      const characters = this.#charactersWaiting + work.characters;
      if (octetsPerCharacter * characters > unitsWaitingBytesMax) {
        throw unavailable(
          `${this.#charactersWaiting} characters wait to be committed: the queue is full (COMITY_UNITS_WAITING_BYTES_MAX)`,
        );
      }
      this.#charactersWaiting = characters;
      this.#waiting.push({ work, since: performance.now(), resolve, reject });
      this.#schedule();
    });
  }

  async purge(name: string, updatedBefore: number, limit: number): Promise<number> {
    if (this.#closing !== undefined) throw unavailable('the store is closed');
    const table = this.#byName.get(name);
    if (table === undefined) throw new TypeError(`no table is named ${name}`);
    const ids = await this.#options.findOld(name, updatedBefore, limit);
    let rows = 0;
    for (let start = 0; start < ids.length; start += rowsPerPurge) {
      const some = ids.slice(start, start + rowsPerPurge);
      const purged = await this.#purge({ table, updatedBefore, ids: some });
      rows += purged.rows;
      if (purged.rows > 0) this.#options.onChanged(new Map([[table.number, purged.rev]]));
    }
    return rows;
  }

  close(): Promise<void> {
    this.#closing ??= this.#leave();
    return this.#closing;
  }

  #purge(step: PurgeStep): Promise<Purged> {
    if (this.#closing !== undefined) return Promise.reject(unavailable('the store is closed'));
    return new Promise((resolve, reject) => {
      this.#purges.push({ step, resolve, reject });
      this.#schedule();
    });
  }

  /** Creates the writer's row before the first batch needs it; if this fails, the first batch creates it. */
  async #arrive(): Promise<void> {
    this.#busy = true;
    const endsAt = performance.now() + this.#options.timeoutMs;
    try {
      await this.#context.fence.ensure(endsAt);
      await this.#context.fence.removeForgotten(this.#options.timeoutMs);
    } catch {
      // The first batch reports the failure if it persists.
      this.#isStalled = true;
    }
    this.#busy = false;
    this.#next();
  }

  async #leave(): Promise<void> {
    if (this.#busy || this.#waiting.length > 0 || this.#purges.length > 0) {
      await new Promise<void>((resolve) => {
        this.#idle = resolve;
      });
    }
    // Another process eventually removes a row that stays.
    await this.#context.fence.removeOwn(this.#options.timeoutMs).catch(() => undefined);
  }

  #schedule(): void {
    if (this.#busy || this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      this.#next();
    });
  }

  #next(): void {
    if (this.#busy) return;
    const purge = this.#purges.shift();
    if (purge !== undefined) {
      void this.#runPurge(purge);
      return;
    }
    const batch = this.#takeBatch();
    if (batch.length > 0) void this.#runBatch(batch);
    else this.#idle?.();
  }

  #takeBatch(): readonly Waiting[] {
    const { unitsPerTransactionMax, charactersPerTransactionMax, timeoutMs } = this.#options;
    const startedBefore = performance.now() - timeoutMs;
    const batch: Waiting[] = [];
    let characters = 0;
    let weight = 0;
    let taken = 0;
    for (const waiting of this.#waiting) {
      if (batch.length >= unitsPerTransactionMax || weight >= charactersPerTransactionMax) break;
      if (batch.length > 0 && characters + waiting.work.characters > unitCharactersMost) break;
      taken += 1;
      this.#charactersWaiting -= waiting.work.characters;
      if (waiting.since < startedBefore) {
        waiting.reject(unavailable('the write waited too long to be committed (COMITY_DATABASE_TIMEOUT_MS)'));
        continue;
      }
      batch.push(waiting);
      characters += waiting.work.characters;
      weight += batchCharacters(waiting.work.unit, waiting.work.characters);
    }
    this.#waiting = taken === this.#waiting.length ? [] : this.#waiting.slice(taken);
    return batch;
  }

  async #runBatch(batch: readonly Waiting[]): Promise<void> {
    this.#busy = true;
    const started = performance.now();
    const { revisions } = this.#options;
    const works = batch.map(({ work }) => withRevisions(work, revisions));
    const batchOutcome = await commitBatch(this.#context, {
      works,
      endsAt: started + this.#options.timeoutMs,
    });
    this.#busy = false;
    // Before the next batch is made, in which units may expect revisions of this one.
    for (const [index, { unit }] of works.entries())
      settleRevision(revisions, unit, batchOutcome.outcomes[index]);
    this.#next();
    for (const [index, { resolve, reject }] of batch.entries()) {
      const outcome = batchOutcome.outcomes[index] as Outcome;
      if ('commit' in outcome) resolve(outcome.commit);
      else reject(outcome.error);
    }
    this.#report(batchOutcome, batch.length, performance.now() - started);
  }

  #report({ outcomes, touched }: BatchOutcome, units: number, durationMs: number): void {
    const failure = outcomes.find(
      (outcome) => 'error' in outcome && outcome.error instanceof StoreUnavailable,
    );
    if (failure !== undefined && 'error' in failure) {
      this.#isStalled = true;
      this.#options.onFailed(failure.error);
    } else if (touched.size > 0) this.#isStalled = false;
    if (outcomes.some((outcome) => 'commit' in outcome)) this.#options.onBatch(units, durationMs);
    if (touched.size > 0) this.#options.onChanged(touched);
  }

  async #runPurge({ step, resolve, reject }: WaitingPurge): Promise<void> {
    this.#busy = true;
    try {
      resolve(await purgeStep(this.#context, step, performance.now() + this.#options.timeoutMs));
    } catch (error) {
      if (error instanceof StoreUnavailable) this.#options.onFailed(error);
      reject(error);
    }
    this.#busy = false;
    this.#next();
  }
}

function settleRevision(revisions: ProvisionalRevisions, unit: Unit, outcome: Outcome | undefined): void {
  if (unit.provisional === undefined || outcome === undefined) return;
  const rev = 'commit' in outcome && outcome.commit.outcome === 'committed' ? outcome.commit.rev : undefined;
  revisions.settle(unit.provisional, rev);
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
