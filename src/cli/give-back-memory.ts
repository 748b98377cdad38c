/** The end of a start: returns what only the start needed. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** How often it looks whether the program is idle; the reader of the ready line has been served by the first time. */
const everyMs = 1000;

/** Share of the last second for which the event loop worked; above it, the collection would delay requests. */
const busyShareMax = 0.2;

type Collect = (options: { type: 'major'; execution: 'async'; flavor: 'last-resort' }) => Promise<void>;

/**
 * Frees the memory of the start as soon as the program is idle for a second. Loading modules and compiling schemas leaves
 * some 18 MB of garbage in pages that V8 keeps until the heap is under pressure, which an idle program never is; one full
 * collection returns them. It takes about 80 ms, once. The timer does not keep the process alive.
 */
export function giveBackMemorySoon(giveBack: () => void = collectAll, lookMs: number = everyMs): void {
  let before = performance.eventLoopUtilization();
  const timer = setInterval(() => {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, before);
    before = now;
    if (utilization > busyShareMax) return;
    clearInterval(timer);
    giveBack();
  }, lookMs);
  timer.unref();
}

function collectAll(): void {
  // Absent in a program that another one starts without exposing it.
  const collect = runInNewContext(`typeof gc === 'function' ? gc : undefined`) as Collect | undefined;
  void collect?.({ type: 'major', execution: 'async', flavor: 'last-resort' });
}

/** To be called before workers start: the flag is that of the process, so threads that set and reset it would disturb each other. */
export function exposeCollector(): void {
  setFlagsFromString('--expose-gc');
}
