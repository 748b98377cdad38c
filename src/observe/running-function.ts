/**
 * The function of an application that runs, known in everything that it starts: asynchronous blocks, timers, callbacks. An error that no
 * code caught is then known to be the application's (decision 0073).
 */
import { AsyncLocalStorage } from 'node:async_hooks';

export type RunningFunction = {
  /** `the hook beforeWrite of tickets` */
  readonly named: string;
  /** Fails the function, unless it is over. @returns false if it is over */
  readonly fail?: (error: unknown) => boolean;
};

// An uncaught error reaches the process and not an object, so the function is known to the process too.
const running = new AsyncLocalStorage<RunningFunction>();

/** Calls an application's function, 160 ns more than a plain call. */
export function callAs<Given extends unknown[], T>(
  by: RunningFunction,
  call: (...given: Given) => T,
  ...given: Given
): T {
  return running.run(by, call, ...given);
}

/** Calls code of Comity on behalf of a function: what fails there without being caught is not the application's. */
export function callForComity<Given extends unknown[], T>(call: (...given: Given) => T, ...given: Given): T {
  return running.exit(call, ...given);
}

export function runningFunction(): RunningFunction | undefined {
  return running.getStore();
}
