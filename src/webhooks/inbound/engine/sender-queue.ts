/**
 * What the engine holds for one sender: which of its messages it has taken on, a few that are due, and what is known of the rest.
 *
 * Of the rest it knows one of two things: that more may be due (`mayHoldMore`, then the store is read), or when the next one is
 * (`nextDueAt`). A wake makes it the first; a read to the end of what is due makes it the second. Memory is bounded by the window and
 * the buffer, which holds no bodies, whatever waits in the store.
 *
 * A message is taken from the moment that it is read until what came of it is written down, and a read skips what is taken. A read that
 * was under way while that was written down may still show the row as it was before: those are skipped as well.
 */
import type { DeclaredSender } from '../../../config/senders.ts';
import type { Received } from '../../../model/received.ts';
import type { Row } from '../../../store/store.ts';
import { Breaker, type BreakerSettings } from '../../outbound/engine/breaker.ts';
import type { DueRows } from '../../outbound/engine/due-rows.ts';
import type { HandOn } from '../hand-on.ts';
import type { Share } from './shares.ts';

/** A message that was due when it was read. */
export type Due = Pick<Received, 'id' | 'dedupeKey'>;

export type SenderQueueOptions = {
  readonly sender: DeclaredSender;
  readonly handOn: HandOn;
  readonly rows: DueRows;
  readonly share: Share;
  readonly inFlightMax: number;
  readonly breaker: BreakerSettings;
  readonly random: () => number;
};

/** Rows that one read brings besides what is taken. */
const wantedMin = 32;
const wantedMax = 256;

export class SenderQueue {
  readonly sender: DeclaredSender;
  readonly handOn: HandOn;
  readonly rows: DueRows;
  readonly share: Share;
  readonly inFlightMax: number;
  readonly breaker: Breaker;
  /** Nothing begins before it, in milliseconds since the epoch. */
  notBefore = 0;
  /** When it was paused last, in milliseconds since the epoch. */
  pausedAt = 0;
  /** When it was last looked whether somebody asked for an attempt, in milliseconds since the epoch. */
  askedAt = 0;
  /** At first nothing else is known. */
  mayHoldMore = true;
  nextDueAt = Number.POSITIVE_INFINITY;

  /** Messages whose handler is run again, or waits to be: as long as there are some, no other begins. */
  rerunning = 0;
  #rerun: Promise<void> = Promise.resolve();

  #buffer: Due[] = [];
  /** Where in the buffer the first one stands. */
  #at = 0;
  readonly #taken = new Set<string>();
  /** Grows with everything that makes a read under way worthless. */
  #epoch = 0;
  #released: Set<string> | undefined;

  constructor({ sender, handOn, rows, share, inFlightMax, breaker, random }: SenderQueueOptions) {
    this.sender = sender;
    this.handOn = handOn;
    this.rows = rows;
    this.share = share;
    this.inFlightMax = inFlightMax;
    this.breaker = new Breaker(breaker, random);
  }

  /** What lanes know it by. */
  get lane(): string {
    return `sender/${this.sender.name}`;
  }

  get buffered(): number {
    return this.#buffer.length - this.#at;
  }

  get reading(): boolean {
    return this.#released !== undefined;
  }

  /** Rows that a read asks for. */
  get wanted(): number {
    return this.#taken.size + Math.min(Math.max(2 * this.inFlightMax, wantedMin), wantedMax);
  }

  /** Resolves in turn with what lets the next one go: what lost a race against its own kind runs again one at a time. */
  async rerunTurn(): Promise<() => void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const before = this.#rerun;
    this.#rerun = promise;
    this.rerunning += 1;
    await before;
    return () => {
      this.rerunning -= 1;
      resolve();
    };
  }

  /** The oldest of those read. */
  shift(): Due | undefined {
    const due = this.#buffer[this.#at];
    if (due === undefined) return undefined;
    this.#at += 1;
    if (this.#at === this.#buffer.length) this.#clearBuffer();
    return due;
  }

  /** What came of it is written down, or given up. */
  release(messageId: string): void {
    this.#taken.delete(messageId);
    this.#released?.add(messageId);
  }

  /** Another time at which one is due. */
  dueAt(time: number): void {
    if (time < this.nextDueAt) this.nextDueAt = time;
  }

  /** Lets go of what has not begun; the store still has it. */
  drop(): void {
    for (let at = this.#at; at < this.#buffer.length; at += 1) {
      const due = this.#buffer[at];
      if (due !== undefined) this.#taken.delete(due.id);
    }
    if (this.buffered > 0 || this.reading) this.mayHoldMore = true;
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
      const { id, dueAt, dedupeKey } = JSON.parse(row.doc) as Received;
      const time = dueAt === null ? Number.POSITIVE_INFINITY : Date.parse(dueAt);
      if (time > now) {
        this.dueAt(time);
        return;
      }
      this.#taken.add(id);
      this.#buffer.push({ id, dedupeKey });
    }
    if (rows.length >= wanted) this.mayHoldMore = true;
  }

  /** The read failed: what it would have shown is not known. */
  failRead(): void {
    this.#released = undefined;
    this.mayHoldMore = true;
  }

  #clearBuffer(): void {
    this.#buffer = [];
    this.#at = 0;
  }
}
