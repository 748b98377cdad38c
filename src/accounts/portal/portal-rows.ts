/**
 * Rows of the consumers' portal (§5.10). A link in `portal-links` is served and holds no secret. `portal_secrets` has one row for each
 * link: first the digest of the link's token, and after its exchange the digest of the session's token, so that a link opens one session.
 */
import { Type } from 'typebox';
import { resolveBuiltIn } from '../../config/collections.ts';
import type { Collection } from '../../model/collection.ts';
import { type Change, keptRow, type Row } from '../../store/store.ts';
import { digestOf } from '../digest.ts';

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

export type PortalSecret = { readonly kind: 'link' | 'session'; readonly link: string };

/** `updatedAt` is the end of the link, so that retention removes only ended rows. */
export function portalSecretChange(token: string, secret: PortalSecret, at: number, endsAt: number): Change {
  const next = keptRow(JSON.stringify(secret), null, at, endsAt);
  return { table: portalSecretsTable, id: digestOf(token), expect: { absent: true }, next };
}

export function readPortalSecret({ doc }: Row): PortalSecret {
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

export function isPortalToken(text: string, kind: PortalSecret['kind']): boolean {
  return tokenForm.test(text) && text.startsWith(marks[kind]);
}
