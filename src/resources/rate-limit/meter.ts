/**
 * One limit for callers of one kind: admits a request or refuses it, and says what the answer tells about the limit.
 *
 * Counters live in two maps, this window and the one before, and are forgotten with their map: nothing has to be swept.
 * When the map is full, a caller that asked for less than half of its limit makes room: whoever sends from so many addresses
 * that this matters has as many limits as addresses anyway, and gains nothing. Counters near their limit stay. Where a few
 * looks find nobody to forget, callers without a place share one counter (`crowd`).
 *
 * A refused request is not counted, so the time in Retry-After does not move away from who keeps asking.
 */
import type { Allowance } from '../../http/allowance.ts';
import { Counter, type Share } from './counter.ts';
import { stillCounted, waitMs, windowMs } from './window.ts';

export type MeterOptions = {
  /** Names the limit in `RateLimit-Policy`. */
  readonly policy: 'reads' | 'writes';
  readonly callers: 'principal' | 'address';
  /** Requests a minute; at least 1. */
  readonly limit: number;
  readonly countersMax: number;
  /** Absent where no other process counts. */
  readonly share: Share | undefined;
};

/** Counters looked at to find one that may be forgotten. */
const looksMax = 8;

export class Meter {
  readonly #name: string;
  readonly #limit: number;
  readonly #countersMax: number;
  readonly #share: Share | undefined;
  readonly #policy: string;
  readonly #ratePrefix: string;
  #window = 0;
  #current = new Map<string, Counter>();
  #previous = new Map<string, Counter>();
  #crowd: Counter;
  /** Goes round the current counters, so that none is looked at again before all others were. */
  #hand: MapIterator<Counter>;

  constructor({ policy, callers, limit, countersMax, share }: MeterOptions) {
    this.#name = `${policy} ${callers}`;
    this.#limit = limit;
    this.#countersMax = countersMax;
    this.#share = share;
    this.#policy = `"${policy}";q=${limit};w=${windowMs / 1000}`;
    this.#ratePrefix = `"${policy}";r=`;
    this.#crowd = new Counter(this.#name, '', 0);
    this.#hand = this.#current.values();
  }

  /** Counters in memory, for gauges and tests. */
  get counters(): number {
    return this.#current.size + this.#previous.size;
  }

  /** @param nowMs since the epoch */
  admit(caller: string, nowMs: number): Allowance {
    const window = Math.floor(nowMs / windowMs);
    if (window !== this.#window) this.#turnTo(window);
    const counter = this.#current.get(caller) ?? this.#open(caller);
    // A clock that stepped back a little still is in the window that had begun.
    const elapsedMs = window === this.#window ? nowMs - window * windowMs : 0;
    const before = counter.before?.admitted ?? 0;
    const left = this.#limit - counter.admitted - stillCounted(before, elapsedMs);
    if (left < 1) return this.#tell(counter, true, 0, elapsedMs);
    counter.admitted += 1;
    if (this.#share !== undefined && counter !== this.#crowd) {
      counter.untold += 1;
      if (!counter.waits) this.#share(counter);
    }
    return this.#tell(counter, false, left - 1, elapsedMs);
  }

  #tell(counter: Counter, exceeded: boolean, left: number, elapsedMs: number): Allowance {
    const resetMs =
      left > 0
        ? windowMs - elapsedMs
        : waitMs(this.#limit, counter.admitted, counter.before?.admitted ?? 0, elapsedMs);
    const seconds = Math.max(1, Math.ceil(resetMs / 1000));
    return {
      exceeded,
      policy: this.#policy,
      rate: `${this.#ratePrefix}${left};t=${seconds}`,
      remaining: `${left}`,
      retryAfterSeconds: seconds,
    };
  }

  #turnTo(window: number): void {
    if (window === this.#window - 1) return;
    const next = window === this.#window + 1;
    this.#previous = next ? this.#current : new Map();
    this.#current = new Map();
    this.#hand = this.#current.values();
    const crowd = new Counter(this.#name, '', window);
    if (next) crowd.before = this.#crowd;
    this.#crowd.before = undefined;
    this.#crowd = crowd;
    this.#window = window;
  }

  #open(caller: string): Counter {
    if (this.#current.size >= this.#countersMax && !this.#makeRoom()) return this.#crowd;
    const counter = new Counter(this.#name, caller, this.#window);
    const before = this.#previous.get(caller);
    if (before !== undefined) before.before = undefined;
    counter.before = before;
    if (this.#share !== undefined) {
      counter.before ??= new Counter(this.#name, caller, this.#window - 1);
      // Asked for once: the other processes may have admitted more since this one heard last.
      if (!counter.before.waits) this.#share(counter.before);
    }
    this.#current.set(caller, counter);
    return counter;
  }

  #makeRoom(): boolean {
    for (let looks = 0; looks < looksMax; looks += 1) {
      let counter = this.#hand.next().value;
      if (counter === undefined) {
        this.#hand = this.#current.values();
        counter = this.#hand.next().value;
      }
      if (counter === undefined) return false;
      if (counter.admitted * 2 < this.#limit) return this.#current.delete(counter.caller);
    }
    return false;
  }
}
