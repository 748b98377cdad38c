/**
 * Work that must be done in its order (`orderBy` of a subscriber and of an endpoint) stands in a line, by a row each, which is committed with
 * the work and removed with its conclusion. The first of a line is the one of the earliest unit; only it is attempted. What a process knows of
 * lines is a shortcut: the rows decide, also for another process.
 *
 * Work behind one that waits for its next attempt gets the same due time, so it costs nothing until then (`heldBackError`). The conclusion of
 * the first one makes the next one due at once; if that is lost with the process, the next one waits for the time that it has.
 */
import { memoryBounds } from '../memory/bounds.ts';
import { idField } from '../model/field.ts';
import { byId, type Filter } from '../model/filter.ts';
import type { Services } from '../store/capabilities.ts';
import { type Change, keptRow, type MaybePromise, type Row, type Store } from '../store/store.ts';
import type { Timers } from './timers.ts';

/** `lastError` of work whose due time is that of the one before it. */
export const heldBackError = 'held-back';

/** The rows from which the first is chosen: ids of one line that processes assigned in another order are near each other. */
const nearestRows = 32;
/** How soon work looks at its line again if nothing of it is under way here. */
const lineAgainMs = 100;
/** How long it waits if it finds no room to wait in memory. It is called when it is the first. */
const lineFullMs = 30_000;

/** What differs between kinds of work. */
export type LinedWork = {
  readonly linesTable: string;
  readonly table: string;
  /** Names a row in its line; ends with `/` and its id, or is the id. */
  readonly nameOf: (row: Pick<Row, 'id' | 'doc'>) => string;
  /** The due time in milliseconds since the epoch; undefined: nothing of it is left to do. */
  readonly dueAt: (doc: string) => number | undefined;
  readonly isHeldBack: (doc: string) => boolean;
  /** The document with another due time, held back. */
  readonly dueDocument: (doc: string, dueAt: string, updatedAt: string) => string;
  /** True if work of the line that comes before this place is still to be created. */
  readonly isAwaited?: (line: string, rev: number) => MaybePromise<boolean>;
};

/**
 * @param name as `nameOf`
 * @param rev the revision of the unit from which it has its place; absent: that of the unit of this change
 */
export function lineChange(linesTable: string, line: string, name: string, at: number, rev?: number): Change {
  return {
    ...{ table: linesTable, id: `${line}/${name}`, expect: { absent: true } },
    next: keptRow(rev === undefined ? '{}' : JSON.stringify({ rev }), null, at, at),
  };
}

type LineStore = Pick<Store, 'plan' | 'read' | 'commit'>;

type Place =
  /** The first of its line. */
  | { readonly kind: 'first'; readonly leave: Change }
  /** It is in no line any more: it was concluded before, and is repeated. */
  | { readonly kind: 'none' }
  /** Another one comes before it; undefined: it is still to be created. */
  | { readonly kind: 'behind'; readonly first: Row | undefined };

/** @throws StoreUnavailable */
async function placeOf(store: LineStore, kind: LinedWork, line: string, row: Row): Promise<Place> {
  const own = await store.read(kind.linesTable, `${line}/${kind.nameOf(row)}`);
  if (own === undefined) return { kind: 'none' };
  // Before the line is read: what is created meanwhile is then in it.
  if ((await kind.isAwaited?.(line, placeRev(own))) === true) return { kind: 'behind', first: undefined };
  for (;;) {
    const first = await firstOf(store, kind, line);
    if (first === undefined || first.id === own.id) return { kind: 'first', leave: leaving(kind, own) };
    const before = await store.read(kind.table, workIdOf(first));
    if (before !== undefined && kind.dueAt(before.doc) !== undefined)
      return { kind: 'behind', first: before };
    // It was marked by hand, or retention removed it. If it is repeated meanwhile, it has no place in the line.
    await store.commit({ changes: [leaving(kind, first)], events: [] });
  }
}

async function firstOf(store: LineStore, { linesTable }: LinedWork, line: string): Promise<Row | undefined> {
  const filters: readonly Filter[] = [
    { op: 'gt', field: idField, value: `${line}/` },
    // `0` follows `/` in code point order.
    { op: 'lt', field: idField, value: `${line}0` },
  ];
  const filter: Filter = { op: 'and', filters };
  const rows = await store
    .plan({ table: linesTable, filter, sort: byId, limit: nearestRows })
    .rows({ from: 'start' });
  let first: Row | undefined;
  for (const row of rows) if (first === undefined || placeRev(row) < placeRev(first)) first = row;
  return first;
}

