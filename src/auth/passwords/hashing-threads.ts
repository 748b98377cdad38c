/**
 * The calling thread's side of the hashing threads: bounded queues in front of a few threads, which are started when first needed.
 * A thread that dies fails the hash it had and is replaced with the next one.
 *
 * Passwords that are compared and passwords that are set wait apart, and threads take from both in turn: registrations, which nothing
 * limits to a few for each account, never fill the queue of those who log in, and cost them half of the time at most.
 *
 * A full queue rejects like a store that cannot answer, since callers are told the same: 503 with Retry-After.
 */
import { Worker } from 'node:worker_threads';
import { ownEmitter } from '../../observe/own-emitter.ts';
import { StoreUnavailable } from '../../store/store.ts';
import { workerFile } from '../../store/worker-file.ts';
import type { HashJob, HashReply } from './hash-job.ts';

/** A queue of the default length is worked off in about that time. */
const retryAfterSeconds = 5;

type Waiting = {
  readonly job: HashJob;
  readonly resolve: (tag: Uint8Array) => void;
  readonly reject: (error: unknown) => void;
};

/** What a hash is for. */
export type HashPurpose = 'compare' | 'set';

type Thread = { readonly worker: Worker; running: Waiting | undefined; readonly ended: Promise<void> };

export class HashingThreads {
  readonly #threadsMax: number;
  readonly #waitingMax: number;
  readonly #threads: Thread[] = [];
  readonly #waiting: Readonly<Record<HashPurpose, Waiting[]>> = { compare: [], set: [] };
  /** Whose turn it is where both wait. */
  #turn: HashPurpose = 'compare';
  #closed = false;

  constructor(options: { readonly threadsMax: number; readonly waitingMax: number }) {
    this.#threadsMax = options.threadsMax;
    this.#waitingMax = options.waitingMax;
  }

  /** Jobs that wait for a thread. */
  get waiting(): number {
    return this.#waiting.compare.length + this.#waiting.set.length;
  }

  /** Whether `run` would reject because too many wait. */
  isFull(purpose: HashPurpose): boolean {
    return this.#waiting[purpose].length >= this.#waitingMax;
  }

  /** @throws StoreUnavailable when too many wait, after `close`, and when the thread died or argon2id failed in it */
  run(job: HashJob, purpose: HashPurpose): Promise<Uint8Array> {
    if (this.#closed) return Promise.reject(unavailable('passwords are no longer hashed'));
    if (this.isFull(purpose)) return Promise.reject(unavailable('too many passwords wait to be hashed'));
    return new Promise((resolve, reject) => {
      this.#waiting[purpose].push({ job, resolve, reject });
      this.#dispatch();
    });
  }

  /** Refuses what waits, and resolves when what runs has ended. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const queue of Object.values(this.#waiting)) {
      for (const { reject } of queue.splice(0)) reject(unavailable('passwords are no longer hashed'));
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
    const worker = ownEmitter(new Worker(workerFile('./thread', import.meta.url)), (error) => {
      cause = error;
    });
    const { promise, resolve } = Promise.withResolvers<void>();
    const thread: Thread = { worker, running: undefined, ended: promise };
    worker.on('message', (reply: HashReply) => {
      const { running } = thread;
      thread.running = undefined;
      // An idle thread keeps no program alive.
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
