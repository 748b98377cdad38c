/**
 * Begins the handling of requests in turns of the event loop: what hundreds of clients send at once is read in one turn, and 400 requests that
 * take 0.2 ms each would hold it for 80 ms. For 10 ms requests are handled as they arrive; those after them wait, in order, for later
 * turns, between which timers and other sockets have theirs.
 */

/** Time for the requests of one turn, with the promises that they settle. */
const turnMs = 10;

export class ArrivalTurns {
  readonly #monotonic: () => number;
  /** False between turns with requests. */
  #isUnderWay = false;
  /** When the latest turn began. */
  #beganMs = 0;
  /** At most what one read of each socket holds: sockets are read again after the next turn of these. */
  #waiting: (() => void)[] = [];
  #next = 0;

  constructor(monotonic: () => number) {
    this.#monotonic = monotonic;
  }

  /** Has a request handled now, or in a later turn. */
  take(handle: () => void): void {
    if (!this.#isUnderWay) {
      this.#isUnderWay = true;
      this.#beganMs = this.#monotonic();
      setImmediate(this.#nextTurn);
    }
    if (this.#waiting.length === 0 && this.#isInTime()) handle();
    else this.#waiting.push(handle);
  }

  readonly #nextTurn = (): void => {
    this.#beganMs = this.#monotonic();
    this.#handleNext();
  };

  /** Between two requests, promises that the first has settled are served, so that the time is theirs too. */
  readonly #handleNext = (): void => {
    if (!this.#isInTime()) {
      setImmediate(this.#nextTurn);
      return;
    }
    const handle = this.#waiting[this.#next];
    this.#next += 1;
    handle?.();
    if (this.#next < this.#waiting.length) queueMicrotask(this.#handleNext);
    else {
      this.#waiting = [];
      this.#next = 0;
      this.#isUnderWay = false;
    }
  };

  #isInTime(): boolean {
    return this.#monotonic() - this.#beganMs < turnMs;
  }
}
