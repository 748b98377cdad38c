/**
 * Principals of absent callers: the owner of a resource such as a webhook endpoint (§6), and the caller of a request that was accepted
 * for later. Deliveries to an endpoint use the owner's current rights, limited to the scopes of the credential that created the
 * endpoint. An expired API key still owns its resources; a revoked one does not.
 */
import type { ProblemCode } from '../http/problem-registry.ts';
import type { StoredRequest } from '../kernel/operations/stored-request.ts';
import { idPrefixes } from '../model/id.ts';
import {
  type Authenticated,
  authenticated,
  operatorId,
  type Scope,
  tenantOfId,
  tenantPrincipal,
} from '../model/principal.ts';
import type { Services } from '../store/capabilities.ts';
import type { Store } from '../store/store.ts';
import { keysTable, readUser, usersTable } from './account-tables.ts';
import { administrator } from './admin-key.ts';
import { grantOf, type Key } from './keys/key-rows.ts';
import { judgeGrant } from './keys/key-verifier.ts';
import type { FactorRule } from './second-factor/factor-row.ts';
import { principalOf } from './users/user-row.ts';

/** @returns undefined if the owner was deleted, revoked or disabled @throws StoreUnavailable */
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
    if (owner.startsWith(idPrefixes.account)) {
      const row = await store.read(usersTable, owner);
      return row === undefined || row.deletedAt !== null ? undefined : principalOf(readUser(row.doc), scopes);
    }
    if (owner.startsWith(idPrefixes.key)) {
      const row = await store.read(keysTable, owner);
      return row === undefined ? undefined : authenticated({ id: owner, scopes });
    }
    const tenant = tenantOfId(owner);
    if (tenant !== undefined) return tenantPrincipal(tenant, scopes);
    // A principal of a trusted issuer; only its tokens tell its roles and tenant.
    return authenticated({ id: owner, scopes });
  };
}

/** The caller of an accepted request, as it was authenticated then. */
export type EarlierCaller = NonNullable<StoredRequest['principal']>;

/**
 * Returns the caller's current principal: an account must be enabled and has its current roles and scopes; a key must be neither
 * revoked nor expired. The session may have ended: logout does not cancel accepted requests. The principal of a trusted issuer stays as
 * its token described it.
 * @throws StoreUnavailable
 */
export type PrincipalNow = (
  caller: EarlierCaller,
) => Promise<{ readonly principal: Authenticated } | { readonly problem: ProblemCode }>;

const enrolmentRequired = { problem: 'second_factor_enrolment_required' } as const;

export function createPrincipalNow({ store, clock }: Services, factorRule: FactorRule): PrincipalNow {
  const uses = { note: () => undefined, intervalMs: Number.POSITIVE_INFINITY };
  return async (caller) => {
    const { id, scheme, key = null } = caller;
    if (key !== null) {
      const row = await store.read(keysTable, key);
      if (row === undefined || row.deletedAt !== null) return { problem: 'invalid_api_key' };
      const grant = grantOf(JSON.parse(row.doc) as Key, row.owner);
      const verdict = await judgeGrant(
        { store, clock, factorRule, uses },
        grant,
        Number.POSITIVE_INFINITY,
        [],
      );
      return 'principal' in verdict && verdict.enrolsOnly === true ? enrolmentRequired : verdict;
    }
    if (scheme !== 'issuer' && id.startsWith(idPrefixes.account)) {
      const row = await store.read(usersTable, id);
      const user = row === undefined || row.deletedAt !== null ? undefined : readUser(row.doc);
      const principal = user === undefined ? undefined : principalOf(user);
      if (user === undefined || principal === undefined) return { problem: 'invalid_token' };
      const rest = {
        scheme: 'token',
        session: null,
        key: null,
        expiresAt: Number.POSITIVE_INFINITY,
        basis: [],
      } as const;
      const verdict = await factorRule(user, { principal, ...rest });
      return verdict.enrolsOnly === true ? enrolmentRequired : { principal };
    }
    return { principal: authenticated(caller) };
  };
}
