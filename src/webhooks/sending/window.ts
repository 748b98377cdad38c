/**
 * The limits of one endpoint: concurrent attempts (`Window`; §6: 429, 502 and 504 ask to slow down), and attempts per
 * second (`TokenBucket`).
 */

/**
 * The number of attempts to one endpoint that may be under way.
 *
 * Two modes:
 * - steady: a full window of successes adds one, up to the endpoint's bound. It begins here, at the bound.
 * - ramp, after a pause: starts at one, and each success adds one, so that the window doubles in one response time. It
 *   becomes steady at the bound or at the first signal to slow down. A backlog thus drains gradually.
 *
 * A signal to slow down halves the window, once for all attempts that were under way.
 */
export class Window {
  #max: number;
  #size: number;
  #ramp = false;
  #successes = 0;
  /** Attempts are numbered as they begin; signals from attempts up to `#heeded` are ignored. */
  #begun = 0;
  #heeded = 0;

  /** @param max concurrent attempts, at least 1 */
  constructor(max: number) {
    this.#max = max;
    this.#size = max;
  }

  get size(): number {
    return this.#size;
  }

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

  /** Restarts at one. */
  paused(): void {
    this.#heeded = this.#begun;
    this.#ramp = true;
    this.#successes = 0;
    this.#size = 1;
  }
}

const burstSeconds = 0.1;

/**
 * Bounds the attempts per second to one endpoint. A tenth of a second's worth may begin at once, so that a timer with a
 * resolution of a millisecond reaches any rate; in one second at most 1.1 times the rate begin, or one more than the
 * rate.
 */
export class TokenBucket {
  #rate: number;
  #burst: number;
  #tokens: number;
  #filledAt: number;

  /**
   * @param rate attempts per second, above 0
   * @param at monotonic milliseconds, as in every method
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
    // Rounding makes the sum of many small amounts fall short of one; without this term the caller would wait for that
    // remainder.
    const tokens = this.#tokens + (elapsedMs * this.#rate) / 1000 + 1e-9;
    this.#tokens = Math.min(this.#burst, tokens);
  }
}
