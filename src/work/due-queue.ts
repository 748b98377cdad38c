/**
 * The memory of an engine for one queue of due work: the rows it has taken, a few of which are buffered, and what it
 * knows of the others.
 *
 * Of the others it knows that more may be due (`mayHoldMore`; the store is then read) or when the next one is due
 * (`nextDueAt`). A wake sets the first; a read to the end of the due rows sets the second. A read that was full is
 * continued behind its last row, unless a wake or a due time says that rows before it may be due. The window and the
 * buffer bound the memory, however many rows wait in the store.
 *
 * A row is taken from its read until its attempt is settled, and reads skip taken rows. A read that was under way while
 * an attempt was settled may return the row as it was before; such rows are skipped too.
 */
import type { Row } from '../store/store.ts';
import { Breaker, type BreakerSettings } from './breaker.ts';
import type { DueKey, DueRows } from './due-rows.ts';

/** Rows that all queues of an engine have read but not begun. */
export type Budget = { buffered: number };

export type DueQueueOptions = {
  readonly id: string;
  readonly rows: DueRows;
  readonly breaker: BreakerSettings;
  readonly random: () => number;
  readonly budget: Budget;
};

export abstract class DueQueue<Due extends { readonly id: string }> {
  readonly id: string;
  readonly rows: DueRows;
  readonly breaker: Breaker;
  protected readonly budget: Budget;
  /** Nothing begins before this time, in milliseconds since the epoch. */
  notBefore = 0;
  /** The time of the last look for a requested attempt, in milliseconds since the epoch. */
  askedAt = 0;
  nextDueAt = Number.POSITIVE_INFINITY;
  /** The time of the last look for times that a clock ahead had set, and of the last turn, in milliseconds since the epoch. */
  lookedAt = Number.NEGATIVE_INFINITY;
  turnAt = Number.NEGATIVE_INFINITY;

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

  constructor({ id, rows, breaker, random, budget }: DueQueueOptions) {
    this.id = id;
    this.rows = rows;
    this.budget = budget;
    this.breaker = new Breaker(breaker, random);
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

  hasTaken(id: string): boolean {
    return this.#taken.has(id);
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

  /** Buffers a taken row before all others. */
  protected putFirst(due: Due): void {
    this.budget.buffered += 1;
    this.#buffer.splice(this.#at, 0, due);
  }

  /** Buffers a due row before all others, unless it is taken. */
  protected takeFirst(due: Due): void {
    if (this.#taken.has(due.id)) return;
    this.#taken.add(due.id);
    this.putFirst(due);
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
    this.#taken.delete(id);
    this.#released?.add(id);
  }

  dueAt(time: number): void {
    if (time < this.nextDueAt) this.nextDueAt = time;
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

  /** Empties the buffer; the rows remain in the store. */
  drop(): void {
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
