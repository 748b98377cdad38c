/**
 * A store in front of the store, for the writes of an application's function (§4.14.5): the operations of a collection
 * commit to it as to any store, and their writes stay here until the unit is made. Reads by id and lists see them; counts
 * and versions are those of the store itself.
 *
 * The unit expects each row as it was first read here, also those that the function read and left alone. So it never
 * rests on what has changed: the unit is superseded, and the function runs again.
 */

import type { Collection } from '../../model/collection.ts';
import type { Change as ChangeKind } from '../../model/event.ts';
import type { Field } from '../../model/field.ts';
import { tablesOf } from '../../model/filter.ts';
import { foldCase } from '../../model/fold-case.ts';
import { equalJson } from '../../model/json-value.ts';
import { memberAt } from '../../model/matches.ts';
import { instantKey } from '../../model/timestamp.ts';
import { referencesOf } from '../../resources/document/representation.ts';
import type {
  EventEntry,
  Expectation,
  ListQuery,
  MaybePromise,
  NextRow,
  Plan,
  Row,
  RowName,
  Store,
  Change as StoreChange,
} from '../../store/store.ts';
import { whenKnown } from '../../store/store.ts';
import { mergedPage, type OwnRows, relatedPage } from './overlay-page.ts';

/** The combined effect of all writes to one row. */
export type NetWrite = {
  readonly table: string;
  readonly id: string;
  readonly expect: Expectation;
  /** The row in the store; undefined: absent or softly deleted. */
  readonly before: Row | undefined;
  readonly next: NextRow | null;
  /** Undefined if it was created and deleted again: no event is needed. */
  readonly kind: ChangeKind | undefined;
  /** A write to a table of the program's own, such as that of accounts, which no event shows. */
  readonly isSilent: boolean;
  /** The representation for the event. */
  readonly doc: string;
  readonly owner: string | null;
  /** Milliseconds since the epoch. */
  readonly at: number;
};

/** An event without a write; it gets its id when the unit is made, so that ids are in the order of events. */
export type Emitted = { readonly entry: (id: string) => EventEntry };

/** A row of the program's own that is stored with the unit: a mail to send. */
type Kept = { readonly kept: StoreChange };

export type Overlay = {
  readonly store: Store;
  /** In the order of the first write to each row, with posted events and kept rows between. */
  writes(): readonly (NetWrite | Emitted | Kept)[];
  /** Expectations beside those of the writes: of rows that were only read, and some that no longer hold. */
  expectations(): readonly StoreChange[];
  /** A row that another writer changed between two reads of the function, which then saw no state that ever was. */
  torn(): RowName | undefined;
  /** The unit depends on the row as it was read here, also if the function does not write it. */
  lean(row: RowName): void;
  append(added: Emitted | Kept, characters: number): void;
  /** Savepoints are ended in the reverse order of their beginning; one that is left open ends with an earlier one. */
  savepoint(): Savepoint;
  size(): number;
  /** True if rows of the table are written here. */
  hasWritten(table: string): boolean;
  /** Characters of their documents. */
  characters(): number;
};

/** What is written from here on stays, or is undone. The unit depends on what was read in either case. */
type Savepoint = { release(): void; undo(): void };

/** A row that was written here, as the next read finds it. */
type Written = { readonly write: NetWrite; readonly row: Row | undefined };

type Entry = Written | Emitted | Kept;

