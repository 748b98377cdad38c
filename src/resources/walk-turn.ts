/**
 * The turn of a walk at the rows that it changes (store/lines.ts). A change without a precondition that comes to a busy row, or that another
 * came before, waits in the line of that row and then looks anew. One with a precondition never waits the first time that it lost:
 * looking anew decides it, mostly as 412.
 */
import type { Request } from '../http/message.ts';
import { type ChangeLines, Overtaken, type RowName, type Turn } from '../store/store.ts';

type LinesOfRows = Pick<ChangeLines, 'isBusy' | 'turn'>;

export class WalkTurn {
  readonly #lines: LinesOfRows;
  readonly #request: Request;
  readonly #isConditional: boolean;
  #turn: Turn | undefined;
  #hasLost = false;

  /** @param isConditional whether the request has a precondition */
  constructor(lines: LinesOfRows, request: Request, isConditional: boolean) {
    this.#lines = lines;
    this.#request = request;
    this.#isConditional = isConditional;
  }

  /** As if it had lost already, where others wait for the row and this walk does not yet. */
  busyAt(row: RowName | undefined): Overtaken | undefined {
    if (row === undefined || this.#isConditional || this.#turn !== undefined) return undefined;
    return this.#lines.isBusy(row) ? new Overtaken(row) : undefined;
  }

  /** Waits until the walk may try again. @returns whether it waited @throws LineUnavailable */
  async take(row: RowName): Promise<boolean> {
    if (this.#isConditional && !this.#hasLost) {
      this.#hasLost = true;
      return false;
    }
    this.#turn ??= this.#lines.turn(this.#request.onGone?.bind(this.#request));
    await this.#turn.take(row);
    return true;
  }

  release(): void {
    this.#turn?.release();
  }
}
