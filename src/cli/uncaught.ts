/**
 * Errors that no code of a thread caught (decision 0037). Those of an application's function end the function, if it
 * still runs, and not the program (decision 0073).
 */
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