export function createOverlay(store: Store): Overlay {
  const firstReads = new FirstReads();
  const entries = new Entries();
  let lastRev = 0;
  /** Kept because most writes follow the read of their row. */
  let lastRead: Row | undefined;
  let lastReadKey = '';

  const written = (key: string): Written | undefined => entries.get(key) as Written | undefined;

  function read(table: string, id: string): MaybePromise<Row | undefined> {
    const key = keyOf(table, id);
    const own = written(key);
    if (own !== undefined) return own.row;
    return whenKnown(store.read(table, id), (row) => {
      firstReads.note(key, { table, id }, row);
      lastRead = row;
      lastReadKey = key;
      // Another call may have written it during the wait.
      const since = written(key);
      return since === undefined ? row : since.row;
    });
  }

  async function commit({
    changes: all,
    events,
  }: Parameters<Store['commit']>[0]): ReturnType<Store['commit']> {
    const changes = all.filter(({ stays }) => stays !== true);
    for (const change of all)
      if (change.stays === true) firstReads.rest(keyOf(change.table, change.id), change);
    if (changes.length !== events.length && events.length > 0)
      throw new Error('in a commit of a function each change must have its event, or none');
    for (const [at, change] of changes.entries()) {
      await write(change, events[at]);
    }
    return { outcome: 'committed', rev: lastRev };
  }

  async function write(change: StoreChange, event: EventEntry | undefined): Promise<void> {
    const { table, id, next } = change;
    const key = keyOf(table, id);
    const own = written(key);
    // Revisions of this overlay are negative, so they never equal those of the store.
    lastRev -= 1;
    const row = next === null ? undefined : { id, rev: lastRev, ...next };
    const read = lastReadKey === key ? lastRead : undefined;
    const before = own === undefined ? await rowBefore(store, change, read) : own.write.before;
    const expect = own?.write.expect ?? firstReads.reconcile(key, change);
    const write = netWrite({ table, id, expect, next }, before, own?.write, event);
    entries.set(key, { write, row }, write.doc.length - (own?.write.doc.length ?? 0));
  }

  return {
    store: { ...store, read, commit, plan: (query) => planOf(store, query, entries, read) },
    hasWritten: (table) => entries.rowsOf(table).size > 0,
    expectations: () => firstReads.expectations((key) => written(key) !== undefined),
    torn: () => firstReads.torn(),
    lean: (row) => firstReads.lean(keyOf(row.table, row.id), row),
    writes: () => [...entries.values()].map((entry) => ('write' in entry ? entry.write : entry)),
    append: (added, characters) => entries.set(Symbol('added'), added, characters),
    savepoint: () => entries.savepoint(),
    size: () => entries.size,
    characters: () => entries.characters,
  };
}

function planOf(store: Store, query: ListQuery, entries: Entries, read: Store['read']): Plan {
  const committed = store.plan(query);
  const written = { rowsOf: (table: string) => entries.rowsOf(table), read };
  const tables = [query.table, ...tablesOf(query.filter)];
  if (!tables.some((table) => written.rowsOf(table).size > 0)) return committed;
  return {
    bounded: committed.bounded,
    way: () => committed.way(),
    page: (position, party) =>
      tables.length > 1
        ? relatedPage(store, query, written, position, party)
        : mergedPage(committed, query, written.rowsOf(query.table), position, party),
    rows: (position, limit) => committed.rows(position, limit),
  };
}

/** @param earlier the write of the function to the same row before this one */
function netWrite(
  { table, id, expect, next }: StoreChange,
  before: Row | undefined,
  earlier: NetWrite | undefined,
  event: EventEntry | undefined,
): NetWrite {
  const { owner = null, updatedAt = 0 } = next ?? before ?? {};
  return {
    ...{ table, id, expect, before, next },
    kind: kindOf(before !== undefined, next !== null && next.deletedAt === null),
    doc: next?.doc ?? earlier?.doc ?? before?.doc ?? '',
    isSilent: event === undefined,
    owner: event === undefined ? owner : event.owner,
    at: event?.createdAt ?? updatedAt,
  };
}

/** Returns the row before the first write, undefined if softly deleted. @param read the row, if just read */
async function rowBefore(
  store: Store,
  { table, id, expect }: StoreChange,
  read: Row | undefined,
): Promise<Row | undefined> {
  if ('absent' in expect) return undefined;
  const row = read ?? (await store.read(table, id));
  return row === undefined || row.deletedAt !== null ? undefined : row;
}

function keyOf(table: string, id: string): string {
  return `${table} ${id}`;
}

/** What the unit consists of, in the order of the first writes, and what it was before each savepoint. */
class Entries {
  readonly #entries = new Map<string | symbol, Entry>();
  /** What entries were before each write since the first open savepoint. */
  readonly #undoing: (readonly [key: string | symbol, earlier: Entry | undefined])[] = [];
  #savepoints = 0;
  characters = 0;

  get size(): number {
    return this.#entries.size;
  }

  get(key: string | symbol): Entry | undefined {
    return this.#entries.get(key);
  }

  values(): Iterable<Entry> {
    return this.#entries.values();
  }

  rowsOf(table: string): OwnRows {
    const own = new Map<string, NextRow | undefined>();
    for (const entry of this.#entries.values()) {
      if (!('write' in entry) || entry.write.table !== table) continue;
      const { id, next } = entry.write;
      own.set(id, next?.deletedAt === null ? next : undefined);
    }
    return own;
  }

