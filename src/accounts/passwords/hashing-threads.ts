/**
 * Bounded queues in front of a few hashing threads, which start when first needed. A thread that dies fails its current job; the next
 * job starts a new one. Passwords to compare and passwords to set have separate queues that threads serve in turn: registrations, which
 * have no limit for each account, never fill the queue of logins, and take half of the time at most. A full queue rejects like an
 * unavailable store, because clients get the same response: 503 with Retry-After.
 */
import { Worker } from 'node:worker_threads';
import { ownEmitter } from '../../observe/own-emitter.ts';
import { StoreUnavailable } from '../../store/store.ts';
import { workerFile } from '../../store/worker-file.ts';
import type { HashJob, HashReply } from './hash-job.ts';

/** About the time to process a full queue of the default length. */
const retryAfterSeconds = 5;

type Waiting = {
  readonly job: HashJob;
  readonly resolve: (tag: Uint8Array) => void;
  readonly reject: (error: unknown) => void;
};

export type HashPurpose = 'compare' | 'set';

type Thread = { readonly worker: Worker; running: Waiting | undefined; readonly ended: Promise<void> };

export class HashingThreads {
  readonly #threadsMax: number;
  readonly #waitingMax: number;
  readonly #threads: Thread[] = [];
  readonly #waiting: Readonly<Record<HashPurpose, Waiting[]>> = { compare: [], set: [] };
  #turn: HashPurpose = 'compare';
  #closed = false;

  constructor(options: { readonly threadsMax: number; readonly waitingMax: number }) {
    this.#threadsMax = options.threadsMax;
    this.#waitingMax = options.waitingMax;
  }

  get waiting(): number {
    return this.#waiting.compare.length + this.#waiting.set.length;
  }

  isFull(purpose: HashPurpose): boolean {
    return this.#waiting[purpose].length >= this.#waitingMax;
  }

  /** @throws StoreUnavailable if the queue is full, after `close`, and if the thread died or argon2id failed */
  run(job: HashJob, purpose: HashPurpose): Promise<Uint8Array> {
    if (this.#closed) return Promise.reject(unavailable('the program is stopping'));
    if (this.isFull(purpose)) return Promise.reject(unavailable('too many passwords wait to be hashed'));
    return new Promise((resolve, reject) => {
      this.#waiting[purpose].push({ job, resolve, reject });
      this.#dispatch();
    });
  }

  /** Rejects queued jobs; resolves when the current ones have ended. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const queue of Object.values(this.#waiting)) {
      for (const { reject } of queue.splice(0)) reject(unavailable('the program is stopping'));
    }
    for (const { worker } of this.#threads) {
      worker.ref();
      worker.postMessage('close');
    }
    await Promise.all(this.#threads.map(({ ended }) => ended));
  }

  #dispatch(): void {
    while (this.waiting > 0) {
      const idle = this.#threads.find(({ running }) => running === undefined) ?? this.#start();
      const next = idle === undefined ? undefined : this.#next();
      if (idle === undefined || next === undefined) return;
      idle.running = next;
      idle.worker.ref();
      idle.worker.postMessage(next.job);
    }
  }

  #next(): Waiting | undefined {
    const other = this.#turn === 'compare' ? 'set' : 'compare';
    const next = this.#waiting[this.#turn].shift() ?? this.#waiting[other].shift();
    this.#turn = other;
    return next;
  }

  #start(): Thread | undefined {
    if (this.#threads.length >= this.#threadsMax || this.#closed) return undefined;
    let cause: unknown;
    const worker = ownEmitter(new Worker(workerFile('./argon2-thread', import.meta.url)), (error) => {
      cause = error;
    });
    const { promise, resolve } = Promise.withResolvers<void>();
    const thread: Thread = { worker, running: undefined, ended: promise };
    worker.on('message', (reply: HashReply) => {
      const { running } = thread;
      thread.running = undefined;
      // An idle thread does not keep the process alive.
      worker.unref();
      this.#dispatch();
      if (running === undefined) return;
      if ('tag' in reply) running.resolve(reply.tag);
      else running.reject(unavailable(`a password could not be hashed: ${reply.failed}`));
    });
    worker.on('exit', () => {
      this.#threads.splice(this.#threads.indexOf(thread), 1);
      thread.running?.reject(unavailable('a hashing thread ended', cause));
      resolve();
      this.#dispatch();
    });
    this.#threads.push(thread);
    return thread;
  }
}

function unavailable(message: string, cause?: unknown): StoreUnavailable {
  return new StoreUnavailable(message, { retryAfterSeconds, cause });
}
