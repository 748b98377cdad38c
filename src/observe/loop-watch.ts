/**
 * Watches the event loop of the main thread: its delay as a metric, and the code that blocked it in the log.
 *
 * A timer that should fire every `sampleMs` measures how long a request arriving meanwhile had to wait. In addition,
 * each request times its synchronous stretches (`begin`, `end`), so that the log names the request of a stretch above
 * the bound; other long stretches are logged without a request.
 *
 * A machine with too few processors delays every thread, which Comity cannot change. So a delay is logged only if this
 * thread used the processor for at least half of it (`busyMs`). The metric has all delays.
 */
import type { Observe } from './observation.ts';

export type Held = { readonly id: string; readonly method: string };

export type LoopWatch = {
  /** Starts a stretch. @returns the argument for `end` */
  begin(): number;
  /** Ends a stretch. @param route the route's pattern; undefined if there is none */
  end(begun: number, request: Held, route: string | undefined): void;
  close(): void;
};

export type LoopWatchOptions = {
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
