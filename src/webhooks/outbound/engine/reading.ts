/** Reads what is due for an endpoint: at once where the store answers at once, and not for too many endpoints together. */
import type { Observe } from '../../../observe/observation.ts';
import type { Row } from '../../../store/store.ts';
import type { Budget, EndpointQueue } from './endpoint-queue.ts';
import type { Timers } from './timers.ts';

/** Rows that one read brings at most: more make the reads no cheaper. */
const wantedMax = 256;
/** Rows that one turn can use. */
const wantedMin = 4;
/** Rows that all endpoints together have in memory, about 1 KiB each, before a read brings no more than that. */
const bufferedMax = 8192;
const readsAtOnce = 16;
/** After the store was away. */
const againMs = 1000;

export type ReadingOptions = {
  readonly clock: () => number;
  readonly timers: Timers;
  readonly observe: Observe;
  readonly ready: (queue: EndpointQueue) => void;
  readonly budget: Budget;
};

export type Reading = {
  /** @returns whether what there is is there already; otherwise the queue is made ready when it is */
  read(queue: EndpointQueue): boolean;
};

export function createReading({ clock, timers, observe, ready, budget }: ReadingOptions): Reading {
  const waiting = new Set<EndpointQueue>();
  let reads = 0;
  let failing = false;

  function read(queue: EndpointQueue): boolean {
    if (queue.reading) return false;
    if (reads >= readsAtOnce) {
      waiting.add(queue);
      return false;
    }
    const most = budget.buffered < bufferedMax ? wantedMax : wantedMin;
    const wanted = queue.taken + Math.min(Math.max(2 * queue.window.size, wantedMin), most);
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
    queue: EndpointQueue,
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

  function failed(queue: EndpointQueue, error: unknown): void {
    queue.failRead();
    if (!failing) observe({ kind: 'sending-failed', what: 'reading deliveries', error });
    failing = true;
    timers.after(againMs, () => ready(queue));
  }

  return { read };
}
