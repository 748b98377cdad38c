/**
 * The event loop: its turns, and the watch over it. Turns divide its time between what runs on it: requests as they arrive, and loops over
 * an application's functions or over rows, which on SQLite go on for as long as promises settle and would let no timer, socket or signal in between.
 *
 * All of them together may take 10 ms of one turn of the event loop. Those that come later wait, in order of arrival, for the next turns:
 * what hundreds of clients send at once is read in one turn, and 400 requests that take 0.2 ms each would hold it for 80 ms.
 *
 * The loop accepts a few connections each turn (server/port.ts). So while connections come turn after turn, work has a part of the time
 * alone, and next to none at first: behind 1,000 others, the connection of a probe would otherwise wait for more than a hundred turns of 10 ms.
 * Answers of a store that come over a socket are such work:
 * the loop would read megabytes of them between two connections. A probe that has arrived goes before all that wait,
 * and between two probes goes one of those.
 */
import process from 'node:process';
import type { Observe } from './observation.ts';

/** Time of one turn, with the promises that settle meanwhile. */
const turnMs = 10;
/** While connections come turn after turn: at first a burst, which is over the sooner the less is done meanwhile; then work has its part. */
const burstMs = 300;
/** Time of work for each millisecond of accepting and reading, in a burst and after it. */
const workPerBurstMs = 0.05;
const workPerArrivalMs = 0.25;

export class LoopTurns {
  readonly #monotonic: () => number;
  /** True from the first piece of work or connection of a turn until a turn without any. */
  #isUnderWay = false;
  /** When the latest turn began. */
  #beganMs = 0;
  /** A connection came since the latest turn began, and in the one before. */
  #comes = false;
  #came = false;
  /** When the turns began in which connections come. */
  #comesSinceMs = 0;
  /** Time that work has while connections come, and when it was last counted; below 0 after work that took longer. */
  #creditMs = turnMs;
  #countedMs = 0;
  /** Requests: at most what one read of each socket holds. Loops: one for each request or function under way. */
  readonly #waiting: (() => void)[] = [];
  /** The first of those that wait: the ones before it have had their turn. */
  #next = 0;
  /** Work that has begun and holds a page or content, and behind it a store that would read another page: before those that wait. */
  readonly #begun: (() => void)[] = [];
  /** Probes that came after those of their turn had taken its time. */
  readonly #probes: (() => void)[] = [];
  #wasProbe = false;
  /** The work that has the turn may begin one request: a connection that was accepted is read in its turn. */
  #mayBegin = false;

  constructor(monotonic: () => number = () => performance.now()) {
    this.#monotonic = monotonic;
  }

  /** Notes that a connection was accepted. */
  connectionCame(): void {
    this.#comes = true;
    this.#begin();
  }

  /** Has a request handled now, or in a later turn. */
  take(handle: () => void): void {
    const isNow = this.#mayBegin || this.#mayGoOn();
    this.#mayBegin = false;
    if (isNow) handle();
    else this.#waiting.push(handle);
  }

