/**
 * The calling thread's side of the reader threads: a bounded queue, fair by party, and threads that are started on demand (a start takes 40
 * ms, which would delay readiness).
 * A thread is in one of three modes: `idle`; `reading`, one statement at a time; or `stuck`, without a reply some time after the timeout.
 * The pool rejects a stuck thread's read, replaces the thread immediately, and ends it as soon as SQLite returns. If a thread dies, its
 * read fails and the next read starts another thread.
 */
import { availableParallelism } from 'node:os';
import process from 'node:process';
import { Worker } from 'node:worker_threads';
import { defaultSettings } from '../../../config/settings.ts';
import { FairQueue, hasLeft, nameOfParty, type Party } from '../../../model/fair-queue.ts';
import { ownEmitter } from '../../../observe/own-emitter.ts';
import type { SqlValue } from '../../field-value.ts';
import { placesOf } from '../../filter-shape.ts';
import type { OctetEnd } from '../../page-of-rows.ts';
import { type StorageFault, StoreUnavailable } from '../../store.ts';
import { workerFile } from '../../worker-file.ts';
import type { Cells, ConnectionOptions } from '../connection.ts';
import type { StoreOptions } from '../home.ts';
import type { Damage, HomeData } from '../home-state.ts';

type ReadRows = Omit<Extract<ReadReply, { kind: 'rows' }>, 'kind'>;

type Waiting = {
  readonly request: ReadRequest;
  readonly party: Party;
  readonly places: number;
  readonly resolve: (rows: ReadRows) => void;
  readonly reject: (error: unknown) => void;
};

type Thread = {
  readonly worker: Worker;
  reading: { readonly party: string; readonly item: Waiting; readonly timer: NodeJS.Timeout } | undefined;
  /** Shared with the thread: any value but 0 ends the current statement. */
  readonly cancelled: Int32Array;
  readonly ended: Promise<void>;
};

/** Time for a thread to end a statement after its timeout; one step of SQLite takes some milliseconds. */
const endingMs = 1000;

export class ReaderPool {
  readonly #data: Omit<ReaderData, 'cancelled'>;
  readonly #damage: Damage;
  readonly #threadsMax: number;
  readonly #threads: Thread[] = [];
  readonly #waiting: FairQueue<Waiting>;
  readonly #placesMax: number;
  readonly #nextPage: StoreOptions['nextPage'];
  /** True while pages that were read wait to be used: no other is read, because threads read faster than functions of an application show. */
  #isHeld = false;
  #closed = false;

  constructor({ path, connection }: HomeData, damage: Damage, options: StoreOptions) {
    const { scanTimeoutMs, readerThreads, readerQueueMax } = { ...defaultSettings, ...options };
    this.#data = { path, connection, scanTimeoutMs };
    this.#damage = damage;
    this.#nextPage = options.nextPage;
    // At least two, so that a scan of one party does not block the others.
    this.#threadsMax = readerThreads > 0 ? readerThreads : Math.min(4, Math.max(2, availableParallelism()));
    this.#placesMax = readerQueueMax;
    this.#waiting = new FairQueue(readerQueueMax, ({ places }) => places);
  }

