/** Finds the keys of an account and their texts, and removes them when the account is deleted or its keys may be a stranger's. */
import { ownerField } from '../../model/field.ts';
import { byId } from '../../model/filter.ts';
import type { Change, Row, Store } from '../../store/store.ts';
import { keySecretsTable, keysTable } from '../account-tables.ts';
import type { Key, KeySecret } from './key-rows.ts';

export const keysPerUnitMax = 50;

export type KeysOfOwner = {
  removal(owner: string): Promise<readonly Change[]>;
  clear(owner: string): Promise<void>;
};

/** Units of one removal, which also catches keys that are created meanwhile. */
const unitsMax = 1000;

/** @param entryOf creates the audit entry of a revocation */
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

/** Texts of one key; `rotate` removes those beyond it that expire first. */
export const secretsOfKeyMax = 10;

export type StoredSecret = KeySecret & { readonly row: Row };

export type SecretsOfKey = {
  find(key: string): Promise<readonly StoredSecret[]>;
  removal(key: string): Promise<readonly Change[]>;
};

export function createSecretsOfKey(store: Pick<Store, 'plan' | 'read'>): SecretsOfKey {
  async function find(key: string): Promise<readonly StoredSecret[]> {
    const plan = store.plan({
      table: keySecretsTable,
      filter: { op: 'eq', field: ownerField, value: key },
      sort: byId,
      limit: secretsOfKeyMax * 2,
    });
    const { docs } = await plan.page({ from: 'start' });
    const found = await Promise.all(
      docs.map(async (doc) => {
        const secret = JSON.parse(doc) as KeySecret;
        const row = await store.read(keySecretsTable, secret.digest);
        // The text may have been removed or rotated since the page was read; a commit that expects the revision detects later changes.
        return row === undefined ? [] : [{ ...(JSON.parse(row.doc) as KeySecret), row }];
      }),
    );
    return found.flat();
  }

  return {
    find,
    async removal(key) {
      return (await find(key)).map(({ digest, row }) => ({
        table: keySecretsTable,
        id: digest,
        expect: { rev: row.rev },
        next: null,
      }));
    },
  };
}
