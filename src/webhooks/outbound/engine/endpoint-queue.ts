/**
 * What the engine holds for one endpoint: which of its deliveries it has taken on, a few that are due, and what is known of the rest.
 *
 * Of the rest it knows one of two things: that more may be due (`mayHoldMore`, then the store is read), or when the next one is
 * (`nextDueAt`). A wake makes it the first; a read to the end of what is due makes it the second. Memory is bounded by the window and
 * the buffer, whatever waits in the store.
 *
 * A delivery is taken from the moment that it is read until its attempt is written down, and a read skips what is taken. A read that
 * was under way while an attempt was written down may still show the row as it was before: those are skipped as well.
 */
import type { Delivery } from '../../../model/delivery.ts';
import type { Row } from '../../../store/store.ts';
import { Breaker, type BreakerSettings } from './breaker.ts';
import type { Holding } from './capacity.ts';
import type { DueRows } from './due-rows.ts';
import type { TokenBucket } from './token-bucket.ts';
import { Window } from './window.ts';

/** A delivery that is due, as it was read. */
export type Due = { readonly delivery: Delivery; readonly rev: number; readonly owner: string | null };

/** How many deliveries all queues together have read and not begun. */
export type Budget = { buffered: number };

export type QueueOptions = {
  readonly id: string;
  readonly rows: DueRows;
  readonly inFlightMax: number;
  readonly breaker: BreakerSettings;
  readonly random: () => number;
  readonly budget: Budget;
};

/** Rows that one read brings at most: more make the reads no cheaper. */
const wantedMax = 256;
/** Rows that one turn can use. */
const wantedMin = 4;
/** Rows that all endpoints together have in memory, about 1 KiB each, before a read brings no more than that. */
const bufferedMax = 8192;

export class EndpointQueue {
  readonly id: string;
  readonly rows: DueRows;
  readonly window: Window;
  readonly breaker: Breaker;
  readonly #budget: Budget;
  /** Attempts under way, as the capacity counts them. */
  readonly holding: Holding = { sending: 0, slow: 0 };
  /** Attempts that the window counts: under way, or failed and not understood yet. */
  underWay = 0;
  /** Ids of deliveries that somebody asked for (asked.ts). */
  readonly asked = new Set<string>();
  /** Attempts under way that somebody asked for. */
  askedUnderWay = 0;
  bucket: TokenBucket | undefined;
  /** Nothing begins before it, in milliseconds since the epoch. */
  notBefore = 0;
  /** When it was last looked whether somebody asked for an attempt, in milliseconds since the epoch. */
  askedAt = 0;
  /** Of an endpoint that was just met nothing else is known. */
  mayHoldMore = true;
  nextDueAt = Number.POSITIVE_INFINITY;

  #buffer: Due[] = [];
  /** Where in the buffer the first one stands. */
  #at = 0;
  readonly #taken = new Set<string>();
  /** Grows with everything that makes a read under way worthless. */
  #epoch = 0;
  #released: Set<string> | undefined;

  constructor({ id, rows, inFlightMax, breaker, random, budget }: QueueOptions) {
    this.id = id;
    this.rows = rows;
    this.#budget = budget;
    this.window = new Window(inFlightMax);
    this.breaker = new Breaker(breaker, random);
  }

  get buffered(): number {
    return this.#buffer.length - this.#at;
  }

  /** Deliveries that are taken: buffered, being sent or being written down. */
  get taken(): number {
    return this.#taken.size;
  }

  get reading(): boolean {
    return this.#released !== undefined;
  }

  /** Rows that a read asks for. */
  get wanted(): number {
    const most = this.#budget.buffered < bufferedMax ? wantedMax : wantedMin;
    return this.taken + Math.min(Math.max(2 * this.window.size, wantedMin), most);
  }

  /** Nothing of it is under way. */
  get idle(): boolean {
    return this.#taken.size === 0 && this.asked.size === 0 && !this.reading;
  }

  /** Puts one before all others, unless it is taken. */
  prefer(row: Row): void {
    if (this.reading || this.#taken.has(row.id)) return;
    this.drop();
    this.#take(row, JSON.parse(row.doc) as Delivery);
    this.mayHoldMore = true;
  }

  /** Takes one that was asked for; one that was read and has not begun is taken as well. @returns false where it is under way */
  takeAsked(id: string): boolean {
    const at = this.#buffer.findIndex(({ delivery }, index) => index >= this.#at && delivery.id === id);
    if (at >= 0) {
      this.#buffer.splice(at, 1);
      this.#budget.buffered -= 1;
    } else if (this.#taken.has(id)) return false;
    this.asked.delete(id);
    this.#taken.add(id);
    return true;
  }

  /** The oldest of those read. */
  shift(): Due | undefined {
    const due = this.#buffer[this.#at];
    if (due === undefined) return undefined;
    this.#at += 1;
    this.#budget.buffered -= 1;
    if (this.#at === this.#buffer.length) this.#clearBuffer();
    return due;
  }

  /** Its attempt is written down, or given up. */
  release(deliveryId: string): void {
    this.#taken.delete(deliveryId);
    this.#released?.add(deliveryId);
  }

  /** Another time at which one is due. */
  dueAt(time: number): void {
    if (time < this.nextDueAt) this.nextDueAt = time;
  }

  /** Lets go of what has not begun; the store still has it. */
  drop(): void {
    for (let at = this.#at; at < this.#buffer.length; at += 1) {
      const due = this.#buffer[at];
      if (due !== undefined) this.#taken.delete(due.delivery.id);
    }
    if (this.buffered > 0 || this.reading) this.mayHoldMore = true;
    this.#budget.buffered -= this.buffered;
    this.#clearBuffer();
    this.#epoch += 1;
  }

  /** @returns what `endRead` is to be told */
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
      const delivery = JSON.parse(row.doc) as Delivery;
      const time = delivery.dueAt === null ? Number.POSITIVE_INFINITY : Date.parse(delivery.dueAt);
      if (time > now) {
        this.dueAt(time);
        return;
      }
      this.#take(row, delivery);
    }
    if (rows.length >= wanted) this.mayHoldMore = true;
  }

  /** The read failed: what it would have shown is not known. */
  failRead(): void {
    this.#released = undefined;
    this.mayHoldMore = true;
  }

  #take({ id, rev, owner }: Row, delivery: Delivery): void {
    this.#taken.add(id);
    this.#budget.buffered += 1;
    this.#buffer.push({ delivery, rev, owner });
  }

  #clearBuffer(): void {
    this.#buffer = [];
    this.#at = 0;
  }
}
