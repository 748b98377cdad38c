/**
 * Reads the rows of one queue that have a due time, earliest first: a range of one index. A store that answers
 * synchronously is read synchronously; other reads are bounded for all queues together.
 */
import type { Collection } from '../model/collection.ts';
import { type Field, idField } from '../model/field.ts';
import type { Filter, Sort } from '../model/filter.ts';
import { formatTimestamp } from '../model/timestamp.ts';
import {
  type Change,
  type Keyset,
  keptRow,
  type MaybePromise,
  type Plan,
  type Row,
  type Store,
} from '../store/store.ts';
import type { Timers } from './timers.ts';

/** A collection whose index over a field and `dueAt` is a queue for each value of the field. */
export type DueIndex = {
  readonly table: string;
  readonly field: Field;
  readonly dueAt: Field;
  /** More rows than one queue can take and request. */
  readonly rowsMax: number;
};

/** The place of a row in the order of its queue. */
export type DueKey = { readonly dueAt: string; readonly id: string };

/** A lower bound of all times, which excludes rows without one. */
const everyTime = '0001-01-01T00:00:00.000Z';
/** An upper bound. */
const end: DueKey = { dueAt: '9999-12-31T23:59:59.999Z', id: '' };

/** @throws RangeError if the collection lacks one of the fields */
export function dueIndexOf({ name: table, fields }: Collection, by: string, rowsMax: number): DueIndex {
  const [field, dueAt] = [fields.get(by), fields.get('dueAt')];
  if (field === undefined || dueAt === undefined)
    throw new RangeError(`the collection ${table} lacks the field ${by} or dueAt`);
  return { table, field, dueAt, rowsMax };
}

export class DueRows {
  readonly #plan: Plan;
  readonly #rowsMax: number;
  readonly #table: string;

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
    this.#table = table;
  }

  /** @param behind the row after which they begin */
  first(count: number, behind?: DueKey): MaybePromise<readonly Row[]> {
    const position: Keyset =
      behind === undefined ? { from: 'start' } : { from: 'after', key: [behind.dueAt, behind.id] };
    return this.#plan.rows(position, Math.min(count, this.#rowsMax));
  }

  /**
   * Returns the rows that are due last, the earliest of them first.
   * @param before the row before which they end
   */
  last(count: number, { dueAt, id }: DueKey = end): MaybePromise<readonly Row[]> {
    return this.#plan.rows({ from: 'before', key: [dueAt, id] }, Math.min(count, this.#rowsMax));
  }

  /** The changes that set such rows right (`isAhead`): each is due as long from now on as it was from its last change on. */
  setRight(rows: readonly Row[], now: number): readonly Change[] {
    return rows.map(({ id, rev, doc, owner, createdAt, updatedAt }) => {
      const work = JSON.parse(doc) as Due;
      const dueAt = formatTimestamp(now + Math.max(0, Date.parse(work.dueAt ?? '') - updatedAt));
      const isScheduled = work.nextAttemptAt !== undefined && work.nextAttemptAt === work.dueAt;
      const right = {
        ...work,
        dueAt,
        ...(isScheduled ? { nextAttemptAt: dueAt } : {}),
        updatedAt: formatTimestamp(now),
      };
      const next = keptRow(JSON.stringify(right), owner, Math.min(createdAt, now), now);
      return { table: this.#table, id, expect: { rev }, next };
    });
  }

  /** Returns the last row that is due before the moment, in milliseconds since the epoch, if any. */
  lastBefore(at: number): MaybePromise<readonly Row[]> {
    return this.#plan.rows({ from: 'before', key: [formatTimestamp(at), ''] }, 1);
  }
}

/** The parts of due work that tell its time; a delivery has the next time of its schedule as well. */
type Due = { readonly dueAt: string | null; readonly nextAttemptAt?: string | null };

/** Clocks that differ by less explain a row of the future. */
const aheadMs = 60_000;

/**
 * True if a clock that was ahead set the time for which the row waits: it was changed in the future, and is due after that. A time that was
 * set since, by a clock that is right, is earlier than the change, of which the time never moves back.
 */
export function isAhead({ doc, updatedAt }: Pick<Row, 'doc' | 'updatedAt'>, now: number): boolean {
  if (updatedAt <= now + aheadMs) return false;
  const { dueAt } = JSON.parse(doc) as Due;
  return dueAt !== null && Date.parse(dueAt) >= updatedAt - resentMs;
}

/** False if a clock ahead can have set neither this time nor an earlier one: what it set is due after the change that did. */
export function mayBeAhead({ dueAt }: DueKey, now: number): boolean {
  return Date.parse(dueAt) > now + aheadMs - resentMs;
}

export function keyOf({ doc, id }: Pick<Row, 'doc' | 'id'>): DueKey {
  return { dueAt: (JSON.parse(doc) as Due).dueAt ?? everyTime, id };
}

/** A delivery that is sent again may be due a moment before the change that says so. */
const resentMs = 1;

/** Pause after a failed read. */
const againMs = 1000;

/** A queue that is filled from the store (due-queue.ts). */
export type ReadQueue = {
  readonly reading: boolean;
  readonly wanted: number;
  readonly taken: number;
  readonly readsBehind: DueKey | undefined;
  readonly rows: { first(count: number, behind?: DueKey): MaybePromise<readonly Row[]> };
  /** @returns the argument for `endRead` */
  beginRead(now: number): number;
  endRead(epoch: number, rows: readonly Row[], wanted: number, now: number): void;
  failRead(): void;
};

export type ReadingOptions<Q extends ReadQueue> = {
  readonly clock: () => number;
  readonly timers: Timers;
  readonly ready: (queue: Q) => void;
  readonly readsAtOnce: number;
  /** Receives the first of consecutive failures. */
  readonly onFailed: (error: unknown) => void;
};

/** @returns true if the read has ended; otherwise the queue becomes ready later */
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
    const now = clock();
    const epoch = queue.beginRead(now);
    const { readsBehind } = queue;
    // Taken rows are among the first rows only.
    const wanted = queue.wanted - (readsBehind === undefined ? 0 : queue.taken);
    try {
      const rows = queue.rows.first(wanted, readsBehind);
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
