/** Goes on with a value that may be there already: an `await` would cost a read by id a turn of the event loop. */
import type { MaybePromise } from './store.ts';

/** What `use` makes of the value: now if it is there, otherwise a promise of it. */
export function whenKnown<T, U>(value: MaybePromise<T>, use: (value: T) => MaybePromise<U>): MaybePromise<U> {
  return value instanceof Promise ? value.then(use) : use(value);
}
