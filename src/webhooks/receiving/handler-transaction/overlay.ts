/**
 * A store in front of the store, for the writes of one handler (§4.14.5): the operations of a collection commit to it
 * as to any store, and their writes stay here until the unit is made. Reads by id see them; lists, counts and versions
 * are those of the store itself.
 *
 * The unit expects each row as it was first read here. So what a handler computed from a resource never overwrites a
 * newer one: the unit is superseded, and the message is handled again.
 */
import type { Change as ChangeKind } from '../../../model/event.ts';
import type {
  EventEntry,
  Expectation,
  MaybePromise,
  NextRow,
  Row,
  RowName,
  Store,
  Change as StoreChange,
} from '../../../store/store.ts';
import { whenKnown } from '../../../store/when-known.ts';

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
  /** The representation for the event. */
  readonly doc: string;
  readonly owner: string | null;
  /** Milliseconds since the epoch. */
  readonly at: number;
};

/** An event without a write; it gets its id when the unit is made, so that ids are in the order of events. */
export type Emitted = { readonly entry: (id: string) => EventEntry };

export type Overlay = {
  readonly store: Store;
  /** In the order of the first write to each row, with posted events between. */
  writes(): readonly (NetWrite | Emitted)[];
  /** Expectations that no longer hold: the unit must contain them, to be superseded. */
  overtaken(): readonly StoreChange[];
  append(emitted: Emitted, characters: number): void;
  size(): number;
  /** Characters of their documents. */
  characters(): number;
};

/** A row that was written here, as the next read finds it. */
type Written = { readonly write: NetWrite; readonly row: Row | undefined };

export function createOverlay(store: Store): Overlay {
  const firstReads = new FirstReads();
  const entries = new Map<string | symbol, Written | Emitted>();
  let lastRev = 0;
  /** Kept because most writes follow the read of their row. */
  let lastRead: Row | undefined;
  let lastReadKey = '';
  let characters = 0;

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

  async function commit({ changes, events }: Parameters<Store['commit']>[0]): ReturnType<Store['commit']> {
    const [change] = changes;
    const [event] = events;
    if (change === undefined || event === undefined || changes.length > 1 || events.length > 1) {
      throw new Error('a commit of a handler must have one change and its event');
    }
    const { table, id, next } = change;
    const key = keyOf(table, id);
    const own = written(key);
    // Revisions of this overlay are negative, so they never equal those of the store.
    lastRev -= 1;
    const row = next === null ? undefined : { id, rev: lastRev, ...next };
    const read = lastReadKey === key ? lastRead : undefined;
    const before = own === undefined ? await rowBefore(store, change, read) : own.write.before;
    const write: NetWrite = {
      table,
      id,
      expect: own?.write.expect ?? firstReads.expectation(key) ?? change.expect,
      before,
      next,
      kind: kindOf(before !== undefined, next !== null && next.deletedAt === null),
      doc: next?.doc ?? own?.write.doc ?? before?.doc ?? '',
      owner: event.owner,
      at: event.createdAt,
    };
    characters += write.doc.length - (own?.write.doc.length ?? 0);
    entries.set(key, { write, row });
    return { outcome: 'committed', rev: lastRev };
  }

  return {
    store: { ...store, read, commit },
    overtaken: () => firstReads.overtaken((key) => written(key) !== undefined),
    writes: () => [...entries.values()].map((entry) => ('write' in entry ? entry.write : entry)),
    append(emitted, length) {
      characters += length;
      entries.set(Symbol('emitted'), emitted);
    },
    size: () => entries.size,
    characters: () => characters,
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

/** The result of the handler's first read of each row. */
class FirstReads {
  readonly #found = new Map<string, Expectation>();
  /**
   * Rows that another writer changed between two reads of the handler. A unit that expects what the first read found is
   * superseded, even if the handler does not write the row because the second read found what it computed from the
   * first.
   */
  readonly #overtaken = new Map<string, StoreChange>();

  note(key: string, { table, id }: RowName, row: Row | undefined): void {
    const expect: Expectation = row === undefined ? { absent: true } : { rev: row.rev };
    const first = this.#found.get(key);
    if (first === undefined) this.#found.set(key, expect);
    else if (revisionOf(first) !== row?.rev)
      this.#overtaken.set(key, { table, id, expect: first, next: null });
  }

  expectation(key: string): Expectation | undefined {
    return this.#found.get(key);
  }

  overtaken(isWritten: (key: string) => boolean): readonly StoreChange[] {
    return [...this.#overtaken].filter(([key]) => !isWritten(key)).map(([, change]) => change);
  }
}

/** Undefined: the row was absent. */
function revisionOf(expect: Expectation): number | undefined {
  return 'rev' in expect ? expect.rev : undefined;
}

function kindOf(existed: boolean, exists: boolean): ChangeKind | undefined {
  if (exists) return existed ? 'updated' : 'created';
  return existed ? 'deleted' : undefined;
}
