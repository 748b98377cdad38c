/**
 * Steps over values that are mostly there already: the embedded store reads by id synchronously, and a read by id is answered without a
 * promise. An `await` costs 44 to 77 ns (Node 26) and no turn of the event loop, so other requests await.
 */
import type { MaybePromise } from './store.ts';

/** Passes a value to `use`, synchronously if it is not a promise. */
export function whenKnown<T, U>(value: MaybePromise<T>, use: (value: T) => MaybePromise<U>): MaybePromise<U> {
  return value instanceof Promise ? value.then(use) : use(value);
}

/**
 * Uses a value now if it is there; otherwise returns the promise of having used it.
 */
export function settle<T>(value: MaybePromise<T>, use: (value: T) => void): Promise<void> | undefined {
  if (value instanceof Promise) return value.then(use);
  use(value);
  return undefined;
}
