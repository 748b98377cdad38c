/**
 * The end of what a stream gives. If a stream has no octets, Node emits `end` as soon as the end arrives, even if nothing listens yet. Code that
 * starts to listen later, after it has dialled or verified a key, would never receive that event.
 */

type Ending = {
  readonly readableEnded: boolean;
  on(event: 'end', listener: () => void): unknown;
};

/** Calls the listener at the end of the stream, or soon if that has come already. */
export function onEnd(stream: Ending, listener: () => void): void {
  if (stream.readableEnded) queueMicrotask(listener);
  else stream.on('end', listener);
}