  /** @param characters by which the documents of the unit get longer */
  set(key: string | symbol, entry: Entry, characters: number): void {
    if (this.#savepoints > 0) this.#undoing.push([key, this.#entries.get(key)]);
    this.#entries.set(key, entry);
    this.characters += characters;
  }

  savepoint(): Savepoint {
    const before = {
      savepoints: this.#savepoints,
      length: this.#undoing.length,
      characters: this.characters,
    };
    this.#savepoints += 1;
    const release = (): void => {
      this.#savepoints = before.savepoints;
      if (this.#savepoints === 0) this.#undoing.length = 0;
    };
    return {
      release,
      undo: () => {
        this.#undo(before.length);
        this.characters = before.characters;
        release();
      },
    };
  }

  #undo(length: number): void {
    while (this.#undoing.length > length) {
      const [key, earlier] = this.#undoing.pop() ?? [''];
      if (earlier === undefined) this.#entries.delete(key);
      else this.#entries.set(key, earlier);
    }
  }
}

/** The result of the function's first read of each row. */
class FirstReads {
  readonly #found = new Map<string, Expectation>();
  /** Rows that the unit depends on although it may not write them. */
  readonly #leant = new Map<string, RowName>();
  /**
   * Rows that another writer changed between two reads. A unit that expects what the first read found is superseded,
   * even if the function does not write the row because the second read found what it computed from the first.
   */
  readonly #overtaken = new Map<string, StoreChange>();

  note(key: string, row: RowName, found: Row | undefined): void {
    const expect: Expectation = found === undefined ? { absent: true } : { rev: found.rev };
    const first = this.#found.get(key);
    if (first === undefined) this.#found.set(key, expect);
    else if (revisionOf(first) !== found?.rev) this.#overtaken.set(key, expected(row, first));
  }

  lean(key: string, { table, id }: RowName): void {
    this.#leant.set(key, { table, id });
  }

  /** The unit rests on a row as a request found it; what the unit wrote itself, it expects anyway. */
  rest(key: string, { table, id, expect }: StoreChange): void {
    const rev = revisionOf(expect);
    if (rev !== undefined && rev < 0) return;
    const first = this.#found.get(key);
    if (first === undefined) this.#found.set(key, expect);
    else if (revisionOf(first) !== rev) this.#overtaken.set(key, expected({ table, id }, first));
    this.lean(key, { table, id });
  }

