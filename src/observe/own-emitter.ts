/**
 * Error listeners of event emitters. Node ends the process when an emitter emits `error` without a listener, so every socket, stream, session,
 * thread and pool gets its listener in the statement that makes it, or before the handler of the event that brings it.
 *
 * `scripts/checks/emitters.ts` refuses code in src/ that makes or takes an emitter without the two functions here.
 */

/** Any emitter. The types of `undici` know no event `error`, which its emitters have like all others. */
type Emitter = { on(event: never, listener: never): unknown };
type ErrorEmitter = { on(event: 'error', listener: (error: Error) => void): unknown };

/**
 * Adds the error listener of a new emitter and returns the emitter. The listener is never removed: an error may come after the owner has lost
 * interest, for example from a socket that is closing.
 */
export function ownEmitter<E extends Emitter>(emitter: E, onError: (error: Error) => void): E {
  (emitter as unknown as ErrorEmitter).on('error', onError);
  return emitter;
}

/** A server or session, by the event that brings the emitters. */
export type Arrivals<A extends readonly unknown[]> = {
  on(event: string, listener: (...arrived: A) => void): unknown;
};

/** Listens for an event that brings emitters, and owns each of them before `take` sees it. `ignoreError` is the usual listener. */
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

/** For emitters whose `close` or `exit` is all that their owner needs. */
export function ignoreError(): void {
  // The owner learns of the end by `close`.
}

function isEmitter(value: unknown): value is ErrorEmitter {
  return typeof value === 'object' && value !== null && 'on' in value && typeof value.on === 'function';
}
