/**
 * Divides the time of the event loop between what runs on it: requests as they arrive, and loops over an application's functions or over
 * rows, which on SQLite go on for as long as promises settle and would let no timer, socket or signal in between.
 *
 * All of them together may take 10 ms of one turn of the event loop. Those that come later wait, in order of arrival, for the next turns:
 * what hundreds of clients send at once is read in one turn, and 400 requests that take 0.2 ms each would hold it for 80 ms.
 */
import process from 'node:process';

/** Time of one turn, with the promises that settle meanwhile. */
const turnMs = 10;

export class LoopTurns {
  readonly #monotonic: () => number;
  /** True from the first piece of work of a turn until a turn without any. */
  #isUnderWay = false;
  /** When the latest turn began. */
  #beganMs = 0;
  /** Requests: at most what one read of each socket holds. Loops: one for each request or function under way. */
  readonly #waiting: (() => void)[] = [];
  /** The first of those that wait: the ones before it have had their turn. */
  #next = 0;

  constructor(monotonic: () => number = () => performance.now()) {
    this.#monotonic = monotonic;
  }

  /** Has a request handled now, or in a later turn. */
  take(handle: () => void): void {
    if (this.#mayGoOn()) handle();
    else this.#waiting.push(handle);
  }

  /** Called between two steps of a loop. @returns undefined: go on; otherwise wait for it first */
  next(): Promise<void> | undefined {
    if (this.#mayGoOn()) return undefined;
    return new Promise((resolve) => void this.#waiting.push(resolve));
  }

  #mayGoOn(): boolean {
    if (!this.#isUnderWay) {
      this.#isUnderWay = true;
      this.#beganMs = this.#monotonic();
      setImmediate(this.#nextTurn);
    }
    return this.#next === this.#waiting.length && this.#isInTime();
  }

  readonly #nextTurn = (): void => {
    this.#waiting.splice(0, this.#next);
    this.#next = 0;
    this.#isUnderWay = this.#waiting.length > 0;
    if (!this.#isUnderWay) return;
    this.#beganMs = this.#monotonic();
    setImmediate(this.#nextTurn);
    this.#handleNext();
  };

  readonly #handleNext = (): void => {
    if (this.#next === this.#waiting.length || !this.#isInTime()) return;
    const handle = this.#waiting[this.#next];
    this.#next += 1;
    handle?.();
    queueMicrotask(this.#afterMicrotasks);
  };

  /** A tick that a microtask asks for comes after all of them, so what follows from one is counted before the next has its turn. */
  readonly #afterMicrotasks = (): void => process.nextTick(this.#handleNext);

  #isInTime(): boolean {
    return this.#monotonic() - this.#beganMs < turnMs;
  }
}
