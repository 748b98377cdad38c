/**
 * One handler thread, seen from the program.
 *
 *   starting   imports the configuration; runs are posted and wait in the thread
 *   serving    takes runs
 *   retiring   takes no runs: a handler continues after its time, or an error was uncaught. Ends with its last run
 *   ended
 *
 * A thread that does not respond is stalled, which is not a mode: it may respond again. Meanwhile, runs that it has not
 * begun are withdrawn. If the time of a run ends while the thread is stalled, the run does not fail as long as others
 * have begun there too, because the one that keeps the thread busy is unknown. If the thread responds again, the run
 * gets the lost time back; if not, the thread is terminated and the pool (handler-threads.ts) finds the cause.
 */
import { Worker } from 'node:worker_threads';
import { ownEmitter } from '../../observe/own-emitter.ts';
import { workerFile } from '../../store/worker-file.ts';
import { type FromThread, failure, type ThreadData, type ToThread } from './handler-protocol.ts';
import type { Run } from './handler-run.ts';

/** Bounds of waits, as options so that tests can shorten them. */
export type Graces = {
  readonly lookMs: number;
  /** Without a response to a ping for this time: runs that have not begun are withdrawn. */
  readonly stalledMs: number;
  /** Without a response for this time while a handler's time is over: the thread is terminated. */
  readonly answerMs: number;
  /** From the end of a handler's time to the end of the handler; after that its thread takes no runs. */
  readonly lateMs: number;
  /** For the import of the configuration. */
  readonly startMs: number;
  /**
   * For a terminated thread to end: V8 does not interrupt every loop that fills the heap. After that it is abandoned.
   */
  readonly abandonMs: number;
};

export type EndReason = 'memory' | 'exit' | 'uncaught' | 'start' | 'no-answer' | 'late-handler' | 'closed';

export type ThreadEvents = {
  readonly module: string;
  readonly heapBytesMax: number;
  readonly timeoutMs: number;
  readonly graces: Graces;
  readonly monotonic: () => number;
  readonly onReady: () => void;
  /** Called when the thread reported the end of a run. */
  readonly onFree: () => void;
  readonly onFault: (what: string, error: unknown) => void;
  /** `culprit`: number of the run that ended it, if known. */
  readonly onEnd: (
    thread: HandlerThread,
    reason: EndReason,
    message: string,
    culprit: number | undefined,
  ) => void;
};

type Ending = {
  readonly reason: EndReason;
  readonly message: string;
  readonly run?: number | undefined;
};

const mebibyte = 1024 * 1024;

export class HandlerThread {
  /** Runs that were posted and whose end the thread has not reported. */
  readonly runs = new Map<number, Run>();
  readonly ended: Promise<void>;
  mode: 'starting' | 'serving' | 'retiring' | 'ended' = 'starting';
  isStalled = false;
  readonly #worker: Worker;
  readonly #events: ThreadEvents;
  readonly #current = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  readonly #startedAt: number;
  readonly #left: PromiseWithResolvers<void>;
  #pingedAt: number | undefined;
  #ending: Ending | undefined;
  #abandonment: NodeJS.Timeout | undefined;

