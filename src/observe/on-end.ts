/**
 * The end of what a stream gives. Node reads a stream without octets to its end when that arrives, and emits `end` then, whether or not
 * anybody listens. Whoever takes a stream after something else, such as a dial or a look-up of a key, would wait for that event for ever.
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
