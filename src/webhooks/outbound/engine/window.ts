/**
 * How many attempts to one endpoint may be under way (§6: 429, 502 and 504 hint to slow down).
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
