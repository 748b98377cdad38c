/**
 * The store contract (design §3): what resources, events and later rooms may ask of durable storage.
 * It is written for two engines, embedded SQLite and PostgreSQL; test/contract holds each to it.
 *
 * A table holds rows whose `doc` is the representation as served. One store-wide counter numbers
 * the atomic units: every row and event of a unit carries the unit's `rev`, greater than every earlier one and
 * never used again. A unit is committed whole or not at all, and is durable when `commit` resolves.
 *
 * Methods typed `MaybePromise` answer at once where the engine can (a point read in SQLite takes
 * 1.5 µs, an `await` costs a tenth of it); callers test for a promise instead of always awaiting.
 */
import type { Field, Scalar } from '../model/field.ts';
import type { Filter, Sort } from '../model/filter.ts';

export type MaybePromise<T> = T | Promise<T>;

export type Row = {
  readonly id: string;
  readonly rev: number;
  /** The representation, byte for byte as served without a content coding. */
  readonly doc: string;
  readonly owner: string | null;
  /** Milliseconds since the epoch, as are the two below. */
  readonly createdAt: number;
  readonly updatedAt: number;
  /** Set on a softly deleted row, which `read` returns and `plan` and `count` leave out. */
  readonly deletedAt: number | null;
};

/** What a table must enforce and make quick. Built once from a collection's declaration. */
export type Table = {
  readonly name: string;
  readonly fields: readonly Field[];
  /** Each entry is one index over these fields in order; a plan that an index serves is `bounded`. */
  readonly indexes: readonly (readonly Field[])[];
  /** Fields whose present, non-null value only one undeleted row may hold. */
  readonly unique: readonly Field[];
  /** A row that names a row of another table, which must exist and then cannot be removed. */
  readonly references: readonly Reference[];
  /** Whether rows carry search text for `search` filters. */
  readonly searched: boolean;
};

export type Reference = { readonly field: Field; readonly table: string };

/** The state that a change was computed from; anything else in its place fails the whole unit. */
export type Expectation = { readonly absent: true } | { readonly rev: number };

export type Change = {
  readonly table: string;
  readonly id: string;
  readonly expect: Expectation;
  /** What the row becomes; null removes it. */
  readonly next: NextRow | null;
};

export type NextRow = {
  readonly doc: string;
  readonly owner: string | null;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly deletedAt: number | null;
  /** Folded text that `search` looks in; null for a table that is not searched. */
  readonly search: string | null;
  /** The non-null values of the table's reference fields: each must name an undeleted row. */
  readonly references: readonly { readonly field: string; readonly id: string }[];
};

/** The table of the event log, which every store has, declared or not. */
export const eventsTable = 'events';

/** An outbox entry (§6): kept in the table `events`, whose rows have the columns `type` and `collection` besides. */
export type EventEntry = {
  readonly id: string;
  readonly type: string;
  /** The collection written to, and the owner of the resource: what visibility is decided by. */
  readonly collection: string;
  readonly owner: string | null;
  /** The envelope of §2.6 as served. */
  readonly doc: string;
  readonly createdAt: number;
};

export type Unit = { readonly changes: readonly Change[]; readonly events: readonly EventEntry[] };

/** Each failure names the first change (by index) that could not be made; nothing of the unit was. */
export type Commit =
  | { readonly outcome: 'committed'; readonly rev: number }
  /** The row is not as expected; `current` is what stands (softly deleted rows included), absent if none. */
  | { readonly outcome: 'superseded'; readonly change: number; readonly current: Row | undefined }
  /** Another undeleted row holds the value of this unique field. */
  | { readonly outcome: 'taken'; readonly change: number; readonly field: string }
  /** The row that this reference field names does not exist. */
  | { readonly outcome: 'dangling'; readonly change: number; readonly field: string }
  /** Undeleted rows of `table` name the row that was to be removed (softly or not). */
  | {
      readonly outcome: 'depended-on';
      readonly change: number;
      readonly table: string;
      readonly field: string;
      readonly count: number;
    };

