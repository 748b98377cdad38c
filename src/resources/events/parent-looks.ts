/**
 * Reads from the store what decides messages about children (§6.14), once for all readers of a batch of events: rows that references name,
 * as they are and as they were when they were deleted; and whether a collection has a child that left or entered, one row of an index each.
 *
 * As with `RelatedRows`, a decision notes what it lacks, taking it for absent, and is made again when that has been read.
 */
import { byId, type Filter } from '../../model/filter.ts';
import { RelatedRows } from '../../store/related-rows.ts';
import {
  eventsTable,
  type MaybePromise,
  type Row,
  type Store,
  StoreUnavailable,
  whenKnown,
} from '../../store/store.ts';
import { lastState } from './seen-event.ts';

export type LooksStore = Pick<Store, 'read' | 'plan' | 'tail' | 'head'>;

/** Looks under way at once. */
const looksMax = 64;

export class ParentLooks {
  readonly #store: LooksStore;
  /** Rows as they are now; deleted ones as they were last. Each is read once, so that both states of a parent are judged by the same. */
  readonly rows: RelatedRows;
  /** Distinguishes what was decided by these looks from what was decided by others, without keeping them. */
  readonly token: object = {};
  readonly #found = new Map<string, boolean>();
  readonly #lacking = new Set<string>();
  #reading: Promise<void>[] = [];
  #lacked = 0;

  constructor(store: LooksStore) {
    this.#store = store;
    this.rows = new RelatedRows({ read: (table, id) => readRow(store, table, id) });
  }

  /** How often a look was not answered yet: a decision during which it stays the same lacks nothing but rows of other tables. */
  get lacked(): number {
    return this.#lacked;
  }

  /** True if further looks must wait for `load`. */
  get isFull(): boolean {
    return this.#reading.length >= looksMax;
  }

  /** True if the table has a row that passes the filter; undefined while that is being read. */
  hasRow(table: string, filter: Filter): boolean | undefined {
    return this.#look(`${table} ${JSON.stringify(filter)}`, () => {
      const plan = this.#store.plan({ table, filter, sort: byId, limit: 1 });
      return whenKnown(plan.page({ from: 'start' }), ({ docs }) => docs.length > 0);
    });
  }

  /** True if the log has an event of the revision or after it that passes the filter; undefined while that is being read. */
  hasEvent(rev: number, filter: Filter): boolean | undefined {
    return this.#look(`${eventsTable} ${rev} ${JSON.stringify(filter)}`, () =>
      whenKnown(this.#store.tail({ rev, id: '' }, filter, 1), (entries) => entries.length > 0),
    );
  }

  /** Reads what the decision lacked; undefined if it lacked nothing. @throws StoreUnavailable */
  load(): Promise<void> | undefined {
    const reading: Promise<void>[] = [...this.#reading];
    const loading = this.rows.load();
    if (loading !== undefined) reading.push(loading);
    this.#reading = [];
    this.#lacking.clear();
    return reading.length === 0 ? undefined : Promise.all(reading).then(() => undefined);
  }

  #look(key: string, ask: () => MaybePromise<boolean>): boolean | undefined {
    const known = this.#found.get(key);
    if (known !== undefined) return known;
    if (this.#lacking.has(key) || this.isFull) {
      this.#lacked += 1;
      return undefined;
    }
    const answer = ask();
    if (!(answer instanceof Promise)) {
      this.#found.set(key, answer);
      return answer;
    }
    this.#lacked += 1;
    this.#lacking.add(key);
    const reading = answer
      .catch((error: unknown) => this.#withoutAnswer(error))
      .then((found) => void this.#found.set(key, found));
    // The caller of `load` gets the failure.
    reading.catch(() => undefined);
    this.#reading.push(reading);
    return undefined;
  }

  /** A look that took too long, while the store answers, found nothing: events after it must not wait for it each time anew. */
  async #withoutAnswer(error: unknown): Promise<boolean> {
    if (!(error instanceof StoreUnavailable)) throw error;
    await this.#store.head();
    return false;
  }
}

function readRow(store: LooksStore, table: string, id: string): MaybePromise<Row | undefined> {
  return whenKnown(store.read(table, id), (row) => {
    if (row !== undefined && row.deletedAt === null) return row;
    const gone = { id, rev: 0, createdAt: 0, updatedAt: 0, ...row, deletedAt: row?.deletedAt ?? 0 };
    return lastState(store, table, id).then((last) =>
      last === undefined ? undefined : { ...gone, ...last },
    );
  });
}
