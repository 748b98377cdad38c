/**
 * The rows of one queue that have a time, the earliest first: a range of one index, whatever follows it. They are read at once where
 * the store answers at once, and for a bounded number of queues together.
 */
import type { Collection } from '../../model/collection.ts';
import { type Field, idField } from '../../model/field.ts';
import type { Filter, Sort } from '../../model/filter.ts';
import type { MaybePromise, Plan, Row, Store } from '../../store/store.ts';
import type { Timers } from './timers.ts';

/** A collection whose index over a field and `dueAt` is a queue for each value of the field. */
export type DueIndex = {
  readonly table: string;
  readonly field: Field;
  readonly dueAt: Field;
  /** More than one queue can have taken and want. */
  readonly rowsMax: number;
};

/** Before every time: separates rows without one. */
const everyTime = '0001-01-01T00:00:00.000Z';

/** @throws RangeError where the collection has no such field */
export function dueIndexOf({ name: table, fields }: Collection, by: string, rowsMax: number): DueIndex {
  const [field, dueAt] = [fields.get(by), fields.get('dueAt')];
  if (field === undefined || dueAt === undefined) throw new RangeError(`${table} is no queue by ${by}`);
  return { table, field, dueAt, rowsMax };
}

export class DueRows {
  readonly #plan: Plan;
  readonly #rowsMax: number;

  /** @param queue the value of the index's field */
  constructor(store: Pick<Store, 'plan'>, { table, field, dueAt, rowsMax }: DueIndex, queue: string) {
    const filters: readonly Filter[] = [
      { op: 'eq', field, value: queue },
      { op: 'gte', field: dueAt, value: everyTime },
    ];
    const sort: readonly Sort[] = [
      { field: dueAt, direction: 'asc' },
      { field: idField, direction: 'asc' },
    ];
    this.#plan = store.plan({ table, filter: { op: 'and', filters }, sort, limit: rowsMax });
    this.#rowsMax = rowsMax;
  }

  first(count: number): MaybePromise<readonly Row[]> {
    return this.#plan.rows({ from: 'start' }, Math.min(count, this.#rowsMax));
  }

  /** The one whose time came last before the moment, in milliseconds since the epoch; none or one row. */
  lastBefore(at: number): MaybePromise<readonly Row[]> {
    return this.#plan.rows({ from: 'before', key: [new Date(at).toISOString(), ''] }, 1);
  }
}

/** After the store was away. */
const againMs = 1000;

/** A queue that is filled from the store, as due-queue.ts has it. */
export type ReadQueue = {
  readonly reading: boolean;
  /** Rows that a read asks for. */
  readonly wanted: number;
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
  /** Receives the first of the failures in a row. */
  readonly onFailed: (error: unknown) => void;
};

/** @returns whether what there is is there already; otherwise the queue is made ready when it is */
export type Read<Q extends ReadQueue> = (queue: Q) => boolean;

export function createReading<Q extends ReadQueue>({
  clock,
  timers,
  ready,
  readsAtOnce,
  onFailed,
}: ReadingOptions<Q>): Read<Q> {
  const waiting = new Set<Q>();
  let reads = 0;
  let failing = false;

  function read(queue: Q): boolean {
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
