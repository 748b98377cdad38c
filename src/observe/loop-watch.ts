/**
 * Watches the event loop of the thread that answers requests: how late it runs, as a metric, and what held it, in the log.
 *
 * Two measurements. A timer that should fire every `sampleMs` shows how long a request that arrived meanwhile had to wait, for whatever
 * reason. And each walk of a request times its synchronous stretches (`begin`, `end`), so that the log names the request of one above the
 * bound. A stretch above the bound that belongs to no walk is logged without a request.
 *
 * A machine with too few processors delays every thread, which this program cannot change: a delay is logged only where this thread was
 * working for at least half of it. The metric has all delays.
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
};

const sampleMs = 20;
const microsecondsPerMillisecond = 1000;

export function watchLoop({ heldMs, observe, onDelay }: LoopWatchOptions): LoopWatch {
  let sampledAt = performance.now();
  let worked = workedMs();
  let isTold = false;

  /** Work of this thread since the last sample: an upper bound for that of a stretch within. */
  const wasAtWork = (stretchMs: number): boolean => workedMs() - worked >= stretchMs / 2;

  const timer = setInterval(() => {
    const now = performance.now();
    const delayMs = Math.max(0, now - sampledAt - sampleMs);
    onDelay(delayMs / 1000);
    if (delayMs >= heldMs && !isTold && wasAtWork(delayMs)) {
      observe({ kind: 'loop-held', id: undefined, method: undefined, route: undefined, heldMs: delayMs });
    }
    isTold = false;
    sampledAt = performance.now();
    worked = workedMs();
  }, sampleMs);
  timer.unref();

  return {
    begin: () => performance.now(),
    end(begun, request, route = 'none') {
      const tookMs = performance.now() - begun;
      if (tookMs < heldMs || !wasAtWork(tookMs)) return;
      isTold = true;
      observe({ kind: 'loop-held', id: request.id, method: request.method, route, heldMs: tookMs });
    },
    close: () => clearInterval(timer),
  };
}

/** Processor time of this thread. */
function workedMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / microsecondsPerMillisecond;
}
