/**
 * Whom an owner of something stands for when it does not ask itself (§6): what a webhook endpoint is told, it is told for its owner, as the
 * owner is now, and never beyond the scopes of the credential that the endpoint was made with.
 *
 * The end of a credential is not the end of its owner: an API key that expired still owns what it made. One that was revoked is gone.
 */
import { type Authenticated, authenticated, operatorId, type Scope } from '../model/principal.ts';
import type { Store } from '../store/store.ts';
import { administrator } from './admin-key.ts';
import { principalOf } from './sessions/user-principal.ts';
import { keysTable, type User, usersTable } from './tables.ts';

const accountIdPrefix = 'usr_';
const keyIdPrefix = 'key_';

/**
 * @returns undefined for an owner who is gone or disabled
 * @throws StoreUnavailable
 */
export type OwnerPrincipal = (
  owner: string | null,
  scopes: readonly Scope[],
) => Promise<Authenticated | undefined>;

export function createOwnerPrincipal(store: Pick<Store, 'read'>): OwnerPrincipal {
  return async (owner, scopes) => {
    if (owner === null) return undefined;
    if (owner === operatorId) {
      return scopes.includes('admin') ? administrator : authenticated({ id: owner, scopes });
    }
    if (owner.startsWith(accountIdPrefix)) {
      const row = await store.read(usersTable, owner);
      return row === undefined || row.deletedAt !== null
        ? undefined
        : principalOf(JSON.parse(row.doc) as User, scopes);
    }
    if (owner.startsWith(keyIdPrefix)) {
      const row = await store.read(keysTable, owner);
      return row === undefined ? undefined : authenticated({ id: owner, scopes });
    }
    // Somebody of a trusted issuer, whose roles and tenant only its tokens tell.
    return authenticated({ id: owner, scopes });
  };
}