function placeRev({ doc, rev }: Row): number {
  return (JSON.parse(doc) as { readonly rev?: number }).rev ?? rev;
}

function workIdOf({ id }: Row): string {
  return id.slice(id.lastIndexOf('/') + 1);
}

function leaving({ linesTable }: LinedWork, { id, rev }: Row): Change {
  return { table: linesTable, id, expect: { rev }, next: null };
}

function dueChange(kind: LinedWork, row: Row, dueAt: number, at: number): Change {
  const updatedAt = Math.max(at, row.updatedAt);
  const doc = kind.dueDocument(row.doc, new Date(dueAt).toISOString(), new Date(updatedAt).toISOString());
  return {
    ...{ table: kind.table, id: row.id, expect: { rev: row.rev } },
    next: keptRow(doc, row.owner, row.createdAt, updatedAt),
  };
}

/**
 * Makes the first of the line due if it was held back.
 * @returns its row, if it is due
 * @throws StoreUnavailable
 */
async function callNext(
  store: LineStore,
  kind: LinedWork,
  line: string,
  at: number,
): Promise<Row | undefined> {
  const first = await firstOf(store, kind, line);
  const row = first === undefined ? undefined : await store.read(kind.table, workIdOf(first));
  const dueAt = row === undefined ? undefined : kind.dueAt(row.doc);
  if (row === undefined || dueAt === undefined) return undefined;
  if (dueAt <= at) return row;
  if (!kind.isHeldBack(row.doc)) return undefined;
  const { outcome } = await store.commit({ changes: [dueChange(kind, row, at, at)], events: [] });
  // Superseded: it was repeated or marked.
  return outcome === 'committed' ? row : undefined;
}

/** What lines need of a queue of due work (due-queue.ts). */
type LinedQueue<Due extends { readonly id: string }> = {
  lines: Lines<Due> | undefined;
  mayHoldMore: boolean;
  dueAt(time: number): void;
  call(line: string, row: Row): void;
  callNextOf(line: string): boolean;
};

/** Lets the work of one engine into its lines, and the next one in when it leaves. */
export class WorkLines<Due extends { readonly id: string }, Q extends LinedQueue<Due>> {
  readonly #services: Pick<Services, 'clock'> & { readonly store: LineStore };
  readonly #timers: Timers;
  readonly #kind: LinedWork;
  readonly #ready: (queue: Q) => void;
  readonly #waiting = { inMemory: 0 };

  constructor(
    services: Pick<Services, 'clock'> & { readonly store: LineStore },
    timers: Timers,
    kind: LinedWork,
    ready: (queue: Q) => void,
  ) {
    this.#services = services;
    this.#timers = timers;
    this.#kind = kind;
    this.#ready = ready;
  }

  of(queue: Q): Lines<Due> {
    queue.lines ??= new Lines(this.#waiting);
    return queue.lines;
  }

  /**
   * @param row of the work as it is now
   * @returns the work is the one of its line that is under way, and leaves it with the change; undefined: it waits
   * @throws StoreUnavailable
   */
  async enter(queue: Q, due: Due, row: Row, line: string): Promise<{ readonly leave?: Change } | undefined> {
    const { store, clock } = this.#services;
    const kind = this.#kind;
    const lines = this.of(queue);
    const place = lines.isUnderWay(line) ? undefined : await placeOf(store, kind, line, row);
    if (place !== undefined && place.kind !== 'behind' && lines.begin(line, row.id)) {
      return place.kind === 'first' ? { leave: place.leave } : {};
    }
    const now = clock();
    const first = place?.kind === 'behind' ? place.first : undefined;
    const firstDueAt = first === undefined ? now : (kind.dueAt(first.doc) ?? now);
    if (place?.kind === 'behind' && (firstDueAt > now || lines.isFull)) {
      const dueAt = Math.max(firstDueAt, lines.isFull ? now + lineFullMs : 0);
      const depends: readonly Change[] =
        first === undefined
          ? []
          : [{ table: kind.table, id: first.id, expect: { rev: first.rev }, next: null, stays: true }];
      const { outcome } = await store.commit({
        changes: [dueChange(kind, row, dueAt, now), ...depends],
        events: [],
      });
      // Otherwise one of them was changed meanwhile, and must be looked at again.
      if (outcome === 'committed') queue.dueAt(dueAt);
      else queue.mayHoldMore = true;
      queue.callNextOf(line);
      return undefined;
    }
    lines.hold(line, due);
    if (!lines.isUnderWay(line)) {
      if (first !== undefined) queue.call(line, first);
      this.#timers.after(lineAgainMs, () => {
        if (queue.callNextOf(line)) this.#ready(queue);
      });
    }
    return undefined;
  }

  /** Ends the work's turn in its line. After a conclusion the store says which is the next; otherwise all look again. @throws StoreUnavailable */
  async passOn(queue: Q, id: string, line: string, isOver: boolean): Promise<void> {
    const { store, clock } = this.#services;
    this.of(queue).end(line, id);
    try {
      const next = isOver ? await callNext(store, this.#kind, line, clock()) : undefined;
      if (next === undefined) queue.callNextOf(line);
      else queue.call(line, next);
    } catch (error) {
      queue.callNextOf(line);
      throw error;
    }
  }
}

