/**
 * How much one endpoint is sent: attempts under way at once (`Window`; §6: 429, 502 and 504 hint to slow down), and attempts a second
 * (`TokenBucket`).
 */

/**
 * How many attempts to one endpoint may be under way.
 *
 * Two modes:
 * - steady: a success adds one for each window of them, up to the endpoint's bound. It begins here, at the bound.
 * - ramp, after a pause: from one, each success adds one, so that the window doubles in the time of an answer; at the bound, or at
 *   the first sign of too much, it goes on steadily. A backlog is drained so, not poured out.
 * A sign of too much halves the window, once for all the attempts that were under way when it came.
 */
export class Window {
  #max: number;
  #size: number;
  #ramp = false;
  #successes = 0;
  /** Attempts are numbered as they begin; signs of those before this one have been heeded. */
  #begun = 0;
  #heeded = 0;

  /** @param max attempts under way at once, at least 1 */
  constructor(max: number) {
    this.#max = max;
    this.#size = max;
  }

  get size(): number {
    return this.#size;
  }

  /** The endpoint's bound is another now. */
  setMax(max: number): void {
    if (max === this.#max) return;
    const wasFull = this.#size === this.#max;
    this.#max = max;
    this.#size = wasFull ? max : Math.min(this.#size, max);
  }

  /** @returns the number of the attempt that begins */
  began(): number {
    this.#begun += 1;
    return this.#begun;
  }

  succeeded(): void {
    if (this.#size >= this.#max) {
      this.#ramp = false;
      return;
    }
    this.#successes += 1;
    if (!this.#ramp && this.#successes < this.#size) return;
    this.#successes = 0;
    this.#size += 1;
  }

  /** @param attempt its number */
  slowDown(attempt: number): void {
    if (attempt <= this.#heeded) return;
    this.#heeded = this.#begun;
    this.#ramp = false;
    this.#successes = 0;
    this.#size = Math.max(1, this.#size >> 1);
  }

  /** Begins again at one. */
  paused(): void {
    this.#heeded = this.#begun;
    this.#ramp = true;
    this.#successes = 0;
    this.#size = 1;
  }
}

const burstSeconds = 0.1;

/**
 * At most so many attempts a second to one endpoint. A tenth of a second's worth may begin at once, so that a timer, which is no
 * finer than a millisecond, can keep up with any rate; so in no second do more than 1.1 times the rate begin, or one more than it.
 */
export class TokenBucket {
  #rate: number;
  #burst: number;
  #tokens: number;
  #filledAt: number;

  /**
   * @param rate attempts a second, above 0
   * @param at monotonic milliseconds, as everywhere here
   */
  constructor(rate: number, at: number) {
    this.#rate = rate;
    this.#burst = Math.max(1, rate * burstSeconds);
    this.#tokens = this.#burst;
    this.#filledAt = at;
  }

  setRate(rate: number): void {
    this.#rate = rate;
    this.#burst = Math.max(1, rate * burstSeconds);
    this.#tokens = Math.min(this.#tokens, this.#burst);
  }

  /** Milliseconds until an attempt may begin; 0: now. */
  waitMs(at: number): number {
    this.#fill(at);
    return this.#tokens >= 1 ? 0 : Math.ceil(((1 - this.#tokens) * 1000) / this.#rate);
  }

  take(): void {
    this.#tokens -= 1;
  }

  #fill(at: number): void {
    const elapsedMs = Math.max(0, at - this.#filledAt);
    this.#filledAt = at;
    // The sum of many small amounts falls short of one by rounding, and a wait for that rest would be a wait for nothing.
    const tokens = this.#tokens + (elapsedMs * this.#rate) / 1000 + 1e-9;
    this.#tokens = Math.min(this.#burst, tokens);
  }
}
