/** Reads what is due for a sender: at once where the store answers at once, and not for too many senders together. */
import type { Observe } from '../../../observe/observation.ts';
import type { Row } from '../../../store/store.ts';
import type { Timers } from '../../outbound/engine/timers.ts';
import type { SenderQueue } from './sender-queue.ts';

const readsAtOnce = 8;
/** After the store was away. */
const againMs = 1000;

export type ReadingOptions = {
  readonly clock: () => number;
  readonly timers: Timers;
  readonly observe: Observe;
  readonly ready: (queue: SenderQueue) => void;
};

/** @returns whether what there is is there already; otherwise the queue is made ready when it is */
export type Read = (queue: SenderQueue) => boolean;

export function createReading({ clock, timers, observe, ready }: ReadingOptions): Read {
  const waiting = new Set<SenderQueue>();
  let reads = 0;
  let failing = false;

  function read(queue: SenderQueue): boolean {
    if (queue.reading) return false;
    if (reads >= readsAtOnce) {
      waiting.add(queue);
      return false;
    }
    const { wanted } = queue;
    const now = clock();
    const epoch = queue.beginRead();
    try {
      const rows = queue.rows.first(wanted);
      if (!(rows instanceof Promise)) {
        failing = false;
        queue.endRead(epoch, rows, wanted, now);
        return true;
      }
      reads += 1;
      void finish(queue, rows, (found) => queue.endRead(epoch, found, wanted, now));
    } catch (error) {
      failed(queue, error);
    }
    return false;
  }

  async function finish(
    queue: SenderQueue,
    rows: Promise<readonly Row[]>,
    end: (rows: readonly Row[]) => void,
  ): Promise<void> {
    try {
      end(await rows);
      failing = false;
      ready(queue);
    } catch (error) {
      failed(queue, error);
    }
    reads -= 1;
    for (const next of waiting) {
      waiting.delete(next);
      ready(next);
      return;
    }
  }

  function failed(queue: SenderQueue, error: unknown): void {
    queue.failRead();
    if (!failing) observe({ kind: 'receiving-failed', what: 'reading messages', error });
    failing = true;
    timers.after(againMs, () => ready(queue));
  }

  return read;
}