/** Work of one queue, and of all queues of an engine, that waits in memory for one of its line that is under way here. */
const heldMax = memoryBounds.heldWork.entries;
const heldByAllMax = 8192;

/** The lines of one queue, as far as this process has work of them. */
export class Lines<Due extends { readonly id: string }> {
  /** The one that is under way, by line. */
  readonly #underWay = new Map<string, string>();
  readonly #held = new Map<string, Due[]>();
  readonly #heldIds = new Set<string>();
  /** Lines of work that got its turn, until it begins. */
  readonly #called = new Map<string, string>();
  /** Of all queues of the engine. */
  readonly #waiting: { inMemory: number };

  constructor(waiting: { inMemory: number }) {
    this.#waiting = waiting;
  }

  get isFull(): boolean {
    return this.#heldIds.size >= heldMax || this.#waiting.inMemory >= heldByAllMax;
  }

  /** Work that waits in its line stays taken, also if it was called before the attempt that put it there has ended. */
  keeps(id: string): boolean {
    return this.holds(id) || this.isCalled(id);
  }

  holds(id: string): boolean {
    return this.#heldIds.has(id);
  }

  isUnderWay(line: string): boolean {
    return this.#underWay.has(line);
  }

  /** @returns false if another one of the line is under way */
  begin(line: string, id: string): boolean {
    const other = this.#underWay.get(line);
    if (other !== undefined) return other === id;
    this.#underWay.set(line, id);
    return true;
  }

  end(line: string, id: string): void {
    if (this.#underWay.get(line) === id) this.#underWay.delete(line);
  }

  hold(line: string, due: Due): void {
    this.#heldIds.add(due.id);
    this.#waiting.inMemory += 1;
    const held = this.#held.get(line);
    if (held === undefined) this.#held.set(line, [due]);
    else held.push(due);
  }

  /** @returns true if it waited here */
  leave(line: string, id: string): boolean {
    if (!this.#heldIds.delete(id)) return false;
    this.#waiting.inMemory -= 1;
    this.#called.set(id, line);
    const left = (this.#held.get(line) ?? []).filter((due) => due.id !== id);
    if (left.length === 0) this.#held.delete(line);
    else this.#held.set(line, left);
    return true;
  }

  /** Takes the first of those that wait, unless another is under way. */
  next(line: string): Due | undefined {
    if (this.#underWay.has(line)) return undefined;
    const held = this.#held.get(line);
    const due = held?.shift();
    if (due === undefined) return undefined;
    this.#heldIds.delete(due.id);
    this.#waiting.inMemory -= 1;
    this.#called.set(due.id, line);
    if (held?.length === 0) this.#held.delete(line);
    return due;
  }

  isCalled(id: string): boolean {
    return this.#called.has(id);
  }

  /** The line that gave it its turn: others of the line wait for what becomes of it. */
  calledFrom(id: string): string | undefined {
    const line = this.#called.get(id);
    this.#called.delete(id);
    return line;
  }

  /** Forgets those that wait. @returns their ids */
  clear(): readonly string[] {
    const ids = [...this.#heldIds];
    this.#waiting.inMemory -= ids.length;
    this.#held.clear();
    this.#called.clear();
    this.#heldIds.clear();
    return ids;
  }
}
