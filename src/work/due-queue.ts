/**
 * A queue of due work: its rows in the store, and the memory of an engine for them.
 *
 * In the store a queue is a range of one index: the rows that have a due time, earliest first. In memory it has the rows that it has taken,
 * a few of which are buffered, and what it knows of the others.
 */
import type { Collection } from '../model/collection.ts';
import { type Field, idField } from '../model/field.ts';
import type { Filter, Sort } from '../model/filter.ts';
import { formatTimestamp } from '../model/timestamp.ts';
import type { Services } from '../store/capabilities.ts';
import { nextTurn } from '../store/in-batches.ts';
import {
  type Change,
  type Keyset,
  keptRow,
  type MaybePromise,
  type Plan,
  type Row,
  type Store,
} from '../store/store.ts';
import type { Breaker } from './retries.ts';
import type { Lines } from './work-lines.ts';

/** A collection whose index over a field and `dueAt` is a queue for each value of the field. */
export type DueIndex = {
  readonly table: string;
  readonly field: Field;
  readonly dueAt: Field;
  /** More rows than one queue can take and request. */
  readonly rowsMax: number;
};

/** The place of a row in the order of its queue. */
type DueKey = { readonly dueAt: string; readonly id: string };

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
  /** The value of the index's field. */
  readonly queue: string;

  constructor(store: Pick<Store, 'plan'>, { table, field, dueAt, rowsMax }: DueIndex, queue: string) {
    this.queue = queue;
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
function mayBeAhead({ dueAt }: DueKey, now: number): boolean {
  return Date.parse(dueAt) > now + aheadMs - resentMs;
}

function keyOf({ doc, id }: Pick<Row, 'doc' | 'id'>): DueKey {
  return { dueAt: (JSON.parse(doc) as Due).dueAt ?? everyTime, id };
}

/** A delivery that is sent again may be due a moment before the change that says so. */
const resentMs = 1;

/** Rows that a look reads in a turn of the event loop, and that one unit sets right. */
const setAtOnce = 100;

/** Rows of one page that were set right, and how far the clock was ahead. */
type SetRight = { readonly rows: number; readonly aheadMs: number };

/** The effect of a settled attempt on its queue, for any kind of row. */
export type QueueVerdict = {
  /** `ignored`: nothing. */
  readonly health: 'succeeded' | 'failed' | 'ignored';
  /** Nothing is to begin before this time, in milliseconds since the epoch; null: the receiver named none. */
  readonly notBefore: number | null;
};

/** Rows that all queues of an engine have read but not begun. */
export type Budget = { buffered: number };

/**
 * Of the rows that it has not taken, it knows that more may be due (`mayHoldMore`; the store is then read) or when the next one is due
 * (`nextDueAt`). A wake sets the first; a read to the end of the due rows sets the second. A read that was full is
 * continued behind its last row, unless a wake or a due time says that rows before it may be due. The window and the
 * buffer bound the memory, however many rows wait in the store.
 *
 * A row is taken from its read until its attempt is settled, and reads skip taken rows. A read that was under way while
 * an attempt was settled may return the row as it was before; such rows are skipped too.
 */
export abstract class DueQueue<Due extends { readonly id: string }> {
  readonly id: string;
  readonly rows: DueRows;
  readonly breaker: Breaker;
  protected readonly budget: Budget;
  /** Nothing begins before this time, in milliseconds since the epoch. */
  notBefore = 0;
  /** The times of the last pause by the breaker and of the last look for a requested attempt, in milliseconds since the epoch. */
  pausedAt = 0;
  askedAt = 0;
  nextDueAt = Number.POSITIVE_INFINITY;
  /** The time of the last look for times that a clock ahead had set, and of the last turn, in milliseconds since the epoch. */
  lookedAt = Number.NEGATIVE_INFINITY;
  turnAt = Number.NEGATIVE_INFINITY;

  /** The lines of work that must be done in its order, once there is any. */
  lines: Lines<Due> | undefined;

  /** Where rows may be due that the queue does not know: of a new queue nothing is known. */
  #unknown: 'none' | 'behind' | 'anywhere' = 'anywhere';
  /** The last row of the last full read. */
  #last: DueKey | undefined;
  #readsBehind: DueKey | undefined;
  #buffer: Due[] = [];
  #at = 0;
  readonly #taken = new Set<string>();
  /** Incremented when a read under way becomes useless. */
  #epoch = 0;
  #released: Set<string> | undefined;

  constructor(rows: DueRows, breaker: Breaker, budget: Budget) {
    this.id = rows.queue;
    this.rows = rows;
    this.breaker = breaker;
    this.budget = budget;
  }

  /** The name of the queue in `Lanes`. */
  abstract get lane(): string;

  /** Rows that the next read requests. */
  abstract get wanted(): number;

  /** Returns the parts of a due row to keep, and its due time; null: it has none. */
  protected abstract parse(row: Row): { readonly due: Due; readonly dueAt: string | null };

  get mayHoldMore(): boolean {
    return this.#unknown !== 'none';
  }

  /** Notes that a row may be due anywhere. */
  set mayHoldMore(may: boolean) {
    this.#unknown = may ? 'anywhere' : 'none';
  }

  /** Where the read under way begins; undefined: at the first row. */
  get readsBehind(): DueKey | undefined {
    return this.#readsBehind;
  }

  get buffered(): number {
    return this.#buffer.length - this.#at;
  }

  /** Rows that are buffered, under way or being settled. */
  get taken(): number {
    return this.#taken.size;
  }

  get reading(): boolean {
    return this.#released !== undefined;
  }

  /** Takes the oldest row out of the buffer. */
  shift(): Due | undefined {
    const due = this.#buffer[this.#at];
    if (due === undefined) return undefined;
    this.#at += 1;
    this.budget.buffered -= 1;
    if (this.#at === this.#buffer.length) this.#clearBuffer();
    return due;
  }

  /**
   * Buffers a row that was committed just now, which spares reading it. If rows may be due that the queue does not know,
   * or the buffer is full, it must be read in its turn.
   *
   * @returns true if it was taken, or is due later
   */
  offer(row: Row, now: number): boolean {
    const isKnown = !this.reading && !this.mayHoldMore && this.nextDueAt > now;
    if (!isKnown || this.buffered >= this.wanted - this.taken) return false;
    if (this.#taken.has(row.id)) return true;
    const { due, dueAt } = this.parse(row);
    const time = dueAt === null ? Number.POSITIVE_INFINITY : Date.parse(dueAt);
    if (time > now) this.dueAt(time);
    else this.#add(due);
    return true;
  }

  /** Puts a row before all others, unless it is taken. */
  prefer(row: Row): void {
    if (this.reading || this.#taken.has(row.id)) return;
    this.drop();
    this.#add(this.parse(row).due);
    this.mayHoldMore = true;
  }

  /** Gives the first row of a line its turn, wherever it waits. */
  call(line: string, row: Row): void {
    const { due } = this.parse(row);
    if (this.lines?.leave(line, due.id) !== true) {
      if (this.#taken.has(due.id)) return;
      this.#taken.add(due.id);
    }
    this.#putFirst(due);
  }

  /** Gives the next row of a line its turn. @returns false if none waits, or another is under way */
  callNextOf(line: string): boolean {
    const due = this.lines?.next(line);
    if (due !== undefined) this.#putFirst(due);
    return due !== undefined;
  }

  /** Buffers a taken row before all others. */
  #putFirst(due: Due): void {
    this.budget.buffered += 1;
    this.#buffer.splice(this.#at, 0, due);
  }

  /** Takes a row by its id, from the buffer too. @returns false if the row is under way */
  take(id: string): boolean {
    const at = this.#buffer.findIndex((due, index) => index >= this.#at && due.id === id);
    if (at >= 0) {
      this.#buffer.splice(at, 1);
      this.budget.buffered -= 1;
    } else if (this.#taken.has(id)) return false;
    this.#taken.add(id);
    return true;
  }

  /** Releases a row whose attempt was settled or given up. */
  release(id: string): void {
    if (this.lines?.keeps(id) === true) return;
    this.#taken.delete(id);
    this.#released?.add(id);
  }

  dueAt(time: number): void {
    if (time < this.nextDueAt) this.nextDueAt = time;
  }

  /** @returns the end of the pause in milliseconds since the epoch, if this outcome opened the breaker */
  heed({ health, notBefore }: QueueVerdict, probe: boolean, now: number): number | undefined {
    if (notBefore !== null) this.notBefore = Math.max(this.notBefore, notBefore);
    if (health === 'succeeded') this.breaker.succeeded();
    if (health === 'ignored') this.breaker.ignored(probe);
    if (health !== 'failed') return undefined;
    const until = this.breaker.failed(now, probe);
    if (until !== undefined) this.pausedAt = now;
    return until;
  }

  /** Begins nothing before the time, in milliseconds since the epoch, and then reads again. */
  pause(until: number): void {
    this.notBefore = Math.max(this.notBefore, until);
    this.mayHoldMore = true;
  }

  /** Forgets the times that it knows: the clock was set back. */
  clockSetBack(): void {
    this.notBefore = 0;
    this.askedAt = 0;
    this.lookedAt = Number.NEGATIVE_INFINITY;
    this.nextDueAt = Number.POSITIVE_INFINITY;
    this.breaker.allowProbe();
    this.mayHoldMore = true;
  }

  /**
   * Sets times right that a clock which was ahead had set, from the last row of the queue back to those that are due soon, without those of
   * taken rows, which their attempt sets: to the attempt a time that changed meanwhile would be a request for another one. Rows that wait by
   * the schedule lie between them, so a look passes over all, a page at a time.
   */
  async *setRight({
    store,
    clock,
  }: Pick<Services, 'clock'> & { readonly store: Pick<Store, 'commit'> }): AsyncGenerator<SetRight> {
    this.lookedAt = clock();
    for (let before: DueKey | undefined; ; await nextTurn()) {
      const now = clock();
      const rows = await this.rows.last(setAtOnce, before);
      const ahead = rows.filter((row) => !this.#taken.has(row.id) && isAhead(row, now));
      const commit =
        ahead.length === 0
          ? undefined
          : await store.commit({ changes: this.rows.setRight(ahead, now), events: [] });
      // Otherwise an attempt or a person changed one of them meanwhile: the others wait for the next look.
      const isSet = commit?.outcome === 'committed';
      if (isSet) this.mayHoldMore = true;
      const aheadMs = Math.max(...ahead.map(({ updatedAt }) => updatedAt - now));
      yield isSet ? { rows: ahead.length, aheadMs } : { rows: 0, aheadMs: 0 };
      const [first] = rows;
      if (first === undefined) return;
      before = keyOf(first);
      if (!mayBeAhead(before, now)) return;
    }
  }

  /** Empties the buffer; the rows remain in the store. */
  drop(): void {
    const held = this.lines?.clear() ?? [];
    for (const id of held) this.release(id);
    if (held.length > 0) this.mayHoldMore = true;
    for (let at = this.#at; at < this.#buffer.length; at += 1) {
      const due = this.#buffer[at];
      if (due !== undefined) this.#taken.delete(due.id);
    }
    if (this.buffered > 0 || this.reading) this.mayHoldMore = true;
    this.budget.buffered -= this.buffered;
    this.#clearBuffer();
    this.#epoch += 1;
  }

  /** @returns the epoch, by which `endRead` detects that the read became useless */
  beginRead(now: number): number {
    this.#readsBehind = this.#unknown === 'behind' && this.nextDueAt > now ? this.#last : undefined;
    if (this.#readsBehind === undefined) this.nextDueAt = Number.POSITIVE_INFINITY;
    this.mayHoldMore = false;
    this.#released = new Set();
    return this.#epoch;
  }

  /**
   * @param rows the first rows by `dueAt` from where the read began, of those that have one
   * @param wanted the number of rows requested: fewer rows mean that there are no more
   */
  endRead(epoch: number, rows: readonly Row[], wanted: number, now: number): void {
    const released = this.#released;
    this.#released = undefined;
    if (epoch !== this.#epoch) {
      this.mayHoldMore = true;
      return;
    }
    const nowText = new Date(now).toISOString();
    for (const row of rows) {
      if (this.#taken.has(row.id) || released?.has(row.id)) continue;
      const { due, dueAt } = this.parse(row);
      if (dueAt === null || dueAt > nowText) {
        if (dueAt !== null) this.dueAt(Date.parse(dueAt));
        return;
      }
      this.#add(due);
    }
    const last = rows.at(-1);
    if (last === undefined || rows.length < wanted || this.mayHoldMore) return;
    this.#unknown = 'behind';
    this.#last = { id: last.id, dueAt: this.parse(last).dueAt ?? '' };
  }

  /** Ends a failed read: more rows may be due. */
  failRead(): void {
    this.#released = undefined;
    this.mayHoldMore = true;
  }

  #add(due: Due): void {
    this.#taken.add(due.id);
    this.budget.buffered += 1;
    this.#buffer.push(due);
  }

  #clearBuffer(): void {
    this.#buffer = [];
    this.#at = 0;
  }
}

/**
 * A fair queue: parties take turns, and members take turns within a party, so that neither many queues nor a long
 * backlog get more than their share. A member is in it at most once.
 */
export class Turns<T> {
  /** In the order of their turns; only parties that have members. */
  readonly #parties = new Map<string, Set<T>>();
  readonly #partyOf = new Map<T, string>();

  get size(): number {
    return this.#partyOf.size;
  }

  get parties(): number {
    return this.#parties.size;
  }

  sizeOf(party: string): number {
    return this.#parties.get(party)?.size ?? 0;
  }

  has(member: T): boolean {
    return this.#partyOf.has(member);
  }

  add(member: T, party: string): void {
    if (this.#partyOf.has(member)) return;
    this.#partyOf.set(member, party);
    const members = this.#parties.get(party);
    if (members === undefined) this.#parties.set(party, new Set([member]));
    else members.add(member);
  }

  remove(member: T): void {
    const party = this.#partyOf.get(member);
    if (party === undefined) return;
    this.#partyOf.delete(member);
    const members = this.#parties.get(party);
    members?.delete(member);
    if (members?.size === 0) this.#parties.delete(party);
  }

  /** Removes the next member and moves its party behind the others. */
  next(): T | undefined {
    for (const [party, members] of this.#parties) {
      for (const member of members) {
        members.delete(member);
        this.#partyOf.delete(member);
        if (members.size > 0 && this.#parties.size === 1) return member;
        this.#parties.delete(party);
        if (members.size > 0) this.#parties.set(party, members);
        return member;
      }
    }
    return undefined;
  }
}
