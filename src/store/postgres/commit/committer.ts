/**
 * Gathers units and keeps exactly one batch under way, so that all that arrive while one transaction is made durable form the next
 * (group commit). Units are taken in the order in which they came; revisions are given in that order.
 *
 * States: idle (nothing under way), busy (one batch or purge under way), closed (takes nothing more; `close` waits until all that
 * was taken is settled). From idle, the first unit waits for the end of the event-loop turn, so that a turn is one
 * batch; from busy, the end of a batch starts the next at once, before the promises of the last one settle.
 */
import { type Commit, StoreUnavailable, type Unit } from '../../store.ts';
import type { Connection } from '../connection/connection.ts';
import { unavailable } from '../connection/failure.ts';
import type { Layout, TableNumbers } from '../schema/layout.ts';
import { type BatchRoom, commitBatch } from './commit-batch.ts';
import { type CommitTable, commitTables, resolveUnit, type Work } from './commit-table.ts';
import { Fence } from './fence.ts';
import type { Made, Outcome } from './outcome.ts';
import { type Purged, type PurgeRoom, type PurgeStep, purgeStep } from './purge.ts';
import { transactionFrame } from './transaction.ts';

export type CommitterOptions = {
  /** Used by nobody else. */
  readonly connection: Connection;
  readonly layouts: readonly Layout[];
  readonly numbers: TableNumbers;
  readonly schema: string;
  /** Where commits are notified. */
  readonly channel: string;
  /** Tells this committer from every other one, of this process or another, at any time. */
  readonly writer: string;
  /** Units that may wait; more are StoreUnavailable. */
  readonly unitsWaitingMax: number;
  readonly unitsWaitingBytesMax: number;
  readonly unitsPerTransactionMax: number;
  /** Characters of documents after which a batch takes no further unit. */
  readonly charactersPerTransactionMax: number;
  /** For a batch from its start to its outcome; a unit that waited for so long is not begun. */
  readonly timeoutMs: number;
  /** How often a batch is done again that the database undid. */
  readonly retriesMax: number;
  /** Ids of rows last updated before the time (ms), at most so many; may take long. */
  readonly findOld: (table: string, updatedBefore: number, limit: number) => Promise<readonly string[]>;
  /** Called after the promises of a batch settled: numbers of tables, each with the last revision that changed it. */
  readonly onChanged: (touched: ReadonlyMap<number, number>) => void;
  readonly onBatch: (units: number, durationMs: number) => void;
  /** A batch or purge failed with StoreUnavailable. */
  readonly onFailed: (error: unknown) => void;
};

export type Committer = {
  /** @throws TypeError for a unit that names what is not declared; StoreUnavailable */
  commit(unit: Unit): Promise<Commit>;
  purge(table: string, updatedBefore: number, limit: number): Promise<number>;
  /** Units that wait for a batch; those under way not counted. */
  readonly unitsWaiting: number;
  /** Commits what was taken, then leaves the list of writers. The connection stays open. */
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

/** In memory, at most. */
const octetsPerCharacter = 2;

class BatchingCommitter implements Committer {
  readonly #options: CommitterOptions;
  readonly #room: BatchRoom & PurgeRoom;
  readonly #byName: ReadonlyMap<string, CommitTable>;
  #waiting: Waiting[] = [];
  #charactersWaiting = 0;
  readonly #purges: WaitingPurge[] = [];
  #busy = false;
  #scheduled = false;
  #idle: (() => void) | undefined;
  #closing: Promise<void> | undefined;

  constructor(options: CommitterOptions) {
    const { connection, layouts, numbers, schema, channel, writer, retriesMax } = options;
    const tables = commitTables(layouts, numbers, schema);
    const fence = new Fence(connection, schema, writer);
    const frame = transactionFrame(schema, writer, channel);
    this.#options = options;
    this.#room = { connection, tables, fence, frame, schema, channel, retriesMax };
    this.#byName = new Map(tables.map((table) => [table.layout.table.name, table]));
    void this.#arrive();
  }

  get unitsWaiting(): number {
    return this.#waiting.length;
  }

  commit(unit: Unit): Promise<Commit> {
    if (this.#closing !== undefined) return Promise.reject(unavailable('the store is closed'));
    if (this.#waiting.length >= this.#options.unitsWaitingMax) {
      return Promise.reject(unavailable(`${this.#waiting.length} writes wait to be committed`));
    }
    return new Promise((resolve, reject) => {
      // A unit that cannot be resolved rejects here.
      const work = resolveUnit(unit, this.#byName);
      const characters = this.#charactersWaiting + work.characters;
      // A document above the bound is taken alone.
      if (this.#waiting.length > 0 && octetsPerCharacter * characters > this.#options.unitsWaitingBytesMax) {
        reject(unavailable(`${this.#charactersWaiting} characters wait to be committed`));
        return;
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

  /** The writer's row is made before the first batch needs it; a batch makes up for it where this fails. */
  async #arrive(): Promise<void> {
    this.#busy = true;
    const endsAt = performance.now() + this.#options.timeoutMs;
    try {
      await this.#room.fence.ensure(endsAt);
      await this.#room.fence.removeForgotten(this.#options.timeoutMs);
    } catch {
      // The first batch says so, if there is one and it still cannot.
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
    // A row that stays is removed by another process in time.
    await this.#room.fence.removeOwn(this.#options.timeoutMs).catch(() => undefined);
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
    let taken = 0;
    for (const waiting of this.#waiting) {
      if (batch.length >= unitsPerTransactionMax || characters >= charactersPerTransactionMax) break;
      taken += 1;
      this.#charactersWaiting -= waiting.work.characters;
      if (waiting.since < startedBefore) {
        waiting.reject(unavailable('the write waited too long to be committed'));
        continue;
      }
      batch.push(waiting);
      characters += waiting.work.characters;
    }
    this.#waiting = taken === this.#waiting.length ? [] : this.#waiting.slice(taken);
    return batch;
  }

  async #runBatch(batch: readonly Waiting[]): Promise<void> {
    this.#busy = true;
    const started = performance.now();
    const works = batch.map(({ work }) => work);
    const made = await commitBatch(this.#room, { works, endsAt: started + this.#options.timeoutMs });
    this.#busy = false;
    this.#next();
    for (const [index, { resolve, reject }] of batch.entries()) {
      const outcome = made.outcomes[index] as Outcome;
      if ('commit' in outcome) resolve(outcome.commit);
      else reject(outcome.error);
    }
    this.#report(made, batch.length, performance.now() - started);
  }

  #report({ outcomes, touched }: Made, units: number, durationMs: number): void {
    const failure = outcomes.find(
      (outcome) => 'error' in outcome && outcome.error instanceof StoreUnavailable,
    );
    if (failure !== undefined && 'error' in failure) this.#options.onFailed(failure.error);
    if (outcomes.some((outcome) => 'commit' in outcome)) this.#options.onBatch(units, durationMs);
    if (touched.size > 0) this.#options.onChanged(touched);
  }

  async #runPurge({ step, resolve, reject }: WaitingPurge): Promise<void> {
    this.#busy = true;
    try {
      resolve(await purgeStep(this.#room, step, performance.now() + this.#options.timeoutMs));
    } catch (error) {
      if (error instanceof StoreUnavailable) this.#options.onFailed(error);
      reject(error);
    }
    this.#busy = false;
    this.#next();
  }
}
