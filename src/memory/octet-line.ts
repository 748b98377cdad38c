/** A queue that bounds the octets of work under way, in order of arrival. It always admits one piece, however large. */

type Waiting = { readonly bytes: number; readonly go: () => void };

export class OctetLine {
  readonly #bytesMax: number;
  readonly #waitingBytesMax: number;
  readonly #waiting: Waiting[] = [];
  #bytes = 0;
  #waitingBytes = 0;

  /** @param waitingBytesMax of work that waits, at which `isFull` becomes true */
  constructor(bytesMax: number, waitingBytesMax: number = Number.POSITIVE_INFINITY) {
    this.#bytesMax = bytesMax;
    this.#waitingBytesMax = waitingBytesMax;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  get isFull(): boolean {
    return this.#waitingBytes >= this.#waitingBytesMax;
  }

  /** Admits the work: immediately (undefined), or by a promise. Call `leave` with the same number at the end. */
  enter(bytes: number): Promise<void> | undefined {
    if (this.#waiting.length === 0 && this.#fits(bytes)) {
      this.#bytes += bytes;
      return undefined;
    }
    this.#waitingBytes += bytes;
    return new Promise((resolve) => this.#waiting.push({ bytes, go: resolve }));
  }

  /** Does the work once it is admitted. */
  async run<T>(bytes: number, work: () => T | Promise<T>): Promise<T> {
    await this.enter(bytes);
    try {
      return await work();
    } finally {
      this.leave(bytes);
    }
  }

  leave(bytes: number): void {
    this.#bytes -= bytes;
    for (let next = this.#waiting[0]; next !== undefined && this.#fits(next.bytes); next = this.#waiting[0]) {
      this.#waiting.shift();
      this.#waitingBytes -= next.bytes;
      this.#bytes += next.bytes;
      next.go();
    }
  }

  #fits(bytes: number): boolean {
    return this.#bytes === 0 || this.#bytes + bytes <= this.#bytesMax;
  }
}
