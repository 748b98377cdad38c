/**
 * Turns in which event streams write: so much in one turn of the event loop and no more, whoever wants to, in the order in which
 * they came. What is handed to a socket costs when it is sent, after the call that wrote it, so octets are counted and not time: 2 MiB
 * took 1 to 3 ms on a two-core machine.
 */

const turnBytesMax = 2 * 1024 * 1024;
/** What a short write costs, in octets of a long one. */
const writeBytesMin = 16 * 1024;

/** Writes, and says how many octets. */
export type Write = () => number;

export class WriteTurns {
  #waiting: Write[] = [];
  #isScheduled = false;

  /** Calls back in a later turn of the event loop, once. */
  enter(write: Write): void {
    this.#waiting.push(write);
    this.#schedule();
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(this.#run);
  }

  readonly #run = (): void => {
    this.#isScheduled = false;
    const writes = this.#waiting;
    this.#waiting = [];
    let bytes = 0;
    let at = 0;
    for (; at < writes.length && bytes < turnBytesMax; at += 1) {
      bytes += Math.max(writeBytesMin, writes[at]?.() ?? 0);
    }
    if (at < writes.length) this.#waiting = [...writes.slice(at), ...this.#waiting];
    if (this.#waiting.length > 0) this.#schedule();
  };
}