  /**
   * The expectation of a first write. A request has read its row before the function: if the function then found another
   * state, one of the two does not hold any more, and the unit must be superseded.
   */
  reconcile(key: string, change: StoreChange): Expectation {
    const first = this.#found.get(key);
    if (first === undefined) return change.expect;
    const isOwn = 'rev' in change.expect && change.expect.rev < 0;
    if (isOwn || revisionOf(first) === revisionOf(change.expect)) return first;
    if (this.#overtaken.has(key)) return first;
    this.#overtaken.set(`${key} `, expected(change, first));
    return change.expect;
  }

  torn(): RowName | undefined {
    return this.#overtaken.values().next().value;
  }

  expectations(isWritten: (key: string) => boolean): readonly StoreChange[] {
    const open = [...this.#overtaken].filter(([key]) => !isWritten(key)).map(([, change]) => change);
    for (const [key, row] of this.#leant) {
      const first = this.#found.get(key);
      if (first !== undefined && !isWritten(key) && !this.#overtaken.has(key))
        open.push(expected(row, first));
    }
    return open;
  }
}

function expected({ table, id }: RowName, expect: Expectation): StoreChange {
  return { table, id, expect, next: null, stays: true };
}

/** Undefined: the row was absent. */
function revisionOf(expect: Expectation): number | undefined {
  return 'rev' in expect ? expect.rev : undefined;
}

function kindOf(existed: boolean, exists: boolean): ChangeKind | undefined {
  if (exists) return existed ? 'updated' : 'created';
  return existed ? 'deleted' : undefined;
}

// The order of the writes of one unit, each to the final state of its row.

/**
 * Orders the writes of a function (§4.14.5). The store checks each change against those before it, and each row changes
 * once, to its final state: so a referenced resource must be created first, a deleted one must no longer be referenced
 * by then, and a unique value must be free before another row takes it. Otherwise writes keep the order in which they
 * began.
 *
 * @returns the same writes; if they form a cycle, the store reports the conflict
 */
export function orderChanges(
  writes: readonly NetWrite[],
  collections: ReadonlyMap<string, Collection>,
): readonly NetWrite[] {
  if (writes.length < 2) return writes;
  const earlier = writes.map((): number[] => []);
  addReferences(writes, collections, earlier);
  addUniques(writes, collections, earlier);
  return sorted(writes, earlier);
}

function addReferences(
  writes: readonly NetWrite[],
  collections: ReadonlyMap<string, Collection>,
  earlier: readonly number[][],
): void {
  const created = placesOf(writes, 'created');
  const deleted = placesOf(writes, 'deleted');
  for (const [place, { table, next, before }] of writes.entries()) {
    const collection = collections.get(table);
    if (collection === undefined || collection.references.length === 0) continue;
    const target = (field: string) =>
      collection.references.find((reference) => reference.field === field)?.collection ?? '';
    if (created.size > 0) {
      for (const { field, id } of next?.references ?? []) {
        const maker = created.get(`${target(field)} ${id}`);
        if (maker !== undefined && maker !== place) earlier[place]?.push(maker);
      }
    }
    if (deleted.size === 0 || before === undefined) continue;
    const fields = JSON.parse(before.doc) as Readonly<Record<string, unknown>>;
    for (const { field, id } of referencesOf(collection, fields)) {
      const remover = deleted.get(`${target(field)} ${id}`);
      if (remover !== undefined && remover !== place) earlier[remover]?.push(place);
    }
  }
}

function placesOf(writes: readonly NetWrite[], kind: NetWrite['kind']): ReadonlyMap<string, number> {
  const places = new Map<string, number>();
  for (const [place, write] of writes.entries()) {
    if (write.kind === kind) places.set(`${write.table} ${write.id}`, place);
  }
  return places;
}

function addUniques(
  writes: readonly NetWrite[],
  collections: ReadonlyMap<string, Collection>,
  earlier: readonly number[][],
): void {
  const freed = new Map<string, number>();
  const taken: (readonly [value: string, place: number])[] = [];
  for (const [place, { table, before, next, kind }] of writes.entries()) {
    const unique = collections.get(table)?.unique ?? [];
    if (unique.length === 0) continue;
    const fieldsBefore: unknown = before === undefined ? undefined : JSON.parse(before.doc);
    const fieldsAfter: unknown = next === null || kind === 'deleted' ? undefined : JSON.parse(next.doc);
    for (const [at, fields] of unique.entries()) {
      const left = fields.map((field) => comparedAt(fieldsBefore, field));
      const right = fields.map((field) => comparedAt(fieldsAfter, field));
      if (equalJson(left, right)) continue;
      // Any number of rows may hold null.
      if (!left.includes(null)) freed.set(JSON.stringify([table, at, left]), place);
      if (!right.includes(null)) taken.push([JSON.stringify([table, at, right]), place]);
    }
  }
  for (const [value, place] of taken) {
    const frees = freed.get(value);
    if (frees !== undefined && frees !== place) earlier[place]?.push(frees);
  }
}

/** The value of a unique field as the store compares it. */
function comparedAt(fields: unknown, { path, type, folded }: Field): unknown {
  const value = memberAt(fields, path) ?? null;
  if (typeof value !== 'string') return value;
  return type === 'timestamp' ? instantKey(value) : folded === true ? foldCase(value) : value;
}

/**
 * Sorts each write after those that must be earlier. Uses its own stack, because a chain may be as long as the unit.
 */
function sorted(writes: readonly NetWrite[], earlier: readonly number[][]): readonly NetWrite[] {
  const order: NetWrite[] = [];
  const state = new Uint8Array(writes.length);
  for (let start = 0; start < writes.length; start += 1) {
    const stack = [start];
    while (stack.length > 0) {
      const place = stack.at(-1) ?? 0;
      const left = state[place] === 0 ? (earlier[place] ?? []).filter((other) => state[other] === 0) : [];
      if (state[place] === 0) state[place] = 1;
      if (left.length > 0) {
        stack.push(...left);
        continue;
      }
      stack.pop();
      const write = writes[place];
      if (state[place] !== 2 && write !== undefined) order.push(write);
      state[place] = 2;
    }
  }
  return order;
}
