/**
 * The pool of handler threads (§4.14.5): a message goes to the least busy thread, many at once. The first message
 * starts the threads.
 *
 * When a thread ends (process.exit, out of memory, a loop), only the message that caused it uses up an attempt. Its
 * other messages restart at once on another thread, and nothing is counted. If the cause is unknown, each of them
 * restarts on a solitary thread, which runs one message at a time: a message that ends a solitary thread is the cause.
 *
 * A message that has ended a thread is a suspect: its next attempts are solitary until one of them completes. While a
 * thread does not respond, further messages of the sender whose handler probably keeps it busy wait, and all others go
 * to another thread. There are at most twice as many threads as the setting says, and at most as many solitary ones as
 * the setting says, but at least two.
 */
import { memoryBounds } from '../../memory/bounds.ts';
import type { Observe } from '../../observe/observation.ts';
import { failure, type HandedOn, type Task } from './handler-protocol.ts';
import { Run, type RunOptions } from './handler-run.ts';
import { type EndReason, type Graces, HandlerThread } from './handler-thread.ts';

export type HandlerSettings = {
  readonly handlerThreads: number;
  readonly handlerTimeoutMs: number;
  readonly handlerHeapBytesMax: number;
};

export type HandlerThreadsOptions = RunOptions & {
  readonly module: string;
  readonly settings: HandlerSettings;
  readonly observe: Observe;
  readonly graces?: Partial<Graces>;
};

const gracesDefault: Graces = {
  lookMs: 250,
  stalledMs: 1000,
  answerMs: 2000,
  lateMs: 1000,
  startMs: 60_000,
  abandonMs: 3000,
};
/** Number of suspects; one beyond it replaces the oldest. */
const suspectsMax = memoryBounds.suspects.entries;
/** Threads that may end under a message through others' fault; after that it gets one of its own. */
const movesMax = 3;
/** Solitary threads allowed if the setting is lower. */
const solitaryMin = 2;

export class HandlerThreads {
  readonly #options: HandlerThreadsOptions;
  readonly #graces: Graces;
  readonly #threads = new Set<HandlerThread>();
  /** Each runs one message at a time. */
  readonly #solitary = new Set<HandlerThread>();
  /** Ids of messages. */
  readonly #suspects = new Set<string>();
  #waiting: Run[] = [];
  #lookout: NodeJS.Timeout | undefined;
  #lastRun = 0;
  #closed = false;

  constructor(options: HandlerThreadsOptions) {
    this.#options = options;
    this.#graces = { ...gracesDefault, ...options.graces };
  }

  size(): number {
    return this.#threads.size + this.#solitary.size;
  }

