/** Commits a change of an account; computes it again whenever another commit overtook it. */
import { overtaken } from '../store/lines.ts';
import type { Commit, RowName, Store, Unit } from '../store/store.ts';

export type Attempted<T> =
  | { readonly changes: Unit['changes']; readonly result: T }
  | { readonly refused: T };

/**
 * @param row the changed row, if known: changes of one row are made in turn
 * @param attempt computes the unit from the rows, or refuses; called again after each lost race
 * @param failed computes the result if the unit broke a rule of the store, such as a unique field
 * @throws StoreUnavailable
 */
export function commitRetried<T>(
  store: Pick<Store, 'commit' | 'lines'>,
  row: RowName | undefined,
  attempt: () => Promise<Attempted<T>>,
  failed: (commit: Exclude<Commit, { outcome: 'committed' | 'superseded' }>) => T,
): Promise<T> {
  return store.lines.change(row, async () => {
    const attempted = await attempt();
    if ('refused' in attempted) return attempted.refused;
    const unit = { changes: attempted.changes, events: [] };
    const commit = await store.commit(unit);
    if (commit.outcome === 'committed') return attempted.result;
    return commit.outcome === 'superseded' ? overtaken(unit, commit) : failed(commit);
  });
}
