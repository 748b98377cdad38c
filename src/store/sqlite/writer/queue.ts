/**
 * The calling thread's side of the writer: collects units and keeps exactly one batch under way, so that all units that arrive during a
 * transaction form the next one (group commit).
 * States: idle; busy (one request under way); closed (accepts nothing, and `close` waits until it is idle). In the idle state the first
 * unit waits for the end of the turn of the event loop, so that a turn is one batch; in the busy state a reply starts the next batch
 * immediately. If the writer thread dies, the request under way fails, and the next request starts another thread.
 */
import { Worker } from 'node:worker_threads';
import { ownEmitter } from '../../../observe/own-emitter.ts';
import { isOnlyExpected } from '../../change-listeners.ts';
import type { ProvisionalRevisions } from '../../provisional-revisions.ts';
import { type Commit, eventsTable, StoreUnavailable, type Unit } from '../../store.ts';
import { workerFile } from '../../worker-file.ts';
import type { Damage } from '../integrity.ts';
import { unavailable } from '../sqlite-failure.ts';
import {
  type Cell,
  encodeUnit,
  type Reply,
  type Request,
  unitCharacters,
  type WriterData,
} from './writer-messages.ts';

export type QueueOptions = {
  readonly unitsWaitingMax: number;
  readonly unitsWaitingBytesMax: number;
  readonly unitsPerTransactionMax: number;
  readonly charactersPerTransactionMax: number;
  /** Called before a batch's promises settle, so that reads see it from then on. */
  readonly onCommitted: () => void;
  /** Called afterwards, with the tables that the batch changed. */
  readonly onChanged: (tables: ReadonlySet<string>) => void;
  readonly onBatch: (units: number, durationMs: number) => void;
  readonly onFailed: (error: unknown) => void;
  readonly damage: Damage;
  readonly revisions: ProvisionalRevisions;
};

type Waiting = {
  readonly unit: Unit;
  readonly characters: number;
  readonly resolve: (commit: Commit) => void;
  readonly reject: (error: unknown) => void;
};

type Purge = {
  readonly request: Request & { kind: 'purge' | 'probe' };
  readonly resolve: (rows: number) => void;
  readonly reject: (error: unknown) => void;
};

type UnderWay =
  | { readonly kind: 'commit'; readonly units: readonly Waiting[]; readonly started: number }
  | { readonly kind: 'purge'; readonly purge: Purge }
  | { readonly kind: 'close'; readonly done: () => void };

/** Upper bound in memory. */
const octetsPerCharacter = 2;

export class WriterQueue {
  readonly #data: WriterData;
  readonly #options: QueueOptions;
  readonly #indexOf: ReadonlyMap<string, number>;
  #waiting: Waiting[] = [];
  #charactersWaiting = 0;
  readonly #purges: Purge[] = [];
  #worker: Worker | undefined;
  #underWay: UnderWay | undefined;
  #full: StoreUnavailable | undefined;
  #scheduled = false;
  #closed: (() => void) | undefined;
  #closing: Promise<void> | undefined;

  constructor(data: WriterData, tables: readonly string[], options: QueueOptions) {
    this.#data = data;
    this.#options = options;
    this.#indexOf = new Map(tables.map((name, index) => [name, index]));
    this.#start();
  }

  get unitsWaiting(): number {
    return this.#waiting.length;
  }

  get alive(): boolean {
    return this.#worker !== undefined && this.#closing === undefined;
  }

