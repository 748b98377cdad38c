/**
 * Error listeners of event emitters. Node ends the process when an emitter emits `error` without a listener, so every
 * socket, stream, session, thread and pool gets its listener in the statement that creates it, or before the handler of
 * the event that brings it. `scripts/checks/emitters.ts` refuses code in src/ that creates or receives an emitter
 * without these functions.
 */

/** Any emitter. The types of `undici` declare no `error` event, although its emitters have one. */
type Emitter = { on(event: never, listener: never): unknown };
type ErrorEmitter = { on(event: 'error', listener: (error: Error) => void): unknown };

/** Adds a new emitter's error listener and returns the emitter. It stays: a closing socket may emit an error late. */
export function ownEmitter<E extends Emitter>(emitter: E, onError: (error: Error) => void): E {
  (emitter as unknown as ErrorEmitter).on('error', onError);
  return emitter;
}

/** A server or session that emits events with new emitters. */
export type Arrivals<A extends readonly unknown[]> = {
  on(event: string, listener: (...arrived: A) => void): unknown;
};

/** Handles an event that brings emitters: adds `onError`, usually `ignoreError`, to each, then calls `take`. */
export function onArrival<A extends readonly unknown[]>(
  source: Arrivals<A>,
  event: string,
  onError: (error: Error) => void,
  take: (...arrived: A) => void,
): void {
  source.on(event, (...arrived: A) => {
    for (const each of arrived) if (isEmitter(each)) each.on('error', onError);
    take(...arrived);
  });
}

/** A listener for emitters whose owner needs only `close` or `exit`. */
export function ignoreError(): void {
  // The owner learns of the end by `close`.
}

function isEmitter(value: unknown): value is ErrorEmitter {
  return typeof value === 'object' && value !== null && 'on' in value && typeof value.on === 'function';
}

// The end of what a stream gives. If a stream has no octets, Node emits `end` as soon as the end arrives, even if nothing listens yet. Code that
// starts to listen later, after it has dialled or verified a key, would never receive that event.
//

type Ending = {
  readonly readableEnded: boolean;
  on(event: 'end', listener: () => void): unknown;
};

/** Calls the listener at the end of the stream, or soon if that has come already. */
export function onEnd(stream: Ending, listener: () => void): void {
  if (stream.readableEnded) queueMicrotask(listener);
  else stream.on('end', listener);
}
