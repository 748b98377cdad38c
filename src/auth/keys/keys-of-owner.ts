/** All keys of an account with their texts, to be removed when the account goes or when a stranger may have made them. */
import { ownerField } from '../../model/field.ts';
import { byId } from '../../model/filter.ts';
import type { Change, Store } from '../../store/store.ts';
import { keysTable } from '../tables.ts';
import type { Key } from './key-rows.ts';
import { createSecretsOfKey } from './secrets-of-key.ts';

/** Keys that are removed in one unit. */
export const keysPerUnitMax = 50;

export type KeysOfOwner = {
  /** Changes that remove up to `keysPerUnitMax` of them. */
  removal(owner: string): Promise<readonly Change[]>;
  /** Removes them all, unit by unit. */
  clear(owner: string): Promise<void>;
};

/** Units of one clearing: whoever makes keys meanwhile has a key, which goes with the next unit. */
const unitsMax = 1000;

/** @param entryOf the entry of the audit trail about the revocation of a key */
export function createKeysOfOwner(
  store: Pick<Store, 'plan' | 'read' | 'commit'>,
  entryOf: (key: string) => Change,
): KeysOfOwner {
  const secrets = createSecretsOfKey(store);

  async function removal(owner: string): Promise<readonly Change[]> {
    const { docs } = await store
      .plan({
        table: keysTable,
        filter: { op: 'eq', field: ownerField, value: owner },
        sort: byId,
        limit: keysPerUnitMax,
      })
      .page({ from: 'start' });
    const parts = await Promise.all(
      docs.map(async (doc) => {
        const { id } = JSON.parse(doc) as Key;
        const row = await store.read(keysTable, id);
        if (row === undefined) return [];
        const own: Change = { table: keysTable, id, expect: { rev: row.rev }, next: null };
        return [own, ...(await secrets.removal(id)), entryOf(id)];
      }),
    );
    return parts.flat();
  }

  return {
    removal,
    async clear(owner) {
      for (let unit = 0; unit < unitsMax; unit += 1) {
        const changes = await removal(owner);
        if (changes.length === 0) return;
        await store.commit({ changes, events: [] });
      }
    },
  };
}
