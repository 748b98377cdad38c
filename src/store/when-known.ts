/** Passes a value to `use`, synchronously if it is not a promise: an `await` would cost a read by id a turn of the event loop. */
import type { MaybePromise } from './store.ts';

export function whenKnown<T, U>(value: MaybePromise<T>, use: (value: T) => MaybePromise<U>): MaybePromise<U> {
  return value instanceof Promise ? value.then(use) : use(value);
}

/**
 * Goes on with a value that may be there already: an `await` would cost a read by id a turn of the event loop.
 *
 * Uses the value now if it is there; otherwise returns the promise of having used it.
 */
export function settle<T>(value: MaybePromise<T>, use: (value: T) => void): Promise<void> | undefined {
  if (value instanceof Promise) return value.then(use);
  use(value);
  return undefined;
}
