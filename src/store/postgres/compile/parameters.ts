/**
 * The parameters of one statement, in the order of their marks. Every mark has its type, so no type is inferred, and the text does not
 * depend on the values.
 * A prepared statement hides its values from the planner behind scalar subselects: its plan is then the same for all values, which bounded
 * reads rely on (steering.ts), and the server, which gains nothing from planning again, keeps it (it planned `id = ANY ($1)` each time, for
 * 47 µs of 66). A statement that runs once shows its values.
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
  | 'tsquery'
  | 'text[]'
  | 'float8[]'
  | 'bigint[]'
  | 'int[]';

/** A known value, one of the filter's, or one of the position's. */
export type Parameter = Bindable | ValueSlot | Slot;

export class Parameters {
  readonly list: Parameter[] = [];
  readonly #hidden: boolean;
  readonly #slots = new Map<number, string>();

  constructor(hidden: boolean) {
    this.#hidden = hidden;
  }

  /** Adds a known value. @returns its mark */
  add(value: Bindable, type: ParameterType): string {
    this.list.push(value);
    return this.#mark(type);
  }

  /** Adds a value of the filter. @returns its mark */
  addValue(at: number, type: ParameterType): string {
    this.list.push({ value: at });
    return this.#mark(type);
  }

  /** Adds a value of the position, once per slot. @returns its mark */
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
    // Without the outer cast `= ANY ((SELECT ...))` would compare with the rows of the subselect.
    return type.endsWith('[]') ? `(SELECT ${mark})::${type}` : `(SELECT ${mark})`;
  }
}

/** Fills in the values of the filter, in a statement without a position. */
export function bindValues(list: readonly Parameter[], values: readonly Bindable[]): readonly Bindable[] {
  return list.map((entry) => {
    if (!isSlot(entry)) return entry;
    if ('value' in entry) return values[entry.value] ?? null;
    throw new TypeError('a statement without a position must not have slots of one');
  });
}

export function isSlot(entry: Parameter): entry is ValueSlot | Slot {
  return typeof entry === 'object' && entry !== null && !Array.isArray(entry);
}