  /** The same for one that goes before those that wait. */
  takeProbe(handle: () => void): void {
    this.#begin();
    if (this.#probes.length === 0 && this.#spentMs() < turnMs) handle();
    else this.#probes.push(handle);
  }

  /** Called between two steps of a loop. @returns undefined: go on; otherwise wait for it first */
  next(): Promise<void> | undefined {
    if (this.#mayGoOn()) return undefined;
    return new Promise((resolve) => void this.#waiting.push(resolve));
  }

  /**
   * The same within work that holds a page or content: it goes before those that wait, each of which would begin and hold some, too, behind
   * the others. 1,000 lists of 4 MB ended a program of 512 MiB so.
   */
  nextOfBegun(): Promise<void> | undefined {
    if (this.#mayGoOn()) return undefined;
    return new Promise((resolve) => void this.#begun.unshift(resolve));
  }

  /** Called before a store reads another page. @returns undefined: read it; while connections come or pages that were read wait, wait for it first */
  nextPage(): Promise<void> | undefined {
    if (!this.#comes && !this.#came && this.#begun.length === 0) return undefined;
    return new Promise((resolve) => void this.#begun.push(resolve));
  }

  /** Called after a part of an answer of the store was read. @returns undefined: read on; while connections come, wait for it first */
  nextRead(): Promise<void> | undefined {
    if (!this.#comes && !this.#came) return undefined;
    return new Promise((resolve) => void this.#waiting.push(resolve));
  }

  /** True once this turn has taken its time: what can be read in a later turn waits for it. */
  isSpent(): boolean {
    this.#begin();
    return this.#spentMs() >= turnMs;
  }

  #begin(): void {
    if (this.#isUnderWay) return;
    this.#isUnderWay = true;
    this.#beganMs = this.#monotonic();
    setImmediate(this.#nextTurn);
  }

  /** While connections come, all wait: what is read before one is accepted would otherwise take its whole turn. */
  #mayGoOn(): boolean {
    this.#begin();
    if (this.#comes || this.#came || this.#hasWork()) return false;
    return this.#spentMs() < turnMs;
  }

  readonly #nextTurn = (): void => {
    this.#waiting.splice(0, this.#next);
    this.#next = 0;
    const nowMs = this.#monotonic();
    if (this.#comes && !this.#came) this.#comesSinceMs = nowMs;
    this.#came = this.#comes;
    this.#comes = false;
    this.#isUnderWay = this.#came || this.#hasWork() || this.#probes.length > 0;
    const isBurst = nowMs - this.#comesSinceMs < burstMs;
    const earnedMs = (nowMs - this.#countedMs) * (isBurst ? workPerBurstMs : workPerArrivalMs);
    this.#creditMs = this.#came ? Math.min(this.#creditMs + earnedMs, turnMs) : turnMs;
    this.#countedMs = nowMs;
    if (!this.#isUnderWay) return;
    this.#beganMs = nowMs;
    setImmediate(this.#nextTurn);
    this.#handleNext();
  };

  readonly #handleNext = (): void => {
    const handle = this.#choose();
    if (handle === undefined) return;
    this.#mayBegin = true;
    handle();
    queueMicrotask(this.#afterMicrotasks);
  };

  #choose(): (() => void) | undefined {
    if (this.#spentMs() >= turnMs) return undefined;
    const mayWork = this.#hasWork() && this.#creditMs > 0;
    this.#wasProbe = this.#probes.length > 0 && !(this.#wasProbe && mayWork);
    if (this.#wasProbe) return this.#probes.shift();
    if (!mayWork) return undefined;
    const begun = this.#begun.shift();
    if (begun !== undefined) return begun;
    this.#next += 1;
    return this.#waiting[this.#next - 1];
  }

  /** A tick that a microtask asks for comes after all of them, so what follows from one is counted before the next has its turn. */
  readonly #afterMicrotasks = (): void => {
    this.#mayBegin = false;
    const nowMs = this.#monotonic();
    this.#creditMs -= nowMs - this.#countedMs;
    this.#countedMs = nowMs;
    process.nextTick(this.#handleNext);
  };

  #hasWork(): boolean {
    return this.#begun.length > 0 || this.#next < this.#waiting.length;
  }

  #spentMs(): number {
    return this.#monotonic() - this.#beganMs;
  }
}

// Watches the event loop of the main thread: its delay as a metric, and the code that blocked it in the log.
//
// A timer that should fire every `sampleMs` measures how long a request arriving meanwhile had to wait. In addition,
// each request times its synchronous stretches (`begin`, `end`), so that the log names the request of a stretch above
// the bound; other long stretches are logged without a request.
//
// A machine with too few processors delays every thread, which Comity cannot change. So a delay is logged only if this
// thread used the processor for at least half of it (`busyMs`). The metric has all delays.
//

export type Held = { readonly id: string; readonly method: string };

export type LoopWatch = {
  /** Starts a stretch. @returns the argument for `end` */
  begin(): number;
  /** Ends a stretch. @param route the route's pattern; undefined if there is none */
  end(begun: number, request: Held, route: string | undefined): void;
  close(): void;
};

type LoopWatchOptions = {
  readonly heldMs: number;
  readonly observe: Observe;
  readonly onDelay: (seconds: number) => void;
  /** A monotonic clock in milliseconds. Default: `performance.now`. */
  readonly monotonic?: () => number;
  /** Processor time of this thread in ms. */
  readonly workedMs?: () => number;
};

const sampleMs = 20;
const microsecondsPerMillisecond = 1000;

export function watchLoop(options: LoopWatchOptions): LoopWatch {
  const { heldMs, observe, onDelay, monotonic = () => performance.now(), workedMs = threadMs } = options;
  let sampledAt = monotonic();
  let worked = workedMs();
  let isReported = false;

  /** Processor time since the last sample; the stretch began after it, so this is at most `sampleMs` too much. */
  const busyMsOf = (stretchMs: number): number => Math.min(stretchMs, workedMs() - worked);
  const isOwn = (heldMs: number, busyMs: number): boolean => busyMs >= heldMs / 2;

  const timer = setInterval(() => {
    const now = monotonic();
    const delayMs = Math.max(0, now - sampledAt - sampleMs);
    onDelay(delayMs / 1000);
    if (delayMs >= heldMs && !isReported) {
      const busyMs = busyMsOf(delayMs);
      const nothing = { id: undefined, method: undefined, route: undefined };
      if (isOwn(delayMs, busyMs)) observe({ kind: 'loop-held', ...nothing, heldMs: delayMs, busyMs });
    }
    isReported = false;
    sampledAt = monotonic();
    worked = workedMs();
  }, sampleMs);
  timer.unref();

  return {
    begin: monotonic,
    end(begun, request, route = 'none') {
      const tookMs = monotonic() - begun;
      if (tookMs < heldMs) return;
      const busyMs = busyMsOf(tookMs);
      if (!isOwn(tookMs, busyMs)) return;
      isReported = true;
      const { id, method } = request;
      observe({ kind: 'loop-held', id, method, route, heldMs: tookMs, busyMs });
    },
    close: () => clearInterval(timer),
  };
}

function threadMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / microsecondsPerMillisecond;
}
