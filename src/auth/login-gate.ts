/**
 * Attempts of one process on the same account or from the same address, in the order they came. A gate is either `free`, or `held` by the
 * one attempt that is being counted; those behind it wait. Independent of that, attempts that were admitted are `pending` until it is
 * known how they went. A gate that is free and has nothing pending is forgotten, so there are never more than attempts.
 */

export class LoginGate {
  pending = 0;
  /** Holders and those who wait to be. */
  #queued = 0;
  #tail: Promise<void> = Promise.resolve();
  readonly #settled: (() => void)[] = [];

  get isIdle(): boolean {
    return this.pending === 0 && this.#queued === 0;
  }

  /** Resolves with the way to let the next one in, when everyone before has done so. */
  async hold(): Promise<() => void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const before = this.#tail;
    this.#tail = promise;
    this.#queued += 1;
    await before;
    return () => {
      this.#queued -= 1;
      resolve();
    };
  }

  settle(): void {
    this.pending -= 1;
    for (const tell of this.#settled.splice(0)) tell();
  }

  /** Resolves when one more of the pending attempts is settled. */
  nextSettled(): Promise<void> {
    return new Promise((resolve) => {
      this.#settled.push(resolve);
    });
  }
}
