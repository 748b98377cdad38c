/**
 * The parameters of one statement, in the order of their marks. Every mark carries its type, so that no type is ever inferred,
 * and the text of a statement says nothing of the values.
 *
 * A statement that is prepared and run many times hides its values from the planner behind scalar subselects: its plan is then
 * the same whatever the values are, which bounded reads rely on (steering.ts), and the server, which sees nothing to gain
 * from planning anew, keeps it (it planned `id = ANY ($1)` each time, for 47 µs of 66). One that is run once shows them.
 */
import type { ValueSlot } from '../../filter-shape.ts';
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

/** A value that is known already, one of the filter's, or one of the position's. */
export type Parameter = Bindable | ValueSlot | Slot;

export class Parameters {
  readonly list: Parameter[] = [];
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

  /** The mark that stands for a value of the filter. */
  addValue(at: number, type: ParameterType): string {
    this.list.push({ value: at });
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

/** Fills in the values of the filter, in a statement that has no position. */
export function bindValues(list: readonly Parameter[], values: readonly Bindable[]): readonly Bindable[] {
  return list.map((entry) => {
    if (!isSlot(entry)) return entry;
    if ('value' in entry) return values[entry.value] ?? null;
    throw new TypeError('a statement without a position has a slot of one');
  });
}

/** Whether the entry is filled in later. */
export function isSlot(entry: Parameter): entry is ValueSlot | Slot {
  return typeof entry === 'object' && entry !== null && !Array.isArray(entry);
}
