/** Follows the log as a program does: every event once, in the order of commits, over lost connections and at the pace of the reader. */
import { openLine, type Parts } from './line.ts';
import type { CallOptions } from './send.ts';

/** Every event from a place on, as an iterable. @throws ComityError `position_expired` after a stated gap */
export async function* followEvents(
  parts: Parts,
  { types = ['*'], after }: { readonly types?: readonly string[]; readonly after?: string },
  { signal }: CallOptions,
): AsyncGenerator<never> {
  const queue: unknown[] = [];
  let failed: Error | undefined;
  let isOver = false;
  let wake: () => void = () => undefined;
  // A connection that is lost before its first event needs a place too.
  const begin = after === undefined || after === 'now' ? await placeNow(parts, signal) : after;
  const line = openLine(parts, begin, {
    patterns: () => types,
    onOpen: () => undefined,
    onLost: () => undefined,
    onEvent: ({ event, moved }) => {
      queue.push(moved === undefined ? event : { [moved[0]]: moved[1] });
      // The place of the last one that was taken is where it goes on.
      if (queue.length >= queueMax) line.pause();
      wake();
    },
    onEnd: (error) => {
      failed = error;
      isOver = true;
      wake();
    },
  });
  const abort = (): void => {
    line.close();
    failed = signal?.reason;
    isOver = true;
    wake();
  };
  if (signal?.aborted === true) abort();
  signal?.addEventListener('abort', abort);
  try {
    for (;;) {
      while (queue.length > 0) yield queue.shift() as never;
      line.resume();
      if (isOver) break;
      await new Promise<void>((resolve) => {
        wake = resolve;
        if (queue.length > 0 || isOver) resolve();
      });
    }
    if (failed !== undefined) throw failed;
  } finally {
    signal?.removeEventListener('abort', abort);
    line.close();
  }
}

async function placeNow({ send }: Parts, signal: AbortSignal | undefined): Promise<string> {
  const { body } = await send('GET', '/events?after=now&limit=1', signal === undefined ? {} : { signal });
  return (body as { readonly nextCursor: string }).nextCursor;
}

/** Events that wait for their taker before the connection is closed, to be opened again where it stopped. */
const queueMax = 1_000;
