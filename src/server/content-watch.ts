/**
 * Watches over the readings of content that are under way, so that a slow sender cannot hold a request for ever. One
 * timer for all of them, running only while there are any: a timer for each POST would cost more than most contents.
 */

export type Watched = {
  /** Ends the reading if it has taken too long, or comes too slowly. */
  check(nowMs: number): void;
};

export class ContentWatch {
  readonly #watched = new Set<Watched>();
  readonly #monotonic: () => number;
  readonly #intervalMs: number;
  #timer: NodeJS.Timeout | undefined;

  constructor(monotonic: () => number, intervalMs: number) {
    this.#monotonic = monotonic;
    this.#intervalMs = intervalMs;
  }

  add(reading: Watched): void {
    this.#watched.add(reading);
    this.#timer ??= setInterval(() => this.#sweep(), this.#intervalMs).unref();
  }

  delete(reading: Watched): void {
    this.#watched.delete(reading);
  }

  #sweep(): void {
    if (this.#watched.size === 0) {
      clearInterval(this.#timer);
      this.#timer = undefined;
      return;
    }
    const nowMs = this.#monotonic();
    for (const reading of this.#watched) reading.check(nowMs);
  }
}
