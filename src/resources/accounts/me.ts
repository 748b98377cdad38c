/**
 * GET /auth/me (§5.1): who the caller is to the program, and by what credential. Never kept by anyone on the way, and without
 * validators: it changes with the account, the session and the key together.
 */
import { readUser, type User, usersTable } from '../../auth/tables.ts';
import type { Scheme } from '../../model/credential.ts';
import { type Authenticated, operatorId, scopes } from '../../model/principal.ts';
import type { Store } from '../../store/store.ts';
import type { Ask, Operation, Representation, Resource, Standing } from '../resource.ts';

export type MeOptions = {
  /** `/api/v1` */
  readonly base: string;
  readonly store: Pick<Store, 'read'>;
};

export type Me = {
  readonly id: string;
  /** `key`: of no account. `external`: of a trusted issuer. `administrator`: the administrator key. */
  readonly kind: 'user' | 'key' | 'administrator' | 'external';
  readonly email?: string;
  readonly name?: string;
  readonly roles: readonly string[];
  readonly scopes: readonly string[];
  readonly tenant: string | null;
  readonly authenticatedBy: Scheme;
};

const standing: Standing = { exists: true, visible: true, permitted: true };

export function meResource(options: MeOptions): Resource {
  const operation: Operation = {
    permission: (principal) => (principal.kind === 'authenticated' ? 'granted' : 'denied'),
    standing: () => standing,
    represent: (ask) => represent(options, ask),
  };
  return {
    pattern: `${options.base}/auth/me`,
    operations: new Map([['GET', operation]]),
    constantFields: [],
    offers: ['application/json'],
  };
}

async function represent(options: MeOptions, ask: Ask): Promise<Representation> {
  const { principal, known } = ask;
  if (principal.kind === 'anonymous' || known === undefined) throw new Error('nobody asks who they are');
  const isPerson = known.scheme !== 'issuer' && principal.id !== operatorId;
  const row = !isPerson ? undefined : await options.store.read(usersTable, principal.id);
  const user = row === undefined ? undefined : readUser(row.doc);
  return {
    content: JSON.stringify(describe(principal, known.scheme, user)),
    mediaType: 'application/json',
    validators: { tag: null, modifiedAt: null },
    cacheControl: 'private, no-store',
  };
}

function describe(principal: Authenticated, scheme: Scheme, user: User | undefined): Me {
  return {
    id: principal.id,
    kind: kindOf(principal, scheme, user),
    ...(user === undefined ? {} : { email: user.email }),
    ...(user?.name === undefined ? {} : { name: user.name }),
    roles: [...principal.roles],
    scopes: scopes.filter((scope) => principal.scopes.has(scope)),
    tenant: principal.tenant,
    authenticatedBy: scheme,
  };
}

function kindOf(principal: Authenticated, scheme: Scheme, user: User | undefined): Me['kind'] {
  if (scheme === 'issuer') return 'external';
  if (user !== undefined) return 'user';
  return principal.id === operatorId ? 'administrator' : 'key';
}