  /**
   * @param bounds `party`: for whom the read is; with several threads, one party never holds all
   * @throws StoreUnavailable if too many reads wait, the client has left, the read times out, or storage fails
   */
  read(
    sql: string,
    parameters: readonly SqlValue[],
    tableNumber: number,
    bounds: Pick<ReadRequest, 'rest' | 'octets' | 'relatedNumbers' | 'probe'> & {
      readonly party?: Party | undefined;
    } = {},
  ): Promise<ReadRows> {
    const { party = '', ...octets } = bounds;
    if (this.#closed) return Promise.reject(new StoreUnavailable('the store is closed'));
    return new Promise((resolve, reject) => {
      this.#damage.refuse();
      const places = placesOf(parameters, this.#placesMax);
      const request = { sql, parameters, tableNumber, ...octets };
      this.#waiting.push(nameOfParty(party), { request, party, places, resolve, reject });
      this.#dispatch();
      for (const refused of this.#waiting.overflow()) {
        refused.reject(
          new StoreUnavailable(`${this.#waiting.count} long reads wait for a thread: the queue is full`),
        );
      }
    });
  }

  /** Ends the reads under way and rejects the waiting ones. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const { reject } of this.#waiting.drop()) reject(new StoreUnavailable('the store is closed'));
    const threads = [...this.#threads];
    for (const { worker, cancelled } of threads) {
      worker.ref();
      Atomics.store(cancelled, 0, 1);
      worker.postMessage('close');
    }
    await Promise.all(threads.map((thread) => thread.ended));
  }

  #dispatch(): void {
    while (!this.#closed && !this.#isHeld && this.#waiting.count > 0) {
      const thread = this.#threads.find(({ reading }) => reading === undefined) ?? this.#start();
      const next = thread === undefined ? undefined : this.#waiting.take((party) => this.#mayRead(party));
      if (thread === undefined || next === undefined) return;
      if (hasLeft(next.item.party)) next.item.reject(new StoreUnavailable('the client has left'));
      else this.#begin(thread, next);
    }
  }

  /** The page that was just read is used, or waits for its turn, once the promises that follow from it have settled. */
  #dispatchAfterUse(): void {
    const nextPage = this.#nextPage;
    if (nextPage === undefined) {
      this.#dispatch();
      return;
    }
    if (this.#isHeld) return;
    this.#isHeld = true;
    const end = (): void => {
      this.#isHeld = false;
      this.#dispatch();
    };
    const look = (): void => {
      const turn = nextPage();
      if (turn === undefined) end();
      else void turn.then(end);
    };
    queueMicrotask(() => process.nextTick(look));
  }

  /** Leaves one of several threads to other parties. */
  #mayRead(party: string): boolean {
    const reading = this.#threads.filter((thread) => thread.reading?.party === party).length;
    return reading < Math.max(1, this.#threadsMax - 1);
  }

  #begin(thread: Thread, { party, item }: { party: string; item: Waiting }): void {
    const timer = setTimeout(() => this.#giveUp(thread), this.#data.scanTimeoutMs + endingMs);
    thread.reading = { party, item, timer };
    thread.worker.ref();
    thread.worker.postMessage(item.request);
  }

  #start(): Thread | undefined {
    if (this.#threads.length >= this.#threadsMax) return undefined;
    const cancelled = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
    const workerData: ReaderData = { ...this.#data, cancelled };
    let cause: unknown;
    const worker = ownEmitter(
      new Worker(workerFile('./reader-thread', import.meta.url), { workerData }),
      (error) => {
        cause = error;
      },
    );
    const { promise, resolve } = Promise.withResolvers<void>();
    const thread: Thread = { worker, reading: undefined, cancelled, ended: promise };
    worker.on('message', (reply: ReadReply) => {
      const { reading } = thread;
      thread.reading = undefined;
      worker.unref();
      if (reading !== undefined) {
        clearTimeout(reading.timer);
        this.#settle(reading.item, reply);
      }
      this.#dispatchAfterUse();
    });
    worker.on('exit', () => {
      this.#remove(thread);
      clearTimeout(thread.reading?.timer);
      thread.reading?.item.reject(new StoreUnavailable('a reader thread ended', { cause }));
      resolve();
      this.#dispatch();
    });
    this.#threads.push(thread);
    return thread;
  }

  /** Abandons a thread stuck in SQLite: `terminate` takes effect when SQLite returns. */
  #giveUp(thread: Thread): void {
    const { reading } = thread;
    if (reading === undefined) return;
    thread.reading = undefined;
    this.#remove(thread);
    thread.worker.unref();
    void thread.worker.terminate();
    reading.item.reject(this.#late());
    this.#dispatch();
  }

  #remove(thread: Thread): void {
    const index = this.#threads.indexOf(thread);
    if (index !== -1) this.#threads.splice(index, 1);
  }

  #late(): unknown {
    return new StoreUnavailable(
      `the read took longer than ${this.#data.scanTimeoutMs} ms (COMITY_SCAN_TIMEOUT_MS)`,
    );
  }

  #settle({ resolve, reject }: Waiting, reply: ReadReply): void {
    if (reply.kind === 'failed') this.#damage.note(reply.fault, reply.message);
    if (reply.kind === 'rows') resolve(reply);
    else if (reply.kind === 'late') reject(this.#late());
    else if (reply.mistake) reject(new Error(reply.message));
    else reject(new StoreUnavailable(`storage failed: ${reply.message}`, { fault: reply.fault }));
  }
}

/* Messages between the calling thread and a reader thread. */

export type ReaderData = {
  readonly path: string;
  readonly connection: ConnectionOptions;
  readonly scanTimeoutMs: number;
  readonly cancelled: Int32Array;
};

export type Statement = { readonly sql: string; readonly parameters: readonly SqlValue[] };

/**
 * A statement of one row: a count, 1 if nothing may be read, and what it counted as a JSON text. If the count is 0, the reader reads nothing;
 * up to `listMax`, it runs `statements`, whose parameters at `listAt` are the text.
 */
export type Listing = Statement & {
  readonly listMax: number;
  readonly statements: readonly (Statement & { readonly listAt: number })[];
};

/** Statements that choose those of the page, in the same snapshot: the first listing that suffices, or else a count. */
export type Probe = {
  readonly listings: readonly Listing[];
  readonly count: Statement;
  /** Above this number, the reader runs `beyond`. */
  readonly countMax: number;
  readonly beyond: readonly Statement[];
};

/** A statement, with the table whose revision is read in the same snapshot. */
export type ReadRequest = Statement & {
  readonly tableNumber: number;
  /** Further tables that the statement reads: the latest revision of all is the answer's. */
  readonly relatedNumbers?: readonly number[] | undefined;
  /** Statements to run after the first, in the same snapshot, until there are enough rows. */
  readonly rest?: readonly Statement[];
  readonly probe?: Probe;
  readonly octets?: OctetEnd;
};

export type ReadReply =
  /** `isCut`: octets ended the read, and rows remain. `isBarred`: the probe said that nothing may be read. */
  | {
      readonly kind: 'rows';
      readonly rows: readonly Cells[];
      readonly version: number;
      readonly isCut: boolean;
      readonly isBarred: boolean;
    }
  | { readonly kind: 'late' }
  /** `mistake`: the request is at fault, not the storage. */
  | {
      readonly kind: 'failed';
      readonly message: string;
      readonly mistake: boolean;
      readonly fault: StorageFault | undefined;
    };