  /** Makes one attempt. Rejects only with StoreUnavailable. */
  async run(task: Task, signal: AbortSignal): Promise<HandedOn> {
    if (this.#closed || signal.aborted) return { outcome: 'aborted' };
    this.#lastRun = (this.#lastRun % 0x7fff_ffff) + 1;
    const run = new Run(this.#lastRun, task, this.#options);
    const abort = () => this.#abort(run);
    signal.addEventListener('abort', abort);
    this.#waiting.push(run);
    this.#dispatch();
    this.#watch();
    try {
      const handedOn = await run.result;
      if (comesToAnEnd(handedOn)) this.#suspects.delete(task.id);
      return handedOn;
    } finally {
      signal.removeEventListener('abort', abort);
    }
  }

  /** Aborts attempts under way, and ends the threads. */
  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#lookout);
    for (const run of this.#waiting.splice(0)) run.abort();
    const threads = this.#all();
    for (const thread of threads) {
      for (const run of thread.runs.values()) run.abort();
      thread.end('closed', 'the program stops');
    }
    await Promise.all(threads.map(({ ended }) => ended));
  }

  #all(): readonly HandlerThread[] {
    return [...this.#threads, ...this.#solitary];
  }

  #abort(run: Run): void {
    run.abort();
    this.#waiting = this.#waiting.filter((other) => other !== run);
    for (const thread of this.#all()) thread.abort(run);
  }

  #dispatch(): void {
    if (this.#closed) return;
    const left: Run[] = [];
    for (const run of this.#waiting) {
      const isAlone = run.isAlone || this.#suspects.has(run.task.id);
      const thread = isAlone ? this.#solitaryFor(run) : this.#threadFor(run.task.source);
      if (thread === undefined) left.push(run);
      else thread.run(run);
    }
    this.#waiting = left;
  }

  /** Undefined: all of them are busy. Suspects leave half of them to messages that are probably innocent. */
  #solitaryFor(run: Run): HandlerThread | undefined {
    const solitaryMax = Math.max(solitaryMin, this.#options.settings.handlerThreads);
    if (this.#isSuspect(run)) {
      const taken = [...this.#solitary].filter(({ runs }) => [...runs.values()].some(this.#isSuspect));
      if (taken.length >= solitaryMax >> 1) return undefined;
    }
    for (const thread of this.#solitary) if (thread.takesRuns && thread.runs.size === 0) return thread;
    if (this.#solitary.size >= solitaryMax) return undefined;
    const started = this.#start();
    this.#solitary.add(started);
    return started;
  }

  readonly #isSuspect = ({ task }: Run): boolean => this.#suspects.has(task.id);

  /** Undefined: the message waits until a thread is free. */
  #threadFor(source: string): HandlerThread | undefined {
    let serving = 0;
    let least: HandlerThread | undefined;
    for (const thread of this.#threads) {
      if (thread.isStalled && thread.current?.task.source === source) return undefined;
      if (!thread.takesRuns) continue;
      serving += 1;
      if (least === undefined || thread.runs.size < least.runs.size) least = thread;
    }
    const { handlerThreads } = this.#options.settings;
    if (least !== undefined && (least.runs.size === 0 || serving >= handlerThreads)) return least;
    if (this.#threads.size >= handlerThreads * 2) return least;
    const started = this.#start();
    this.#threads.add(started);
    return started;
  }

  #start(): HandlerThread {
    const { module, settings, monotonic, observe } = this.#options;
    return new HandlerThread({
      module,
      heapBytesMax: settings.handlerHeapBytesMax,
      timeoutMs: settings.handlerTimeoutMs,
      graces: this.#graces,
      monotonic,
      onReady: () => this.#dispatch(),
      onFree: () => this.#free(),
      onFault: (what, error) => observe({ kind: 'receiving-failed', what, error }),
      onEnd: (thread, reason, message, culprit) => this.#ended(thread, reason, message, culprit),
    });
  }

  #free(): void {
    this.#dispatch();
    // Ends idle solitary threads: they are needed only after failures, which should be rare.
    for (const thread of this.#solitary) {
      if (thread.runs.size === 0) thread.end('closed', 'no message is left to process alone');
    }
  }

  #ended(thread: HandlerThread, reason: EndReason, message: string, culprit: number | undefined): void {
    this.#threads.delete(thread);
    this.#solitary.delete(thread);
    const runs = [...thread.runs.values()];
    thread.runs.clear();
    if (reason !== 'closed') {
      const begun = runs.filter(({ hasBegun }) => hasBegun);
      const guilty = culprit ?? (begun.length === 1 ? begun[0]?.number : undefined);
      const suspects = guilty === undefined ? begun : runs.filter(({ number }) => number === guilty);
      const senders = [...new Set(suspects.map(({ task }) => task.source))];
      this.#options.observe({ kind: 'handler-thread-ended', reason, senders, messages: runs.length });
      for (const run of runs) this.#lost(run, reason, message, guilty);
    }
    this.#dispatch();
  }

  #lost(run: Run, reason: EndReason, message: string, guilty: number | undefined): void {
    if (run.number === guilty) {
      // A handler that only takes too long does no harm to others.
      if (reason !== 'late-handler') this.#suspect(run.task.id);
      run.fail(failure('thread-ended', message));
    } else if (run.overSince === undefined) this.#putBack(run, reason, message, guilty !== undefined);
  }

  /** @param isInnocent another run is known to have ended the thread */
  #putBack(run: Run, reason: EndReason, message: string, isInnocent: boolean): void {
    const { hasBegun } = run;
    const isWornOut = run.moves >= movesMax;
    if (!hasBegun && (reason === 'start' || (isWornOut && run.isAlone))) {
      run.fail(failure('thread-ended', message));
      return;
    }
    run.restart();
    if ((hasBegun && !isInnocent) || isWornOut) run.isAlone = true;
    this.#waiting.push(run);
  }

  #suspect(id: string): void {
    const oldest = this.#suspects.size < suspectsMax ? undefined : this.#suspects.values().next().value;
    if (oldest !== undefined) this.#suspects.delete(oldest);
    this.#suspects.add(id);
  }

  /** Checks the threads while they have runs. */
  #watch(): void {
    if (this.#lookout !== undefined || this.#closed) return;
    this.#lookout = setInterval(() => {
      // After messages that the threads sent while this one was busy.
      setImmediate(() => this.#look());
    }, this.#graces.lookMs);
    this.#lookout.unref();
  }

  #look(): void {
    const now = this.#options.monotonic();
    const all = this.#all();
    for (const thread of all) this.#waiting.push(...thread.look(now));
    this.#dispatch();
    if (this.#waiting.length > 0 || all.some(({ runs }) => runs.size > 0)) return;
    clearInterval(this.#lookout);
    this.#lookout = undefined;
  }
}

/** Returns true if the handler itself determined the outcome. */
function comesToAnEnd(handedOn: HandedOn): boolean {
  if (handedOn.outcome === 'processed') return true;
  return handedOn.outcome === 'failed' && handedOn.error !== 'thread-ended' && handedOn.error !== 'timeout';
}