  constructor(events: ThreadEvents) {
    this.#events = events;
    this.#startedAt = events.monotonic();
    const data: ThreadData = { module: events.module, current: this.#current };
    const resourceLimits = { maxOldGenerationSizeMb: Math.ceil(events.heapBytesMax / mebibyte) };
    this.#worker = ownEmitter(
      new Worker(workerFile('./handler-thread-program', import.meta.url), {
        workerData: data,
        resourceLimits,
      }),
      (error: NodeJS.ErrnoException) => {
        const isMemory = error.code === 'ERR_WORKER_OUT_OF_MEMORY';
        this.#ending ??= isMemory
          ? {
              reason: 'memory',
              message: 'the thread exceeded the memory limit of handlers (COMITY_HANDLER_HEAP_BYTES_MAX)',
            }
          : { reason: 'uncaught', message: 'a handler left an error uncaught' };
      },
    );
    this.#left = Promise.withResolvers();
    this.ended = this.#left.promise;
    this.#worker.on('message', (message: FromThread) => this.#take(message));
    this.#worker.on('exit', (code) =>
      this.#leave({ reason: 'exit', message: `the thread ended with code ${code}` }),
    );
  }

  get takesRuns(): boolean {
    return (this.mode === 'starting' || this.mode === 'serving') && !this.isStalled;
  }

  /** The run whose handler was last entered: only a guess at the one that keeps the thread busy. */
  get current(): Run | undefined {
    return this.runs.get(Atomics.load(this.#current, 0));
  }

  run(run: Run): void {
    this.runs.set(run.number, run);
    this.#worker.ref();
    this.#post(run.message());
  }

  /** Asks the handler to stop; the run's result is known. */
  abort(run: Run): void {
    if (this.runs.has(run.number)) this.#post({ kind: 'abort', run: run.number });
    this.#endIfLeft();
  }

  /** Checks if the thread still responds. @returns withdrawn runs */
  look(now: number): readonly Run[] {
    const { graces } = this.#events;
    if (this.mode === 'ended') return [];
    if (this.mode === 'starting') {
      if (now - this.#startedAt > graces.startMs)
        this.end('start', 'the thread did not import the configuration in time');
      return [];
    }
    const silentMs = this.#pingedAt === undefined ? 0 : now - this.#pingedAt;
    const late = [...this.runs.values()].filter(({ overSince }) => overSince !== undefined);
    const isOverTime = late.length > 0 || [...this.runs.values()].some(({ isOverdue }) => isOverdue);
    if (silentMs > graces.answerMs && isOverTime) {
      this.end('no-answer', 'the thread did not respond: a handler blocks it');
      return [];
    }
    if (late.some(({ overSince = now }) => now - overSince > graces.lateMs)) this.mode = 'retiring';
    this.#endIfLeft();
    if (this.#pingedAt === undefined) {
      this.#pingedAt = now;
      this.#post({ kind: 'ping' });
    }
    this.isStalled = silentMs > graces.stalledMs;
    return this.isStalled ? this.#withdraw() : [];
  }

  end(reason: EndReason, message: string): void {
    this.#ending ??= { reason, message };
    if (this.mode === 'ended') return;
    this.mode = 'retiring';
    if (this.#abandonment !== undefined) return;
    this.#worker.ref();
    void this.#worker.terminate();
    this.#abandonment = setTimeout(() => {
      this.#worker.unref();
      this.#leave({ reason, message });
    }, this.#events.graces.abandonMs);
  }

  #leave(otherwise: Ending): void {
    if (this.mode === 'ended') return;
    this.mode = 'ended';
    clearTimeout(this.#abandonment);
    const { reason, message, run } = this.#ending ?? otherwise;
    this.#events.onEnd(this, reason, message, run);
    this.#left.resolve();
  }

  #withdraw(): readonly Run[] {
    const withdrawn = [...this.runs.values()].filter((run) => run.overSince === undefined && run.withdraw());
    for (const { number } of withdrawn) this.runs.delete(number);
    return withdrawn;
  }

  /** Terminates a retiring thread whose runs all have a result. */
  #endIfLeft(): void {
    if (this.mode !== 'retiring') return;
    if ([...this.runs.values()].every(({ overSince }) => overSince !== undefined)) {
      this.end('late-handler', 'a handler kept running after its time was over');
    }
  }

  #timeOver(run: Run): void {
    const hasCompany = [...this.runs.values()].some((other) => other !== run && other.hasBegun);
    if (this.#pingedAt !== undefined && hasCompany) {
      run.isOverdue = true;
      return;
    }
    run.fail(failure('timeout', `not done within ${run.task.timeoutMs ?? this.#events.timeoutMs} ms`));
    this.abort(run);
  }

  /** Ends a stall: runs whose time ended during it get that much time again. */
  #answered(): void {
    const { monotonic } = this.#events;
    const silentMs = this.#pingedAt === undefined ? 0 : monotonic() - this.#pingedAt;
    this.#pingedAt = undefined;
    this.isStalled = false;
    for (const run of this.runs.values()) {
      if (!run.isOverdue) continue;
      run.isOverdue = false;
      run.startTime(silentMs, () => this.#timeOver(run));
    }
  }

  #take(message: FromThread): void {
    switch (message.kind) {
      case 'ready':
        if (this.mode === 'starting') this.mode = 'serving';
        this.#events.onReady();
        return;
      case 'unusable':
        this.end('start', `the configuration could not be imported: ${message.message}`);
        return;
      case 'pong':
        this.#answered();
        return;
      case 'spoiled':
        this.mode = 'retiring';
        this.#endIfLeft();
        return;
      case 'ending':
        this.#ending ??= message;
        return;
      default:
        this.#takeOfRun(message);
    }
  }

  #takeOfRun(
    message: Extract<FromThread, { run: number; kind: 'begun' | 'call' | 'close' | 'done' | 'failed' }>,
  ): void {
    const run = this.runs.get(message.run);
    if (run === undefined) return;
    if (message.kind === 'begun') {
      const timeoutMs = run.task.timeoutMs ?? this.#events.timeoutMs;
      if (run.overSince === undefined) run.startTime(timeoutMs, () => this.#timeOver(run));
      return;
    }
    if (message.kind === 'call') {
      void this.#answer(run, message);
      return;
    }
    if (message.kind === 'close') {
      run.closeFile(message.reading);
      return;
    }
    if (message.kind === 'done') run.done();
    else {
      const { error, message: told, permanent, frames } = message.failure;
      run.fail({ ...failure(error, told, permanent), frames });
    }
    this.runs.delete(run.number);
    // An idle thread does not keep the program running.
    if (this.runs.size === 0) this.#worker.unref();
    this.#endIfLeft();
    this.#events.onFree();
  }

  async #answer(run: Run, { seq, call }: Extract<FromThread, { kind: 'call' }>): Promise<void> {
    const answer = await run.answer(call);
    if ('result' in answer) {
      const { result } = answer;
      const octets = typeof result === 'object' ? [result.buffer] : [];
      this.#post({ kind: 'result', run: run.number, seq, result }, octets);
    } else {
      if (answer.error !== undefined) this.#events.onFault('carrying out a call of a handler', answer.error);
      this.#post({ kind: 'refused', run: run.number, seq, refusal: answer.refusal });
    }
  }

  #post(message: ToThread, transferred: readonly ArrayBuffer[] = []): void {
    if (this.mode !== 'ended') this.#worker.postMessage(message, transferred);
  }
}
