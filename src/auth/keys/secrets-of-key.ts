/** The texts that are good for a key, by an index: for rotation, which limits them, and for revocation, which removes them. */
import { ownerField } from '../../model/field.ts';
import { byId } from '../../model/filter.ts';
import type { Change, Row, Store } from '../../store/store.ts';
import { keySecretsTable } from '../tables.ts';
import type { KeySecret } from './key-rows.ts';

/** A key has no more texts than this; `rotate` removes those beyond it that would end first. */
export const secretsOfKeyMax = 10;

export type StandingSecret = KeySecret & { readonly row: Row };

export type SecretsOfKey = {
  find(key: string): Promise<readonly StandingSecret[]>;
  /** The changes after which no text is good for the key. */
  removal(key: string): Promise<readonly Change[]>;
};

export function createSecretsOfKey(store: Pick<Store, 'plan' | 'read'>): SecretsOfKey {
  async function find(key: string): Promise<readonly StandingSecret[]> {
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
        // It may have ended, or been rotated, since the page was read: whoever commits after this is told.
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
