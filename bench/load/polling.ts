/**
 * Turns of the event loop without sleep, for a process that a measured server sends to. A server that wakes it pays for that: of a virtual
 * machine's processor 27 us a response if it is so slow that the process sleeps after each, and 5 us if it is fast. Needs a processor that
 * nothing else uses.
 */
export class Polling {
  readonly #taken: () => number;
  #next: NodeJS.Immediate | undefined;
  #idleMs = 0;

  /** @param taken how many messages the process has taken so far */
  constructor(taken: () => number) {
    this.#taken = taken;
  }

  /** Milliseconds of all turns that took nothing, which the process did not need. */
  get idleMs(): number {
    return this.#idleMs;
  }

  start(): void {
    if (this.#next !== undefined) return;
    let taken = this.#taken();
    let lookedMs = performance.now();
    const look = (): void => {
      const nowMs = performance.now();
      if (this.#taken() === taken) this.#idleMs += nowMs - lookedMs;
      taken = this.#taken();
      lookedMs = nowMs;
      this.#next = setImmediate(look);
    };
    this.#next = setImmediate(look);
  }

  stop(): void {
    clearImmediate(this.#next);
    this.#next = undefined;
  }
}