  commit(unit: Unit): Promise<Commit> {
    if (this.#closing !== undefined) return Promise.reject(unavailable('the store is closed'));
    if (this.#waiting.length >= this.#options.unitsWaitingMax) {
      return Promise.reject(
        unavailable(
          `${this.#waiting.length} writes wait to be committed: the queue is full (COMITY_UNITS_WAITING_MAX)`,
        ),
      );
    }
    const characters = unitCharacters(unit);
    // Accepts a unit above the limit if nothing else waits.
    if (
      this.#waiting.length > 0 &&
      octetsPerCharacter * (this.#charactersWaiting + characters) > this.#options.unitsWaitingBytesMax
    ) {
      return Promise.reject(
        unavailable(
          `${this.#charactersWaiting} characters wait to be committed: the queue is full (COMITY_UNITS_WAITING_BYTES_MAX)`,
        ),
      );
    }
    return new Promise((resolve, reject) => {
      this.#options.damage.refuse();
      this.#charactersWaiting += characters;
      this.#waiting.push({ unit, characters, resolve, reject });
      this.#schedule();
    });
  }

  /** Removes those of the rows that are still last updated before the time. */
  purge(table: string, updatedBefore: number, ids: readonly string[]): Promise<number> {
    if (this.#closing !== undefined) return Promise.reject(unavailable('the store is closed'));
    return new Promise((resolve, reject) => {
      this.#purges.push({ request: { kind: 'purge', table, updatedBefore, ids }, resolve, reject });
      this.#schedule();
    });
  }

  /** After a write found the disk full: checks for space. @throws StoreUnavailable */
  async probe(): Promise<void> {
    if (this.#full === undefined) return;
    if (this.#closing !== undefined) throw unavailable('the store is closed');
    await new Promise<number>((resolve, reject) => {
      this.#purges.push({ request: { kind: 'probe' }, resolve, reject });
      this.#schedule();
    });
  }

  close(): Promise<void> {
    this.#closing ??= new Promise((resolve) => {
      this.#closed = resolve;
      this.#schedule();
    });
    return this.#closing;
  }

  #schedule(): void {
    if (this.#underWay !== undefined || this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      this.#next();
    });
  }

  #next(): void {
    if (this.#underWay !== undefined) return;
    const purge = this.#purges.shift();
    if (purge !== undefined) {
      this.#underWay = { kind: 'purge', purge };
      this.#post(purge.request);
    } else if (this.#waiting.length > 0) this.#postBatch();
    else if (this.#closed !== undefined) {
      this.#underWay = { kind: 'close', done: this.#closed };
      this.#post({ kind: 'close' });
    } else this.#worker?.unref();
  }

  #postBatch(): void {
    const { unitsPerTransactionMax, charactersPerTransactionMax } = this.#options;
    const cells: Cell[] = [];
    const units: Waiting[] = [];
    let characters = 0;
    let taken = 0;
    for (const waiting of this.#waiting) {
      if (units.length >= unitsPerTransactionMax || characters >= charactersPerTransactionMax) break;
      taken += 1;
      this.#charactersWaiting -= waiting.characters;
      try {
        encodeUnit(waiting.unit, { indexOf: this.#indexOf, revisions: this.#options.revisions }, cells);
        units.push(waiting);
        characters += waiting.characters;
      } catch (error) {
        waiting.reject(error);
      }
    }
    this.#waiting = taken === this.#waiting.length ? [] : this.#waiting.slice(taken);
    if (units.length === 0) {
      this.#next();
      return;
    }
    this.#underWay = { kind: 'commit', units, started: performance.now() };
    this.#post({ kind: 'commit', units: units.length, cells });
  }

  #post(request: Request): void {
    const worker = this.#worker ?? this.#start();
    // Keeps the process running during a commit, but not for an idle writer.
    worker.ref();
    try {
      worker.postMessage(request);
    } catch (error) {
      // The request contains a value that cannot be cloned, so the writer never received it.
      this.#fail(error);
    }
  }

  #start(): Worker {
    const worker: Worker = ownEmitter(
      new Worker(workerFile('./writer-thread', import.meta.url), { workerData: this.#data }),
      (error) => this.#died(worker, error),
    );
    worker.unref();
    worker.on('message', (reply: Reply) => this.#answer(reply));
    worker.on('exit', () => this.#died(worker, new Error('the writer thread ended')));
    this.#worker = worker;
    return worker;
  }

  #died(worker: Worker, error: unknown): void {
    if (this.#worker !== worker) return;
    this.#worker = undefined;
    if (this.#underWay?.kind === 'close') this.#settleClose();
    else this.#fail(unavailable('the writer thread ended', error));
  }

  #answer(reply: Reply): void {
    const underWay = this.#underWay;
    if (underWay === undefined) return;
    if (reply.kind === 'failed') {
      this.#options.damage.note(reply.fault, reply.message);
      const error = unavailable(`storage failed: ${reply.message}`, undefined, reply.fault);
      if (reply.fault === 'storage_full') this.#full = error;
      this.#fail(error);
      return;
    }
    if (underWay.kind === 'close') {
      this.#worker = undefined;
      this.#settleClose();
      return;
    }
    this.#underWay = undefined;
    this.#full = undefined;
    this.#options.onCommitted();
    if (underWay.kind === 'commit' && reply.kind === 'committed')
      this.#settleRevisions(underWay.units, reply);
    // Sends the next batch before the promises of this one settle, so that the writer never waits for them.
    this.#next();
    if (underWay.kind === 'purge') {
      const rows = reply.kind === 'purged' ? reply.rows : 0;
      underWay.purge.resolve(rows);
      const { request } = underWay.purge;
      if (rows > 0 && request.kind === 'purge') this.#options.onChanged(new Set([request.table]));
    } else if (reply.kind === 'committed') {
      const changed = settle(underWay.units, reply);
      this.#options.onBatch(underWay.units.length, performance.now() - underWay.started);
      if (changed.size > 0) this.#options.onChanged(changed);
    }
  }

  /** Before the next batch is encoded, in which units may expect revisions of this one. */
  #settleRevisions(units: readonly Waiting[], { firstRev, refusals }: Reply & { kind: 'committed' }): void {
    let refused = 0;
    for (const [index, { unit }] of units.entries()) {
      const isRefused = refusals[refused]?.unit === index;
      if (unit.provisional !== undefined) {
        const rev = isRefused ? undefined : firstRev + index - refused;
        this.#options.revisions.settle(unit.provisional, rev);
      }
      if (isRefused) refused += 1;
    }
  }

  /** Fails the request under way and schedules the next. */
  #fail(error: unknown): void {
    const underWay = this.#underWay;
    this.#underWay = undefined;
    if (error instanceof StoreUnavailable) this.#options.onFailed(error);
    if (underWay?.kind === 'commit') for (const { reject } of underWay.units) reject(error);
    if (underWay?.kind === 'purge') underWay.purge.reject(error);
    if (underWay?.kind === 'close') underWay.done();
    else this.#schedule();
  }

  #settleClose(): void {
    const underWay = this.#underWay;
    this.#underWay = undefined;
    if (underWay?.kind === 'close') underWay.done();
  }
}

/** @returns the tables that were changed */
function settle(units: readonly Waiting[], reply: Reply & { kind: 'committed' }): ReadonlySet<string> {
  const changed = new Set<string>();
  let rev = reply.firstRev;
  let refused = 0;
  for (const [index, { unit, resolve, reject }] of units.entries()) {
    const refusal = reply.refusals[refused];
    if (refusal === undefined || refusal.unit !== index) {
      resolve({ outcome: 'committed', rev });
      for (const change of unit.changes) if (!isOnlyExpected(change)) changed.add(change.table);
      if (unit.events.length > 0) changed.add(eventsTable);
      rev += 1;
      continue;
    }
    refused += 1;
    if ('error' in refusal) reject(refusal.error);
    else resolve(refusal.commit);
  }
  return changed;
}
