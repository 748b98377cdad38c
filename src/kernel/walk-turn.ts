/**
 * The turn of a walk at the rows that it changes (store/lines.ts). A change without a precondition that finds a busy
 * row, or that was superseded, waits in the line of the row and then continues at `exists`. A change with a
 * precondition does not wait the first time that it is superseded: the new state decides it, mostly as 412.
 *
 * Changes without a precondition form a chain: each is computed from the one before, which is not committed yet. Only a
 * committed change is answered from such a state; for any other end the walk waits until the state is settled, and
 * starts again.
 */
import type { Request } from '../http/message.ts';
import { type ChangeLines, Overtaken, type RowName, type Turn } from '../store/store.ts';

type LinesOfRows = Pick<ChangeLines, 'isBusy' | 'turn'>;

export class WalkTurn {
  readonly #lines: LinesOfRows;
  readonly #request: Request;
  readonly #isConditional: boolean;
  readonly #chains: boolean;
  #turn: Turn | undefined;
  #hasLost = false;

  /**
   * @param isConditional the request has a precondition
   * @param chains as in `Operation`
   */
  constructor(lines: LinesOfRows, request: Request, isConditional: boolean, chains: boolean) {
    this.#lines = lines;
    this.#request = request;
    this.#isConditional = isConditional;
    this.#chains = chains && !isConditional;
  }

  /** Takes the turn of a chain if it is free. Counts as superseded if other changes of the row are under way, and this walk waits not yet. */
  busyAt(row: RowName | undefined): Overtaken | undefined {
    if (row === undefined || this.#isConditional || this.#turn !== undefined) return undefined;
    if (this.#lines.isBusy(row)) return new Overtaken(row);
    if (this.#chains) this.#begin().takeFree(row);
    return undefined;
  }

  get isHeld(): boolean {
    return this.#turn !== undefined;
  }

  /** True if the change may be computed from one that is not committed yet. */
  get isChained(): boolean {
    return this.#turn?.isChained === true;
  }

  /**
   * Waits for the turn.
   * @param isAlone waits until the earlier changes of the row are settled
   * @returns false if it did not wait
   * @throws LineUnavailable
   */
  async take(row: RowName, isAlone = false): Promise<boolean> {
    if (this.#isConditional && !this.#hasLost) {
      this.#hasLost = true;
      return false;
    }
    await this.#begin().take(row, isAlone);
    return true;
  }

  #begin(): Turn {
    this.#turn ??= this.#lines.turn(this.#request.onGone?.bind(this.#request), this.#chains);
    return this.#turn;
  }

  release(): void {
    this.#turn?.release();
  }
}
