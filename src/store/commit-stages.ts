/**
 * The stages of a commit: what a unit causes beside its own changes, as an ordered list in front of the store's own commit. A stage gets the
 * unit and the commit of the stages behind it. It may add or replace changes, wait, commit again, or act on the outcome; an outcome that it
 * returns numbers the refused change as the unit does that it got.
 *
 * The stages of the program in their order: the generation of endpoints, deliveries (webhooks/sending/sending.ts), messages of subscribers,
 * credentials that end (compose.ts), sealing (secrets/sealed-store.ts), and the lines of rows (lines.ts), which hand the unit to the engine.
 */
import type { Change, Commit, Store, Unit } from './store.ts';

export type CommitUnit = (unit: Unit) => Promise<Commit>;

export type CommitStage = (unit: Unit, commit: CommitUnit) => Promise<Commit>;

/** The store with stages in front of its commit, the first one first. */
export function withStages<S extends Pick<Store, 'commit'>>(store: S, ...stages: readonly CommitStage[]): S {
  const commit = stages.reduceRight<CommitUnit>(
    (next, stage) => (unit) => stage(unit, next),
    (unit) => store.commit(unit),
  );
  return { ...store, commit };
}

/** Refused is the change at this place among those that a stage added: the stage decides what follows. */
export type AddedRefused = { readonly outcome: 'added-refused'; readonly added: number };

/** Commits a unit with the changes that a stage adds behind its own. */
export async function commitAdding(
  unit: Unit,
  added: readonly Change[],
  commit: CommitUnit,
): Promise<Commit | AddedRefused> {
  const own = unit.changes.length;
  const result = await commit({ ...unit, changes: [...unit.changes, ...added] });
  if (result.outcome === 'committed' || result.change < own) return result;
  const change = result.change - added.length;
  return change < own ? { outcome: 'added-refused', added: result.change - own } : { ...result, change };
}
