/**
 * Watches the event loop of the thread that answers requests: how late it runs, as a metric, and what held it, in the log.
 *
 * Two measurements. A timer that should fire every `sampleMs` shows how long a request that arrived meanwhile had to wait, for whatever
 * reason. And each walk of a request times its synchronous stretches (`begin`, `end`), so that the log names the request of one above the
 * bound. A stretch above the bound that belongs to no walk is logged without a request.
 *
 * A machine with too few processors delays every thread, which this program cannot change: a delay is logged only where this thread was
 * working for at least half of it, with the processor time that it took (`busyMs`). The metric has all delays.
 */
import type { Observe } from './observation.ts';

export type Held = { readonly id: string; readonly method: string };

export type LoopWatch = {
  /** Starts a stretch. @returns what `end` takes */
  begin(): number;
  /** Ends a stretch of work for the request. @param route its pattern; undefined where there is none */
  end(begun: number, request: Held, route: string | undefined): void;
  close(): void;
};

export type LoopWatchOptions = {
  /** Longest stretch that is not logged, in ms. */
  readonly heldMs: number;
  readonly observe: Observe;
  /** Receives each delay, in seconds. */
  readonly onDelay: (seconds: number) => void;
  /** Milliseconds that never go back; default: `performance.now`. */
  readonly monotonic?: () => number;
  /** Processor time of this thread in ms; default: what the system says. */
  readonly workedMs?: () => number;
};

const sampleMs = 20;
const microsecondsPerMillisecond = 1000;

export function watchLoop(options: LoopWatchOptions): LoopWatch {
  const { heldMs, observe, onDelay, monotonic = () => performance.now(), workedMs = threadMs } = options;
  let sampledAt = monotonic();
  let worked = workedMs();
  let isTold = false;

  /** Processor time of this thread since the last sample, which a stretch within began after: at most `sampleMs` too much. */
  const busyMsOf = (stretchMs: number): number => Math.min(stretchMs, workedMs() - worked);
  const isOwn = (heldMs: number, busyMs: number): boolean => busyMs >= heldMs / 2;

  const timer = setInterval(() => {
    const now = monotonic();
    const delayMs = Math.max(0, now - sampledAt - sampleMs);
    onDelay(delayMs / 1000);
    if (delayMs >= heldMs && !isTold) {
      const busyMs = busyMsOf(delayMs);
      const nothing = { id: undefined, method: undefined, route: undefined };
      if (isOwn(delayMs, busyMs)) observe({ kind: 'loop-held', ...nothing, heldMs: delayMs, busyMs });
    }
    isTold = false;
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
      isTold = true;
      const { id, method } = request;
      observe({ kind: 'loop-held', id, method, route, heldMs: tookMs, busyMs });
    },
    close: () => clearInterval(timer),
  };
}

/** Processor time of this thread. */
function threadMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / microsecondsPerMillisecond;
}
