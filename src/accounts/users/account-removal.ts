/**
 * Removes what a deleted account leaves: its password, sessions, identities at providers, mailed codes, and its keys with their secrets. All
 * of it is void from the moment that the account is removed, because every verifier reads the account. It is removed in the unit of the
 * deletion as far as that stays small, the rest right after.
 *
 * What the account created in the collections of the application stays.
 */
import { ownerField } from '../../model/field.ts';
import { byId } from '../../model/filter.ts';
import { pagesOf } from '../../store/in-batches.ts';
import type { Change, Plan, Store } from '../../store/store.ts';
import { identitiesTable, mailCodesTable, passwordsTable, usersTable } from '../account-tables.ts';
import { createKeysOfOwner, keysPerUnitMax } from '../keys/key-rows.ts';
import { secondFactorsTable } from '../second-factor/factor-row.ts';
import type { Sessions } from '../sessions/sessions.ts';

/** Rows of each kind that go in one unit. */
const removedPerUnitMax = keysPerUnitMax;
/** Units after the deletion; each removes up to `removedPerUnitMax` of each kind, and a lost race repeats one. */
const unitsMax = 1000;

export type AccountRemoval = {
  /**
   * Changes that remove what the account leaves, up to `removedPerUnitMax` of each kind.
   * @param entryOf the entry of the audit trail about the revocation of a key
   */
  changes(user: string, entryOf: (key: string) => Change): Promise<readonly Change[]>;
  /** Codes mailed to the account, which a change of its address and its disabling make void. */
  codes(user: string): Promise<readonly Change[]>;
  /** Removes what is left of an account that is gone; does nothing for one that is not. */
  clear(user: string, entryOf: (key: string) => Change): Promise<void>;
};

export function createAccountRemoval(store: Store, sessions: Pick<Sessions, 'endOfUser'>): AccountRemoval {
  const codes = (user: string) => removalOfOwned(store, mailCodesTable, user);

  async function changes(user: string, entryOf: (key: string) => Change): Promise<readonly Change[]> {
    const parts = await Promise.all([
      removalOf(store, passwordsTable, user),
      removalOf(store, secondFactorsTable, user),
      sessions.endOfUser(user, null).then((ends) => ends.slice(0, removedPerUnitMax)),
      removalOfOwned(store, identitiesTable, user),
      codes(user),
      createKeysOfOwner(store, entryOf).removal(user),
    ]);
    return parts.flat();
  }

  return {
    changes,
    codes,
    async clear(user, entryOf) {
      for (let unit = 0; unit < unitsMax; unit += 1) {
        if ((await store.read(usersTable, user)) !== undefined) return;
        const left = await changes(user, entryOf);
        if (left.length === 0) return;
        await store.commit({ changes: left, events: [] });
      }
    },
  };
}

/** The removal of a row, where there is one. */
async function removalOf(store: Store, table: string, id: string): Promise<readonly Change[]> {
  const row = await store.read(table, id);
  return row === undefined ? [] : [{ table, id, expect: { rev: row.rev }, next: null }];
}

/** Finds rows by an index and one by one, since what such a row holds is the business of its writer. */
async function removalOfOwned(store: Store, table: string, owner: string): Promise<readonly Change[]> {
  const filter = { op: 'eq', field: ownerField, value: owner } as const;
  const plan = store.plan({ table, filter, sort: byId, limit: 1 });
  const ids = await firstIds(plan);
  const removals = await Promise.all(ids.map((id) => removalOf(store, table, id)));
  return removals.flat();
}

async function firstIds(plan: Plan): Promise<readonly string[]> {
  const ids: string[] = [];
  for await (const { last } of pagesOf(plan)) {
    if (last !== null) ids.push(String(last[0]));
    if (ids.length >= removedPerUnitMax) break;
  }
  return ids;
}
