/**
 * When the next batch of a group commit leaves. In the idle state it leaves at the end of the turn of the event loop, so that a turn is one
 * batch. After a commit it leaves at once if it has half as many units as the last one; fewer wait for the requests that the responses bring,
 * for at most four turns, which an idle event loop passes in 0.1 ms (docs/decisions/0065-a-commit-waits-for-those-it-answers.md).
 */

/** The next requests of clients on the same machine arrive in the second turn. */
const turnsMax = 4;

export class BatchTurns {
  readonly #next: () => void;
  readonly #waiting: () => number;
  #isScheduled = false;

  /** @param next starts the next batch unless one is under way @param waiting the number of units that wait */
  constructor(next: () => void, waiting: () => number) {
    this.#next = next;
    this.#waiting = waiting;
  }

  /** Starts the next batch at the end of this turn. */
  schedule(): void {
    this.#schedule(1, 0);
  }

  /** Starts the next batch after one of so many units. */
  follow(units: number): void {
    const least = units / 2;
    if (this.#waiting() >= least) this.#next();
    else this.#schedule(turnsMax, least);
  }

  #schedule(turns: number, least: number): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    const end = (left: number): void => {
      if (left > 1 && this.#waiting() < least) {
        setImmediate(end, left - 1);
        return;
      }
      this.#isScheduled = false;
      this.#next();
    };
    setImmediate(end, turns);
  }
}
