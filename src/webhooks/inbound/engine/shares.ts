/**
 * How the senders share what a process hands on at once. Half of it is divided among them, and each sender's part of that half is kept
 * free for it; the other half is anyone's. So a sender whose messages all hang, or whose backlog is long, never holds up another, and one that is
 * alone in having something to do still has more than half of the whole.
 */

/** What is kept of a sender. */
export type Share = {
  /** Messages that are being handed on. */
  inFlight: number;
  /** How many of these no other sender can prevent. */
  readonly kept: number;
};

export class Shares {
  readonly #max: number;
  readonly #keptEach: number;
  #inFlight = 0;
  /** What is kept free and not used. */
  #unused = 0;

  /**
   * @param max messages handed on at once, at least 1
   * @param senders that hand on
   */
  constructor(max: number, senders: number) {
    this.#max = max;
    this.#keptEach = Math.max(1, Math.floor(max / (2 * Math.max(1, senders))));
  }

  get inFlight(): number {
    return this.#inFlight;
  }

  /** @param inFlightMax messages of the sender at once */
  add(inFlightMax: number): Share {
    const kept = Math.min(this.#keptEach, inFlightMax);
    this.#unused += kept;
    return { inFlight: 0, kept };
  }

  admits(share: Share): boolean {
    if (this.#inFlight >= this.#max) return false;
    return share.inFlight < share.kept || this.#inFlight + this.#unused < this.#max;
  }

  begin(share: Share): void {
    if (share.inFlight < share.kept) this.#unused -= 1;
    share.inFlight += 1;
    this.#inFlight += 1;
  }

  end(share: Share): void {
    share.inFlight -= 1;
    this.#inFlight -= 1;
    if (share.inFlight < share.kept) this.#unused += 1;
  }
}
