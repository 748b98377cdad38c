/**
 * At most so many attempts a second to one endpoint. A tenth of a second's worth may begin at once, so that a timer, which is no
 * finer than a millisecond, can keep up with any rate; so in no second do more than 1.1 times the rate begin, or one more than it.
 */

const burstSeconds = 0.1;

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
