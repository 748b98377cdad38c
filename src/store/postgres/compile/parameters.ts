/**
 * The parameters of one statement, in the order of their marks. Every mark carries its type, so that no type is ever inferred,
 * and the text of a statement says nothing of the values.
 *
 * A statement that is prepared and run many times hides its values from the planner behind scalar subselects: its plan is then
 * the same whatever the values are, which bounded reads rely on (steering.ts), and the server, which sees nothing to gain
 * from planning anew, keeps it (it planned `id = ANY ($1)` each time, for 47 µs of 66). One that is run once shows them.
 */
import type { Slot } from '../../keyset.ts';
import type { Bindable } from '../connection/connection.ts';

export type ParameterType =
  | 'text'
  | 'float8'
  | 'bigint'
  | 'int'
  | 'jsonb'
  | 'text[]'
  | 'float8[]'
  | 'bigint[]'
  | 'int[]';

export class Parameters {
  readonly list: (Bindable | Slot)[] = [];
  readonly #hidden: boolean;
  readonly #slots = new Map<number, string>();

  constructor(hidden: boolean) {
    this.#hidden = hidden;
  }

  /** The mark that stands for the value. */
  add(value: Bindable, type: ParameterType): string {
    this.list.push(value);
    return this.#mark(type);
  }

  /** The mark that stands for the value that a position has at the slot, the same for each use. */
  addSlot(slot: number, type: ParameterType): string {
    const kept = this.#slots.get(slot);
    if (kept !== undefined) return kept;
    this.list.push({ slot });
    const mark = this.#mark(type);
    this.#slots.set(slot, mark);
    return mark;
  }

  #mark(type: ParameterType): string {
    const mark = `$${this.list.length}::${type}`;
    if (!this.#hidden) return mark;
    // Without the outer cast `= ANY ((SELECT ...))` would be a comparison with the rows of the subselect.
    return type.endsWith('[]') ? `(SELECT ${mark})::${type}` : `(SELECT ${mark})`;
  }
}

/** Whether the entry is filled in from a position. */
export function isSlot(entry: Bindable | Slot): entry is Slot {
  return typeof entry === 'object' && entry !== null && !Array.isArray(entry);
}
