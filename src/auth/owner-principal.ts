/**
 * Whom somebody stands for who does not ask at this moment. There are two kinds: the owner of something, and the caller of a request
 * that was accepted and is carried out later.
 *
 * An owner (§6): what a webhook endpoint is told, it is told for its owner, as the
 * owner is now, and never beyond the scopes of the credential that the endpoint was made with.
 *
 * The end of a credential is not the end of its owner: an API key that expired still owns what it made. One that was revoked is gone.
 */
import type { ProblemCode } from '../http/problem-registry.ts';
import type { Scheme } from '../model/credential.ts';
import { type Authenticated, authenticated, operatorId, type Scope } from '../model/principal.ts';
import type { Store } from '../store/store.ts';
import { administrator } from './admin-key.ts';
import { grantOf, type Key } from './keys/key-rows.ts';
import { judgeGrant } from './keys/verifier.ts';
import { principalOf } from './sessions/user-principal.ts';
import { keysTable, readUser, usersTable } from './tables.ts';

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
      return row === undefined || row.deletedAt !== null ? undefined : principalOf(readUser(row.doc), scopes);
    }
    if (owner.startsWith(keyIdPrefix)) {
      const row = await store.read(keysTable, owner);
      return row === undefined ? undefined : authenticated({ id: owner, scopes });
    }
    // Somebody of a trusted issuer, whose roles and tenant only its tokens tell.
    return authenticated({ id: owner, scopes });
  };
}

/** Who asked for something that is carried out later, as it was then, and what it was known by. */
export type EarlierCaller = {
  readonly id: string;
  readonly scopes: readonly Scope[];
  readonly roles: readonly string[];
  readonly tenant: string | null;
  readonly scheme?: Scheme;
  /** The API key that was used. */
  readonly key?: string | null;
};

/**
 * Whom the caller stands for now: an account must be enabled and has the roles and scopes that it has by now, a key must be neither revoked
 * nor over. A session may have ended since: to log out is not to call back what was asked for. Of the caller of a trusted
 * issuer only its token told, so it stays as it was.
 * @throws StoreUnavailable
 */
export type PrincipalNow = (
  caller: EarlierCaller,
) => Promise<{ readonly principal: Authenticated } | { readonly problem: ProblemCode }>;

export function createPrincipalNow(options: {
  readonly store: Pick<Store, 'read'>;
  readonly clock: () => number;
}): PrincipalNow {
  const { store } = options;
  const uses = { note: () => undefined, intervalMs: Number.POSITIVE_INFINITY };
  return async (caller) => {
    const { id, scheme, key = null } = caller;
    if (key !== null) {
      const row = await store.read(keysTable, key);
      if (row === undefined || row.deletedAt !== null) return { problem: 'invalid_api_key' };
      const grant = grantOf(JSON.parse(row.doc) as Key, row.owner);
      return judgeGrant({ ...options, uses }, grant, Number.POSITIVE_INFINITY, []);
    }
    if (scheme !== 'issuer' && id.startsWith(accountIdPrefix)) {
      const row = await store.read(usersTable, id);
      const user = row === undefined || row.deletedAt !== null ? undefined : readUser(row.doc);
      const principal = user === undefined ? undefined : principalOf(user);
      return principal === undefined ? { problem: 'invalid_token' } : { principal };
    }
    return { principal: authenticated(caller) };
  };
}
