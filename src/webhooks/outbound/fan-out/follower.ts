/**
 * Reads again whenever the store says that there may be something new: one reading at a time, one more for all that is said while it
 * runs. One that failed is done again after a second.
 */
import type { Observe } from '../../../observe/observation.ts';
import { oneAtATime } from '../../../store/one-at-a-time.ts';
import type { Store } from '../../../store/store.ts';

const againAfterMs = 1000;

/** What everyone needs that follows the store. */
export type Followed = { readonly store: Store; readonly observe: Observe };

export type Follower = { close(): Promise<void> };

export type FollowerOptions = {
  /** Registers the listener with the store. Returns the way to stop. */
  readonly subscribe: (listener: () => void) => () => void;
  /** Takes in all there is. */
  readonly read: () => Promise<void>;
  /** What cannot be read, for the log. */
  readonly what: string;
  readonly observe: Observe;
};

export function createFollower({ subscribe, read, what, observe }: FollowerOptions): Follower {
  let timer: NodeJS.Timeout | undefined;
  let isClosed = false;
  const readOnce = oneAtATime(async () => {
    if (!isClosed) await read();
  });

  function soon(): void {
    readOnce().catch((error: unknown) => {
      if (isClosed) return;
      observe({ kind: 'sending-failed', what, error });
      clearTimeout(timer);
      timer = setTimeout(soon, againAfterMs);
      timer.unref();
    });
  }

  const stop = subscribe(soon);
  // For what came between the caller's look at where things stand and now.
  soon();
  return {
    async close() {
      isClosed = true;
      stop();
      clearTimeout(timer);
      await readOnce.idle();
    },
  };
}
