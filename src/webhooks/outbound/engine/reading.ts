/** Reads what is due in a queue: at once where the store answers at once, and not for too many queues together. */
import type { MaybePromise, Row } from '../../../store/store.ts';
import type { Timers } from './timers.ts';

/** After the store was away. */
const againMs = 1000;

/** A queue that is filled from the store: endpoint-queue.ts, and that of received messages. */
export type ReadQueue = {
  readonly reading: boolean;
  readonly rows: { first(count: number): MaybePromise<readonly Row[]> };
  /** @returns what `endRead` must be given */
  beginRead(): number;
  endRead(epoch: number, rows: readonly Row[], wanted: number, now: number): void;
  failRead(): void;
};

export type ReadingOptions<Q extends ReadQueue> = {
  readonly clock: () => number;
  readonly timers: Timers;
  readonly ready: (queue: Q) => void;
  readonly readsAtOnce: number;
  /** Rows that a read of the queue asks for. */
  readonly wanted: (queue: Q) => number;
  /** Told of the first of the failures in a row. */
  readonly onFailed: (error: unknown) => void;
};

/** @returns whether what there is is there already; otherwise the queue is made ready when it is */
export type Read<Q extends ReadQueue> = (queue: Q) => boolean;

export function createReading<Q extends ReadQueue>(options: ReadingOptions<Q>): Read<Q> {
  const { clock, timers, ready, readsAtOnce, onFailed } = options;
  const waiting = new Set<Q>();
  let reads = 0;
  let failing = false;

  function read(queue: Q): boolean {
    if (queue.reading) return false;
    if (reads >= readsAtOnce) {
      waiting.add(queue);
      return false;
    }
    const wanted = options.wanted(queue);
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
    queue: Q,
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

  function failed(queue: Q, error: unknown): void {
    queue.failRead();
    if (!failing) onFailed(error);
    failing = true;
    timers.after(againMs, () => ready(queue));
  }

  return read;
}
