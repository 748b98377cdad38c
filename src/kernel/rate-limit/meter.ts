/**
 * One rate limit for callers of one kind: admits or refuses a request, and returns the allowance for the response.
 *
 * Counters live in two maps, for this window and the one before, and disappear with their map. In a full map a caller
 * below half of its limit is forgotten to make room: a sender with that many addresses has as many limits anyway. If a
 * few looks find no such caller, new callers share one counter (`crowd`).
 *
 * A refused request is not counted, so that Retry-After holds for a client that keeps sending.
 */
import type { Allowance } from '../../http/message.ts';

type Share = (counter: Counter) => void;

/** Requests of one caller admitted in one window, by this process and, as far as it knows, by all. */
export class Counter {
  /** The limit, and whether the caller is a principal or an address. */
  readonly meter: string;
  readonly caller: string;
  /** Minutes since the epoch. */
  readonly window: number;
  admitted = 0;
  /** Admitted requests that other processes have not been sent yet. */
  unsent = 0;
  isQueued = false;
  before: Counter | undefined;

  constructor(meter: string, caller: string, window: number) {
    this.meter = meter;
    this.caller = caller;
    this.window = window;
  }

  /** The key that all processes use. */
  get key(): string {
    return `rate ${this.meter} ${this.window} ${this.caller}`;
  }
}

/**
 * The length of a fixed window. A sliding window is made of two fixed ones: requests admitted in the previous minute
 * count with the share of it that the last sixty seconds still cover, as if they were evenly spread
 * (docs/decisions/0019). Whole numbers, so that a refusal and its Retry-After never disagree.
 */
export const windowMs = 60_000;

/** Returns how many of the `before` requests of the previous window count when `elapsedMs` of this one have passed. */
export function stillCounted(before: number, elapsedMs: number): number {
  return Math.floor((before * (windowMs - elapsedMs - 1)) / windowMs);
}

/**
 * Returns the milliseconds from `elapsedMs` until one more request would be admitted; 0: now. @param limit at least 1
 */
export function waitMs(limit: number, admitted: number, before: number, elapsedMs: number): number {
  if (admitted < limit) return Math.max(0, fadedAt(before, limit - 1 - admitted) - elapsedMs);
  return windowMs - elapsedMs + fadedAt(admitted, limit - 1);
}

/** Returns the first millisecond of a window at which at most `room` of `before` still count. */
function fadedAt(before: number, room: number): number {
  return before <= room ? 0 : Math.floor((windowMs * (before - room - 1)) / before);
}

export type MeterOptions = {
  /** The name of the limit in `RateLimit-Policy`. */
  readonly policy: 'reads' | 'writes';
  readonly callers: 'principal' | 'address';
  /** Requests a minute; at least 1. */
  readonly limit: number;
  readonly countersMax: number;
  /** Undefined if no other process counts. */
  readonly share: Share | undefined;
};

/** Counters examined to find one that may be forgotten. */
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

  get counters(): number {
    return this.#current.size + this.#previous.size;
  }

  /** @param nowMs since the epoch */
  admit(caller: string, nowMs: number): Allowance {
    const window = Math.floor(nowMs / windowMs);
    if (window !== this.#window) this.#turnTo(window);
    const counter = this.#current.get(caller) ?? this.#open(caller);
    // A clock that stepped back a little stays in the current window.
    const elapsedMs = window === this.#window ? nowMs - window * windowMs : 0;
    const before = counter.before?.admitted ?? 0;
    const left = this.#limit - counter.admitted - stillCounted(before, elapsedMs);
    if (left < 1) return this.#allowance(counter, true, 0, elapsedMs);
    counter.admitted += 1;
    if (this.#share !== undefined && counter !== this.#crowd) {
      counter.unsent += 1;
      if (!counter.isQueued) this.#share(counter);
    }
    return this.#allowance(counter, false, left - 1, elapsedMs);
  }

  #allowance(counter: Counter, exceeded: boolean, left: number, elapsedMs: number): Allowance {
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
      // Read once: other processes may have admitted more since the last exchange.
      if (!counter.before.isQueued) this.#share(counter.before);
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
