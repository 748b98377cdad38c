/** A change of an account that is computed again whenever another was quicker (design §3). */
import type { Commit, Store, Unit } from '../../store/store.ts';

/** Each lost race means that somebody else got through, so this many lost in a row mean a store under siege. */
const attemptsMax = 16;

export type Attempted<T> =
  | { readonly changes: Unit['changes']; readonly result: T }
  | { readonly refused: T };

/**
 * @param attempt reads what stands and computes the unit from it, or refuses; called anew after each lost race
 * @param failed what the caller answers when the unit broke a rule of the store, such as a unique field
 * @throws StoreUnavailable
 * @returns undefined when all attempts lost
 */
export async function commitRetried<T>(
  store: Pick<Store, 'commit'>,
  attempt: () => Promise<Attempted<T>>,
  failed: (commit: Exclude<Commit, { outcome: 'committed' | 'superseded' }>) => T,
): Promise<T | undefined> {
  for (let attempts = 0; attempts < attemptsMax; attempts += 1) {
    const attempted = await attempt();
    if ('refused' in attempted) return attempted.refused;
    const commit = await store.commit({ changes: attempted.changes, events: [] });
    if (commit.outcome === 'committed') return attempted.result;
    if (commit.outcome !== 'superseded') return failed(commit);
  }
  return undefined;
}
