/** The outcome of a batch: one outcome per unit, and the tables changed. */
import type { Outcome } from '../../group-commit.ts';

export type BatchOutcome = {
  readonly outcomes: readonly Outcome[];
  /** Numbers of the changed tables, each with the last revision that changed it. */
  readonly touched: ReadonlyMap<number, number>;
};

/** Joins two batches: for a table that both changed, the later revision counts. */
export function joinOutcomes(first: BatchOutcome, second: BatchOutcome): BatchOutcome {
  return {
    outcomes: [...first.outcomes, ...second.outcomes],
    touched: new Map([...first.touched, ...second.touched]),
  };
}

export function failBatch(units: number, error: unknown): BatchOutcome {
  return { outcomes: Array.from({ length: units }, () => ({ error })), touched: new Map() };
}
