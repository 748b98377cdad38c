/**
 * A pool of threads that do one job each: a bounded queue that is fair by party, and threads that start when they are first needed. Long
 * reads, long content and passwords each have one. An idle thread does not keep the process running. A thread that is late with its job is
 * ended; one that dies fails its job; the next job starts another (docs/decisions/0100).
 */
import { availableParallelism } from 'node:os';
import process from 'node:process';
import type { Worker } from 'node:worker_threads';
import { FairQueue, hasLeft, nameOfParty, type Party } from '../model/fair-queue.ts';

export type ThreadPoolOptions<J> = {
  /** Starts a thread. Its error comes before its end and is the cause of the failure of its job. */
  readonly start: (onError: (error: unknown) => void) => PoolThread;
  readonly threadsMax: number;
  /** The greatest sum of the sizes of all waiting jobs. */
  readonly waitingMax: number;
  /** Default: 1 for each job. */
  readonly sizeOf?: (job: J) => number;
  /** How long a job may take; absent: for ever. */
  readonly jobMsMax?: number;
  /** True: of several threads, one party leaves one to the others. */
  readonly leavesOne: boolean;
  /** When the next job may begin after a reply; absent or undefined: at once. */
  readonly nextTurn?: (() => Promise<void> | undefined) | undefined;
};

/** The part of a thread that a pool needs; a process may have it too. */
export type PoolWorker = Pick<Worker, 'ref' | 'unref'> & {
  postMessage(job: unknown): void;
  terminate(): Promise<unknown>;
  on(event: 'message' | 'exit', listener: (value: unknown) => void): unknown;
};

export type PoolThread = {
  readonly worker: PoolWorker;
  /** Ends the thread, at once or after its job. */
  readonly end: () => void;
};

/** Why a job was not done: the queue is full, the pool is closed, its client has left, it was late, or its thread ended. */
export class JobFailed extends Error {
  readonly why: 'full' | 'closed' | 'left' | 'late' | 'ended';

  constructor(why: JobFailed['why'], cause?: unknown) {
    super(`a job of a thread failed: ${why}`, { cause });
    this.why = why;
  }
}

/** @param setting 0: one for each processor, from 2 to 4. At least two, so that one party's work does not block the others. */
export function threadsOf(setting: number): number {
  return setting > 0 ? setting : Math.min(4, Math.max(2, availableParallelism()));
}

type Waiting<J, R> = {
  readonly job: J;
  readonly party: Party;
  readonly size: number;
  readonly resolve: (reply: R) => void;
  readonly reject: (error: JobFailed) => void;
};

type Thread<J, R> = PoolThread & {
  readonly ended: Promise<void>;
  work: { readonly party: string; readonly item: Waiting<J, R> } | undefined;
  timer: NodeJS.Timeout | undefined;
};

export class ThreadPool<J, R> {
  readonly #options: ThreadPoolOptions<J>;
  readonly #threads: Thread<J, R>[] = [];
  readonly #waiting: FairQueue<Waiting<J, R>>;
  /** True while replies wait to be used: no other job begins, because threads read faster than functions of an application show. */
  #isHeld = false;
  #isClosed = false;

  constructor(options: ThreadPoolOptions<J>) {
    this.#options = options;
    this.#waiting = new FairQueue(options.waitingMax, ({ size }) => size);
  }

  get waiting(): Pick<FairQueue<unknown>, 'count' | 'size' | 'countOf'> {
    return this.#waiting;
  }

  /** Resolves with the thread's reply. @param party for whom the job is @throws JobFailed */
  run(job: J, party: Party): Promise<R> {
    if (this.#isClosed) return Promise.reject(new JobFailed('closed'));
    const { sizeOf = () => 1 } = this.#options;
    return new Promise((resolve, reject) => {
      this.#waiting.push(nameOfParty(party), { job, party, size: sizeOf(job), resolve, reject });
      this.#dispatch();
      for (const refused of this.#waiting.overflow()) refused.reject(new JobFailed('full'));
    });
  }

  /** Fails the jobs that wait, and ends the threads. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const { reject } of this.#waiting.drop()) reject(new JobFailed('closed'));
    const threads = [...this.#threads];
    for (const { worker, end } of threads) {
      worker.ref();
      end();
    }
    await Promise.all(threads.map(({ ended }) => ended));
  }

  #dispatch(): void {
    while (!this.#isClosed && !this.#isHeld && this.#waiting.count > 0) {
      const thread = this.#threads.find(({ work }) => work === undefined) ?? this.#start();
      const next = thread === undefined ? undefined : this.#waiting.take((party) => this.#mayRun(party));
      if (thread === undefined || next === undefined) return;
      if (hasLeft(next.item.party)) next.item.reject(new JobFailed('left'));
      else this.#begin(thread, next);
    }
  }

  #mayRun(party: string): boolean {
    if (!this.#options.leavesOne) return true;
    const running = this.#threads.filter(({ work }) => work?.party === party).length;
    return running < Math.max(1, this.#options.threadsMax - 1);
  }

  #begin(thread: Thread<J, R>, work: { party: string; item: Waiting<J, R> }): void {
    const { jobMsMax } = this.#options;
    thread.work = work;
    if (jobMsMax !== undefined) thread.timer = setTimeout(() => this.#giveUp(thread), jobMsMax);
    thread.worker.ref();
    thread.worker.postMessage(work.item.job);
  }

  #start(): Thread<J, R> | undefined {
    if (this.#threads.length >= this.#options.threadsMax) return undefined;
    let cause: unknown = 'the thread exited without an error';
    const started = this.#options.start((error) => {
      cause = error;
    });
    const { promise, resolve } = Promise.withResolvers<void>();
    const thread: Thread<J, R> = { ...started, ended: promise, work: undefined, timer: undefined };
    thread.worker.on('message', (reply) => {
      thread.worker.unref();
      this.#free(thread)?.resolve(reply as R);
      this.#dispatchAfterUse();
    });
    thread.worker.on('exit', () => {
      this.#remove(thread);
      this.#free(thread)?.reject(new JobFailed('ended', cause));
      resolve();
      this.#dispatch();
    });
    this.#threads.push(thread);
    return thread;
  }

  /** A reply is used, or waits for its turn, once the promises that follow from it have settled. */
  #dispatchAfterUse(): void {
    const { nextTurn } = this.#options;
    if (nextTurn === undefined) {
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
      const turn = nextTurn();
      if (turn === undefined) end();
      else void turn.then(end);
    };
    queueMicrotask(() => process.nextTick(look));
  }

  /** Abandons a thread: where SQLite holds it, `terminate` takes effect when that returns. */
  #giveUp(thread: Thread<J, R>): void {
    const item = this.#free(thread);
    this.#remove(thread);
    thread.worker.unref();
    void thread.worker.terminate();
    item?.reject(new JobFailed('late'));
    this.#dispatch();
  }

  #free(thread: Thread<J, R>): Waiting<J, R> | undefined {
    const { work } = thread;
    thread.work = undefined;
    clearTimeout(thread.timer);
    return work?.item;
  }

  #remove(thread: Thread<J, R>): void {
    const index = this.#threads.indexOf(thread);
    if (index !== -1) this.#threads.splice(index, 1);
  }
}
