/**
 * A line for work that takes memory while it is done: the octets of what is worked on at once are bounded, and the rest waits in the order
 * in which it came. One piece of work always goes on, however large, so that the line moves.
 */

type Waiting = { readonly bytes: number; readonly go: () => void };

export class OctetLine {
  readonly #bytesMax: number;
  readonly #waiting: Waiting[] = [];
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Octets that are worked on now. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Pieces that wait. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /** Enters at once, or when its turn comes; `leave` must follow, with the same number. */
  enter(bytes: number): Promise<void> | undefined {
    if (this.#waiting.length === 0 && this.#fits(bytes)) {
      this.#bytes += bytes;
      return undefined;
    }
    return new Promise((resolve) => this.#waiting.push({ bytes, go: resolve }));
  }

  leave(bytes: number): void {
    this.#bytes -= bytes;
    for (let next = this.#waiting[0]; next !== undefined && this.#fits(next.bytes); next = this.#waiting[0]) {
      this.#waiting.shift();
      this.#bytes += next.bytes;
      next.go();
    }
  }

  #fits(bytes: number): boolean {
    return this.#bytes === 0 || this.#bytes + bytes <= this.#bytesMax;
  }
}
