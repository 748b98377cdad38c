/**
 * Verifies tokens of the portal (§5.10). A token is valid as long as its link is stored and has not ended, and as long as the key or the
 * account that created the link is an administrator's, so that revoking a stolen key also ends the sessions that the thief has opened.
 * The session acts for the tenant: it has no rights of the creator.
 */
import { Type } from 'typebox';
import { resolveBuiltIn } from '../../config/collections.ts';
import type { Collection } from '../../model/collection.ts';
import { idPrefixes } from '../../model/id.ts';
import { isAdministrator, tenantPrincipal } from '../../model/principal.ts';
import type { Services } from '../../store/capabilities.ts';
import { type Change, keptRow, type Row } from '../../store/store.ts';
import { digestOf, keysTable, readUser, usersTable } from '../account-tables.ts';
import { grantOf, type Key } from '../keys/key-rows.ts';
import { judgeGrant } from '../keys/key-verifier.ts';
import type { FactorRule } from '../second-factor/factor-row.ts';
import { principalOf } from '../users/user-row.ts';
import type { Bad, Basis, Verdict } from '../verdict.ts';

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
  if (owner?.startsWith(idPrefixes.account) === true) {
    const row = await store.read(usersTable, owner);
    const principal =
      row === undefined || row.deletedAt !== null ? undefined : principalOf(readUser(row.doc));
    if (row === undefined || principal === undefined || !isAdministrator(principal)) return undefined;
    return { expiresAt: Number.POSITIVE_INFINITY, basis: [{ table: usersTable, id: row.id, rev: row.rev }] };
  }
  // The administrator key, or a token of another issuer: both can be judged only when they are sent.
  return { expiresAt: Number.POSITIVE_INFINITY, basis: [] };
}

// Rows of the consumers' portal (§5.10). A link in `portal-links` is served and holds no secret. `portal_secrets` has one row for each
// link: first the digest of the link's token, and after its exchange the digest of the session's token, so that a link opens one session.

const tenantCharactersMax = 200;
const time = (description: string) => Type.String({ format: 'date-time', description });

export const tenantSchema = Type.String({
  minLength: 1,
  maxLength: tenantCharactersMax,
  description: 'The tenant whose endpoints and deliveries the portal shows.',
});

export const portalLinksCollection: Collection = resolveBuiltIn('portal-links', {
  description:
    'Links to the portal in which the engineers of a tenant manage its webhooks. Only the response that creates a link shows it. Deleting a link ends the session that it opened.',
  schema: Type.Object({
    tenant: tenantSchema,
    expiresAt: time('When the link, or the session that it has opened, ends.'),
    usedAt: Type.Optional(time('When the link opened its session; absent: not yet.')),
    madeBy: Type.Optional(
      Type.String({ description: 'The API key that created it, without which it is not valid.' }),
    ),
  }),
  access: {
    read: 'administrator',
    create: 'administrator',
    update: 'administrator',
    delete: 'administrator',
  },
  indexes: ['tenant'],
  search: ['tenant'],
  examples: [{ tenant: 'acme', expiresAt: '2026-08-01T10:30:00.000Z' }],
});

export type PortalLink = {
  readonly id: string;
  readonly tenant: string;
  /** ISO 8601, as are all times here. */
  readonly expiresAt: string;
  readonly usedAt?: string;
  readonly madeBy?: string;
  readonly createdAt: string;
  readonly updatedAt: string;
};

/** By the base64url SHA-256 of a token. */
export const portalSecretsTable = 'portal_secrets';
/** Removes rows this long after their link has ended, to which the clocks of processes must agree. */
export const portalSecretsRetention = { table: portalSecretsTable, seconds: 3600 } as const;

type PortalSecret = { readonly kind: 'link' | 'session'; readonly link: string };

/** `updatedAt` is the end of the link, so that retention removes only ended rows. */
export function portalSecretChange(token: string, secret: PortalSecret, at: number, endsAt: number): Change {
  const next = keptRow(JSON.stringify(secret), null, at, endsAt);
  return { table: portalSecretsTable, id: digestOf(token), expect: { absent: true }, next };
}

function readPortalSecret({ doc }: Row): PortalSecret {
  return JSON.parse(doc) as PortalSecret;
}

const linkMark = 'pl_';
/** No JWT and no key begins like this. */
export const portalSessionMark = 'ps_';
const marks = { link: linkMark, session: portalSessionMark } as const;
const randomBytes = 32;
/** The mark, and `randomBytes` in base64url. */
const tokenForm = /^p[ls]_[A-Za-z0-9_-]{43}$/;

/** Generates 256 random bits, of which only the SHA-256 is stored; a slow hash would add nothing. */
export function makePortalToken(kind: PortalSecret['kind'], random: (count: number) => Buffer): string {
  return marks[kind] + random(randomBytes).toString('base64url');
}

function isPortalToken(text: string, kind: PortalSecret['kind']): boolean {
  return tokenForm.test(text) && text.startsWith(marks[kind]);
}
