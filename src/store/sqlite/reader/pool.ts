/**
 * The calling thread's side of the reader threads, which are started on demand (a start takes 40 ms, which would delay readiness) and read
 * one statement at a time. A thread ends its statement at the timeout by itself; one that is stuck in SQLite some time after that is
 * replaced at once.
 */
import { Worker } from 'node:worker_threads';
import { defaultSettings } from '../../../config/settings.ts';
import type { Party } from '../../../model/fair-queue.ts';
import { ownEmitter } from '../../../observe/own-emitter.ts';
import type { SqlValue } from '../../field-value.ts';
import { placesOf } from '../../filter-shape.ts';
import type { OctetEnd } from '../../page-of-rows.ts';
import { type StorageFault, StoreUnavailable } from '../../store.ts';
import { JobFailed, type PoolThread, ThreadPool, threadsOf } from '../../thread-pool.ts';
import { workerFile } from '../../worker-file.ts';
import type { Cells, ConnectionOptions } from '../connection.ts';
import type { StoreOptions } from '../home.ts';
import type { Damage, HomeData } from '../home-state.ts';

type ReadRows = Omit<Extract<ReadReply, { kind: 'rows' }>, 'kind'>;

/** Time for a thread to end a statement after its timeout; one step of SQLite takes some milliseconds. */
const endingMs = 1000;

export class ReaderPool {
  readonly #scanTimeoutMs: number;
  readonly #damage: Damage;
  readonly #threads: ThreadPool<ReadRequest, ReadReply>;

  constructor({ path, connection }: HomeData, damage: Damage, options: StoreOptions) {
    const { scanTimeoutMs, readerThreads, readerQueueMax } = { ...defaultSettings, ...options };
    this.#scanTimeoutMs = scanTimeoutMs;
    this.#damage = damage;
    this.#threads = new ThreadPool({
      start: (onError) => startReader({ path, connection, scanTimeoutMs }, onError),
      threadsMax: threadsOf(readerThreads),
      waitingMax: readerQueueMax,
      sizeOf: ({ parameters }) => placesOf(parameters, readerQueueMax),
      jobMsMax: scanTimeoutMs + endingMs,
      leavesOne: true,
      nextTurn: options.nextPage,
    });
  }

  /**
   * @param bounds `party`: for whom the read is; with several threads, one party never holds all
   * @throws StoreUnavailable if too many reads wait, the client has left, the read times out, or storage fails
   */
  async read(
    sql: string,
    parameters: readonly SqlValue[],
    tableNumber: number,
    bounds: Pick<ReadRequest, 'rest' | 'octets' | 'relatedNumbers' | 'probe'> & {
      readonly party?: Party | undefined;
    } = {},
  ): Promise<ReadRows> {
    const { party = '', ...octets } = bounds;
    this.#damage.refuse();
    const request = { sql, parameters, tableNumber, ...octets };
    const reply = await this.#threads.run(request, party).catch((error) => this.#refuse(error));
    if (reply.kind === 'rows') return reply;
    if (reply.kind === 'late') return this.#refuse(new JobFailed('late'));
    this.#damage.note(reply.fault, reply.message);
    if (reply.mistake) throw new Error(reply.message);
    throw new StoreUnavailable(`storage failed: ${reply.message}`, { fault: reply.fault });
  }

  /** Ends the reads under way and rejects the waiting ones. */
  close(): Promise<void> {
    return this.#threads.close();
  }

  #refuse(error: unknown): never {
    if (!(error instanceof JobFailed)) throw error;
    const words = {
      full: `${this.#threads.waiting.count} long reads wait for a thread: the queue is full`,
      closed: 'the store is closed',
      left: 'the client has left',
      late: `the read took longer than ${this.#scanTimeoutMs} ms (COMITY_SCAN_TIMEOUT_MS)`,
      ended: 'a reader thread ended',
    };
    throw new StoreUnavailable(words[error.why], { cause: error.cause });
  }
}

function startReader(data: Omit<ReaderData, 'cancelled'>, onError: (error: unknown) => void): PoolThread {
  const cancelled = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  const workerData: ReaderData = { ...data, cancelled };
  const worker = ownEmitter(
    new Worker(workerFile('./reader-thread', import.meta.url), { workerData }),
    onError,
  );
  return {
    worker,
    end() {
      Atomics.store(cancelled, 0, 1);
      worker.postMessage('close');
    },
  };
}

/* Messages between the calling thread and a reader thread. */

export type ReaderData = {
  readonly path: string;
  readonly connection: ConnectionOptions;
  readonly scanTimeoutMs: number;
  /** Shared with the thread: any value but 0 ends the current statement. */
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