export type ListQuery = {
  readonly table: string;
  readonly filter: Filter;
  /** Total order: the caller ends it with the `id` field. */
  readonly sort: readonly Sort[];
  /** Rows on a page; bounded by the caller's settings. */
  readonly limit: number;
  /** Octets of documents after which a page takes no further row. Absent: `limit` alone ends it. */
  readonly bytesMax?: number;
};

/** Where a page starts. Keyset positions hold one value per sort key, as `first` and `last` of a page give them. */
export type Position = Keyset | { readonly from: 'offset'; readonly offset: number };

/** The positions whose cost does not grow with their distance from the start. */
export type Keyset =
  | { readonly from: 'start' }
  | { readonly from: 'after' | 'before'; readonly key: readonly Scalar[] };

export type Page = {
  /** Representations in sort order, also for a page read backwards. */
  readonly docs: readonly string[];
  /** Sort key of the first and last row; null on an empty page. */
  readonly first: readonly Scalar[] | null;
  readonly last: readonly Scalar[] | null;
  /** Whether rows remain beyond the page in the direction of reading. */
  readonly more: boolean;
  /** The table's `version` in the very snapshot that the page was read from. */
  readonly version: string;
};

/** A compiled list query, kept and reused by callers; safe to run any number of times until `close`. */
export type Plan = {
  /** True where the cost of a page from `start` or a key does not grow with the table. */
  readonly bounded: boolean;
  /** @param party whom the page is read for: where reads wait, parties take turns. Default: the program itself */
  page(position: Position, party?: string): MaybePromise<Page>;
  /**
   * Whole rows from the position on, in sort order also when read backwards, at the cost of a page. Their number alone ends them, so this is
   * for tables of the program itself, whose rows have a greatest length: `rowReads` in src/memory/row-reads.ts lists every caller
   * with its octets. Rows of collections are read by `page`.
   * @param limit how many at most, where fewer than the query's limit are wanted
   * @throws RangeError for a plan that is not bounded: what reads rows is the program, which never waits for a scan
   */
  rows(position: Keyset, limit?: number): MaybePromise<readonly Row[]>;
};

export type TailEntry = {
  readonly id: string;
  readonly rev: number;
  readonly type: string;
  readonly collection: string;
  readonly owner: string | null;
  readonly doc: string;
};

/** A place in the event log; entries after it are those with a greater (rev, id). */
export type LogPosition = { readonly rev: number; readonly id: string };

/** An amount to add to a counter. */
export type Tally = {
  readonly key: string;
  /** A whole number; 0 only asks. */
  readonly add: number;
  /** Milliseconds since the epoch from which on nobody asks for the counter again. */
  readonly expiresAt: number;
};

/** Names one row. */
export type RowName = { readonly table: string; readonly id: string };

/** What an attempt at a change returns that another change came before, and the row where it lost. */
export class Overtaken {
  readonly row: RowName;

  constructor(row: RowName) {
    this.row = row;
  }
}

/** Calls back when nobody waits for the change any more; returns the way to stop. */
export type OnGone = (listener: () => void) => () => void;

/** The places of one change in the lines of its rows. */
export type Turn = {
  /**
   * Waits until this change is the head at the row and at all rows that it took before. Where it is that already, only another process
   * can have overtaken it, and it tries again at once.
   * @throws LineUnavailable
   */
  take(row: RowName): Promise<void>;
  /** Lets the next ones go on. Must be called however the change ends. */
  release(): void;
};

