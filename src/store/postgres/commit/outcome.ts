/** What a batch came to: one outcome a unit, and what other parts of the program follow. */
import type { Commit } from '../../store.ts';

/** `error` where the unit's own values were at fault, or storage failed. */
export type Outcome = { readonly commit: Commit } | { readonly error: unknown };

export type Made = {
  readonly outcomes: readonly Outcome[];
  /** Numbers of the tables that were changed, each with the last revision that did. */
  readonly touched: ReadonlyMap<number, number>;
};

/** Two batches as one: of a table that both changed, the later revision counts. */
export function joined(first: Made, second: Made): Made {
  return {
    outcomes: [...first.outcomes, ...second.outcomes],
    touched: new Map([...first.touched, ...second.touched]),
  };
}

/** Every unit comes to the same error. */
export function failed(units: number, error: unknown): Made {
  return { outcomes: Array.from({ length: units }, () => ({ error })), touched: new Map() };
}
