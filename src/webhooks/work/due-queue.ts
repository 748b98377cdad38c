/**
 * What an engine holds for one queue of due work: which rows it has taken on, a few that are due, and what is known of the rest.
 *
 * Of the rest it knows one of two things: that more may be due (`mayHoldMore`, then the store is read), or when the next one is
 * (`nextDueAt`). A wake makes it the first; a read to the end of what is due makes it the second. Memory is bounded by the window and
 * the buffer, whatever waits in the store.
 *
 * A row is taken from the moment that it is read until its attempt is written down, and a read skips what is taken. A read that
 * was under way while an attempt was written down may still show the row as it was before: those are skipped as well.
 */
import type { Row } from '../../store/store.ts';
import { Breaker, type BreakerSettings } from './breaker.ts';
import type { DueRows } from './due-rows.ts';

/** How many rows all queues of an engine together have read and not begun. */
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
  /** Nothing begins before it, in milliseconds since the epoch. */
  notBefore = 0;
  /** When the engine last looked for an attempt that a person asked for, in milliseconds since the epoch. */
  askedAt = 0;
  /** Of a queue that was just made nothing else is known. */
  mayHoldMore = true;
  nextDueAt = Number.POSITIVE_INFINITY;

  #buffer: Due[] = [];
  /** Index of the first one in the buffer. */
  #at = 0;
  readonly #taken = new Set<string>();
  /** Grows with everything that makes a read under way worthless. */
  #epoch = 0;
  #released: Set<string> | undefined;

  constructor({ id, rows, breaker, random, budget }: DueQueueOptions) {
    this.id = id;
    this.rows = rows;
    this.budget = budget;
    this.breaker = new Breaker(breaker, random);
  }

  /** What lanes know it by. */
  abstract get lane(): string;

  /** Rows that a read asks for. */
  abstract get wanted(): number;

  /** What is kept of a row that is due, and when it is due; null: it has no time. */
  protected abstract parse(row: Row): { readonly due: Due; readonly dueAt: string | null };

  get buffered(): number {
    return this.#buffer.length - this.#at;
  }

  /** Rows that are taken: buffered, being worked at or being written down. */
  get taken(): number {
    return this.#taken.size;
  }

  get reading(): boolean {
    return this.#released !== undefined;
  }

  /** The oldest of those read. */
  shift(): Due | undefined {
    const due = this.#buffer[this.#at];
    if (due === undefined) return undefined;
    this.#at += 1;
    this.budget.buffered -= 1;
    if (this.#at === this.#buffer.length) this.#clearBuffer();
    return due;
  }

  /** Puts one before all others, unless it is taken. */
  prefer(row: Row): void {
    if (this.reading || this.#taken.has(row.id)) return;
    this.drop();
    this.#add(this.parse(row).due);
    this.mayHoldMore = true;
  }

  /** Takes one by its id, also one that was read and has not begun. @returns false where it is under way */
  take(id: string): boolean {
    const at = this.#buffer.findIndex((due, index) => index >= this.#at && due.id === id);
    if (at >= 0) {
      this.#buffer.splice(at, 1);
      this.budget.buffered -= 1;
    } else if (this.#taken.has(id)) return false;
    this.#taken.add(id);
    return true;
  }

  /** Its attempt is written down, or given up. */
  release(id: string): void {
    this.#taken.delete(id);
    this.#released?.add(id);
  }

  /** Another time at which one is due. */
  dueAt(time: number): void {
    if (time < this.nextDueAt) this.nextDueAt = time;
  }

  /** Nothing begins before the time, in milliseconds since the epoch. What is due then is read anew. */
  pause(until: number): void {
    this.notBefore = Math.max(this.notBefore, until);
    this.mayHoldMore = true;
  }

  /** Lets go of what has not begun; the store still has it. */
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

  /** @returns what `endRead` needs to tell whether the read is still worth something */
  beginRead(): number {
    this.mayHoldMore = false;
    this.nextDueAt = Number.POSITIVE_INFINITY;
    this.#released = new Set();
    return this.#epoch;
  }

  /**
   * @param rows the first ones by `dueAt`, of those that have one
   * @param wanted how many of them were asked for: fewer means that there are no more
   */
  endRead(epoch: number, rows: readonly Row[], wanted: number, now: number): void {
    const released = this.#released;
    this.#released = undefined;
    if (epoch !== this.#epoch) {
      this.mayHoldMore = true;
      return;
    }
    for (const row of rows) {
      if (this.#taken.has(row.id) || released?.has(row.id)) continue;
      const { due, dueAt } = this.parse(row);
      const time = dueAt === null ? Number.POSITIVE_INFINITY : Date.parse(dueAt);
      if (time > now) {
        this.dueAt(time);
        return;
      }
      this.#add(due);
    }
    if (rows.length >= wanted) this.mayHoldMore = true;
  }

  /** The read failed: what it would have shown is not known. */
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
