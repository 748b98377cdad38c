/**
 * Hears the errors that no code of a thread caught (decision 0037), and gives back the memory that only a start needed, for `serve` and its
 * workers. Errors of an application's function end the function, if it still runs, and not the program (decision 0073).
 */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { Observe } from '../observe/observation.ts';
import { runningFunction } from '../observe/running-function.ts';

/** Uncaught errors that are logged; a repeating one would fill the disk. */
const uncaughtLinesMax = 10;

/** The first occurrence of an event that may repeat, and a function that removes the listener. */
export type Heard<T> = { readonly first: Promise<T>; readonly forget: () => void };

/** An error that no code caught. */
export type Uncaught = { readonly error: unknown };

/**
 * Resolves with the first uncaught error. Each is logged with its origin and stack, up to `uncaughtLinesMax`; later
 * ones have no other effect, so that a repeating fault neither ends the drain nor begins another.
 */
export function hearUncaught(observe: Observe): Heard<Uncaught> {
  const { promise, resolve: first } = Promise.withResolvers<Uncaught>();
  let seen = 0;
  // Node calls it for unhandled rejections too, as `origin` reports.
  const hear = (error: Error, origin: NodeJS.UncaughtExceptionOrigin): void => {
    const by = runningFunction();
    if (by?.fail?.(error) === true) return;
    if (by === undefined) {
      seen += 1;
      first({ error });
      if (seen > uncaughtLinesMax) return;
    }
    try {
      observe(
        by === undefined
          ? { kind: 'uncaught', origin, error }
          : { kind: 'function-escaped', named: by.named, origin, error },
      );
    } catch {
      // The log itself may have thrown the error. An error thrown here would end the process without a drain.
    }
  };
  process.on('uncaughtException', hear);
  return { first: promise, forget: () => void process.off('uncaughtException', hear) };
}

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