/** Lines of changes of this process that wait for a row (lines.ts). They order changes and prove nothing: expectations do. */
export type ChangeLines = {
  /** Changes that wait for their turn. */
  readonly waiting: number;
  /** Whether another change of the row is being made in turn or waits. */
  isBusy(row: RowName): boolean;
  turn(onGone?: OnGone): Turn;
  /**
   * Runs `attempt` until nobody overtakes it: at once where the row is not busy, in turn otherwise. It reads and computes anew each time.
   * @param row undefined where only the attempt tells
   * @throws LineUnavailable
   */
  change<T>(row: RowName | undefined, attempt: () => Promise<T | Overtaken>): Promise<T>;
  /**
   * Runs `work` in the place of one row, exclusively or together with others that share it. Work that tries again when another process
   * overtook it calls `checkTime` before, which throws once the time is over.
   * @throws LineUnavailable
   */
  hold<T>(row: RowName, shared: boolean, work: (checkTime: () => void) => Promise<T>): Promise<T>;
};

export type Store = {
  /** Whether other processes may use the same data at the same time. */
  readonly shared: boolean;
  /** Names this process among all that ever open the store. */
  readonly processId: string;
  /**
   * Whether the process of that name has ended. Where processes share the store it is known some seconds after the end, and one that was cut
   * off from the store counts as ended: what it began must be refused by its expectations.
   * @throws StoreUnavailable
   */
  hasEnded(processId: string): MaybePromise<boolean>;
  readonly lines: ChangeLines;
  /** The row, softly deleted or not. Sees every unit whose `commit` has resolved. */
  read(table: string, id: string): MaybePromise<Row | undefined>;
  plan(query: ListQuery): Plan;
  /** @param party as for a page */
  count(table: string, filter: Filter, party?: string): MaybePromise<number>;
  /** An opaque text that is different after every unit that changed the table, and only then. */
  version(table: string): MaybePromise<string>;
  /** All changes and events of the unit, or none. Rejects only when storage itself fails (`StoreUnavailable`). */
  commit(unit: Unit): Promise<Commit>;
  /**
   * Events after the position in (rev, id) order that pass the filter; never skips one that commits late.
   * @param options `bytesMax`: octets of documents after which no further event is read (`isTailFull` tells whether more may
   *   remain); `party`: whom a long read is for
   */
  tail(
    after: LogPosition,
    filter: Filter,
    limit: number,
    options?: { readonly bytesMax?: number | undefined; readonly party?: string | undefined },
  ): MaybePromise<readonly TailEntry[]>;
  /** The position of the newest event, for a tail that starts now. */
  head(): MaybePromise<LogPosition>;
  /** Calls back soon after units that appended events become visible, in this process or another. Returns the way to stop. */
  onAppend(listener: () => void): () => void;
  /**
   * Calls back soon after units that changed the table become visible, in this process or another, and after a time in which
   * such a call may have been missed. Returns the way to stop.
   */
  onChange(table: string, listener: () => void): () => void;
  /**
   * Adds to counters that all processes share, and returns what each holds then, in order. They are made by being added to and
   * forgotten some time after `expiresAt`. Not durable: a crash of the engine may forget them.
   */
  tally(tallies: readonly Tally[]): Promise<readonly number[]>;
  /** Removes rows of `table` last updated before the time (ms), at most `limit`; returns how many. Emits no events. */
  purge(table: string, updatedBefore: number, limit: number): Promise<number>;
  /** A consistent copy while serving. Progress is reported in pages of the engine. */
  backup(path: string, onProgress: (done: number, total: number) => void): Promise<void>;
  /** Rejects with `StoreUnavailable` when a trivial statement fails. */
  ping(): Promise<void>;
  /** Waits for commits under way, then releases files and threads. */
  close(): Promise<void>;
};

/** What is wrong with storage that waiting alone does not mend; part of the answer. */
export type StorageFault = 'storage_full' | 'storage_damaged';

/** Storage cannot answer now: answered 503 with Retry-After. `retryAfterSeconds` is a hint. */
export class StoreUnavailable extends Error {
  override readonly name = 'StoreUnavailable';
  readonly retryAfterSeconds: number;
  readonly fault: StorageFault | undefined;

  constructor(
    message: string,
    options: { retryAfterSeconds: number; cause?: unknown; fault?: StorageFault | undefined },
  ) {
    super(message, { cause: options.cause });
    this.retryAfterSeconds = options.retryAfterSeconds;
    this.fault = options.fault;
  }
}
