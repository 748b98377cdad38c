/**
 * Verifies tokens of the portal (§5.10). A token is valid as long as its link is stored and has not ended, and as long as the key or the
 * account that created the link is an administrator's, so that revoking a stolen key also ends the sessions that the thief has opened.
 * The session acts for the tenant: it has no rights of the creator.
 */
import { isAdministrator, tenantPrincipal } from '../../model/principal.ts';
import type { Services } from '../../store/capabilities.ts';
import type { Row } from '../../store/store.ts';
import { keysTable, readUser, usersTable } from '../account-tables.ts';
import { digestOf } from '../digest.ts';
import { grantOf, type Key } from '../keys/key-rows.ts';
import { judgeGrant } from '../keys/key-verifier.ts';
import type { FactorRule } from '../second-factor/factor-rule.ts';
import { principalOf } from '../sessions/user-principal.ts';
import type { Bad, Basis, Verdict } from '../verdict.ts';
import {
  isPortalToken,
  type PortalLink,
  type PortalSecret,
  portalLinksCollection,
  portalSecretsTable,
  readPortalSecret,
} from './portal-rows.ts';

type PortalServices = Pick<Services, 'store' | 'clock'> & { readonly factorRule: FactorRule };

/** A valid token, with the rows that it rests on. */
export type ValidToken = {
  readonly secret: Row;
  readonly row: Row;
  readonly link: PortalLink;
  /** Milliseconds since the epoch. */
  readonly endsAt: number;
  readonly basis: readonly Basis[];
};

const unusable: Bad = { problem: 'invalid_token' };
const userIdPrefix = 'usr_';
/** The use of a key by the sessions of its links is not a use of the key. */
const uses = { note: () => undefined, intervalMs: Number.POSITIVE_INFINITY };

/** @returns `Verifiers.portal` */
export function createPortalVerifier(services: PortalServices): (token: string) => Promise<Verdict> {
  return async (token) => {
    const valid = await validToken(services, token, 'session');
    if (valid === undefined) return unusable;
    const { link, endsAt: expiresAt, basis } = valid;
    return {
      principal: tenantPrincipal(link.tenant),
      ...{ scheme: 'portal', session: link.id, key: null, expiresAt, basis },
    };
  };
}

/** @returns undefined for a token that is unknown, used, ended or revoked, or of another kind */
export async function validToken(
  services: PortalServices,
  token: string,
  kind: PortalSecret['kind'],
): Promise<ValidToken | undefined> {
  if (!isPortalToken(token, kind)) return undefined;
  const { store, clock } = services;
  const secret = await store.read(portalSecretsTable, digestOf(token));
  if (secret === undefined) return undefined;
  const row = await store.read(portalLinksCollection.name, readPortalSecret(secret).link);
  if (row === undefined) return undefined;
  const link = JSON.parse(row.doc) as PortalLink;
  const maker = await judgeMaker(services, link, row.owner);
  if (maker === undefined) return undefined;
  const endsAt = Math.min(Date.parse(link.expiresAt), maker.expiresAt);
  if (endsAt <= clock()) return undefined;
  const basis = [
    { table: portalSecretsTable, id: secret.id, rev: secret.rev },
    { table: portalLinksCollection.name, id: row.id, rev: row.rev },
    ...maker.basis,
  ];
  return { secret, row, link, endsAt, basis };
}

type Maker = { readonly expiresAt: number; readonly basis: readonly Basis[] };

/** @returns undefined if the creator is no administrator any more */
async function judgeMaker(
  services: PortalServices,
  { madeBy }: PortalLink,
  owner: string | null,
): Promise<Maker | undefined> {
  const { store, clock, factorRule } = services;
  if (madeBy !== undefined) {
    const row = await store.read(keysTable, madeBy);
    if (row === undefined || row.deletedAt !== null) return undefined;
    const grant = grantOf(JSON.parse(row.doc) as Key, row.owner);
    const basis = [{ table: keysTable, id: row.id, rev: row.rev }];
    const verdict = await judgeGrant(
      { store, clock, factorRule, uses },
      grant,
      Number.POSITIVE_INFINITY,
      basis,
    );
    return 'principal' in verdict && isAdministrator(verdict.principal) ? verdict : undefined;
  }
  if (owner?.startsWith(userIdPrefix) === true) {
    const row = await store.read(usersTable, owner);
    const principal =
      row === undefined || row.deletedAt !== null ? undefined : principalOf(readUser(row.doc));
    if (row === undefined || principal === undefined || !isAdministrator(principal)) return undefined;
    return { expiresAt: Number.POSITIVE_INFINITY, basis: [{ table: usersTable, id: row.id, rev: row.rev }] };
  }
  // The administrator key, or a token of another issuer: both can be judged only when they are sent.
  return { expiresAt: Number.POSITIVE_INFINITY, basis: [] };
}
