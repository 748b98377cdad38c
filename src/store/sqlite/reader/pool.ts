/**
 * The calling thread's side of the reader threads: a bounded queue in front of threads that are started when first needed
 * (a start costs 40 ms, which the program does not spend before it is ready). A thread that dies fails the read it
 * had and is replaced with the next one.
 */
import { Worker } from 'node:worker_threads';
import type { SqlValue } from '../../field-value.ts';
import { workerFile } from '../../worker-file.ts';
import type { Cells } from '../cells.ts';
import { unavailable } from '../failure.ts';
import type { ReaderData, ReadReply, ReadRequest } from './wire.ts';

export type ReadRows = { readonly rows: readonly Cells[]; readonly version: number };

type Waiting = {
  readonly request: ReadRequest;
  readonly resolve: (rows: ReadRows) => void;
  readonly reject: (error: unknown) => void;
};

type Thread = { worker: Worker; reading: Waiting | undefined; ended: Promise<void> };

export class ReaderPool {
  readonly #data: ReaderData;
  readonly #threadsMax: number;
  readonly #readsWaitingMax: number;
  readonly #threads: Thread[] = [];
  readonly #waiting: Waiting[] = [];
  #closed = false;

  constructor(
    data: ReaderData,
    options: { readonly readerThreads: number; readonly readerQueueMax: number },
  ) {
    this.#data = data;
    this.#threadsMax = options.readerThreads;
    this.#readsWaitingMax = options.readerQueueMax;
  }

  /** @throws StoreUnavailable when too many reads wait, the time of the read is over, or storage fails */
  read(sql: string, parameters: readonly SqlValue[], tableNumber: number): Promise<ReadRows> {
    if (this.#closed) return Promise.reject(unavailable('the store is closed'));
    if (this.#waiting.length >= this.#readsWaitingMax) {
      return Promise.reject(unavailable(`${this.#waiting.length} long reads wait for a thread`));
    }
    return new Promise((resolve, reject) => {
      this.#waiting.push({ request: { sql, parameters, tableNumber }, resolve, reject });
      this.#dispatch();
    });
  }

  /** Waits for the reads under way; those that wait are refused. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const { reject } of this.#waiting.splice(0)) reject(unavailable('the store is closed'));
    for (const { worker } of this.#threads) {
      worker.ref();
      worker.postMessage('close');
    }
    await Promise.all(this.#threads.map((thread) => thread.ended));
  }

  #dispatch(): void {
    while (this.#waiting.length > 0) {
      const idle = this.#threads.find((thread) => thread.reading === undefined) ?? this.#start();
      if (idle === undefined) return;
      const next = this.#waiting.shift();
      if (next === undefined) return;
      idle.reading = next;
      idle.worker.ref();
      idle.worker.postMessage(next.request);
    }
  }

  #start(): Thread | undefined {
    if (this.#threads.length >= this.#threadsMax || this.#closed) return undefined;
    const worker = new Worker(workerFile('./thread', import.meta.url), { workerData: this.#data });
    const { promise, resolve } = Promise.withResolvers<void>();
    const thread: Thread = { worker, reading: undefined, ended: promise };
    let cause: unknown;
    worker.on('message', (reply: ReadReply) => {
      const { reading } = thread;
      thread.reading = undefined;
      worker.unref();
      this.#dispatch();
      if (reading !== undefined) this.#settle(reading, reply);
    });
    worker.on('error', (error) => {
      cause = error;
    });
    worker.on('exit', () => {
      this.#threads.splice(this.#threads.indexOf(thread), 1);
      thread.reading?.reject(unavailable('a reader thread ended', cause));
      resolve();
      if (!this.#closed) this.#dispatch();
    });
    this.#threads.push(thread);
    return thread;
  }

  #settle({ resolve, reject }: Waiting, reply: ReadReply): void {
    if (reply.kind === 'rows') resolve({ rows: reply.rows, version: reply.version });
    else if (reply.kind === 'late')
      reject(unavailable(`the read took longer than ${this.#data.scanTimeoutMs} ms`));
    else reject(reply.mistake ? new Error(reply.message) : unavailable(`storage failed: ${reply.message}`));
  }
}
