/**
 * POST /auth/refresh (§2.3, §5.4): a refresh token for the next one and a new access token. It is its own credential, so nothing else
 * is asked for. Whatever is wrong with it, the answer is the same 401.
 */

import { Type } from 'typebox';
import type { ResolvedAccounts } from '../config/accounts.ts';
import { parseIdempotencyKey } from '../http/syntax/idempotency-key.ts';
import { actionResource } from '../kernel/action.ts';
import { type Item, named } from '../kernel/documentation.ts';
import type { Ask, Resource } from '../kernel/resource.ts';
import { type Authenticated, operatorId, type Principal, type Scheme, scopes } from '../model/principal.ts';
import { createViews, seenBy, type View } from '../resources/collection/view.ts';
import type { Store } from '../store/store.ts';
import {
  type AccountRouteOptions,
  accountId,
  accountsTag,
  anyCredential,
  exampleEmail,
  tokensOutput,
} from './account-schemas.ts';
import { readUser, type User, usersTable } from './account-tables.ts';
import { fromOf } from './fact-of-ask.ts';
import type { Sessions } from './sessions/sessions.ts';

export type RefreshOptions = AccountRouteOptions & { readonly sessions: Pick<Sessions, 'refresh'> };

const schema = Type.Object({ refreshToken: Type.String() });

export function refreshResource({ base, sessions, limits, addressOf }: RefreshOptions): Resource {
  return actionResource(
    {
      path: `${base}/auth/refresh`,
      tag: accountsTag,
      noun: 'the renewal of a session',
      ignoresCredentials: true,
      id: 'refresh',
      summary: 'Exchange a refresh token for a new pair of tokens',
      description:
        'A refresh token is exchanged once. For COMITY_REFRESH_REUSE_SECONDS, and as long as the new one is unused for requests with the same Idempotency-Key, it is answered with the same new pair; a later use ends its session in every process immediately.',
      input: { name: 'Refresh', schema, example: { refreshToken: tokensOutput.example.refreshToken } },
      output: tokensOutput,
      codes: ['invalid_token', 'field_invalid'],
      handler: async (ask, { refreshToken }) => {
        const field = ask.request.fields.idempotencyKey;
        const idempotencyKey = field === undefined ? undefined : parseIdempotencyKey(field);
        if (field !== undefined && idempotencyKey === undefined)
          return { refused: { code: 'field_invalid' } };
        const from = fromOf(ask.request, addressOf);
        const refreshed = await sessions.refresh(refreshToken, from, idempotencyKey);
        return refreshed.ok ? { content: refreshed.content } : { refused: { code: 'invalid_token' } };
      },
    },
    limits,
  );
}

type MeOptions = Omit<AccountRouteOptions, 'addressOf'> & {
  readonly store: Pick<Store, 'read'>;
  readonly accounts: Pick<ResolvedAccounts, 'users' | 'fieldNames'>;
};

type Me = {
  readonly id: string;
  /** `key`: of no account. `external`: of a trusted issuer. `administrator`: the administrator key. */
  readonly kind: 'user' | 'key' | 'administrator' | 'external';
  readonly email?: string;
  readonly name?: string;
  readonly roles: readonly string[];
  readonly scopes: readonly string[];
  readonly tenant: string | null;
  /** The fields of the account that the application declares and the caller sees. */
  readonly fields?: Readonly<Record<string, unknown>>;
  readonly authenticatedBy: Scheme;
};

const texts = { type: 'array', items: { type: 'string' } };

function outputOf({ users, fieldNames }: MeOptions['accounts']) {
  if (fieldNames.size === 0) return me({});
  const properties = Object.fromEntries([...fieldNames].map((name) => [name, users.schema.properties[name]]));
  const description = 'Fields of the account that this application declares.';
  return me({ fields: { type: 'object', description, properties } });
}

const me = (further: Item) => ({
  schema: named('Me', {
    description: 'The caller.',
    type: 'object',
    properties: {
      id: { type: 'string' },
      kind: { enum: ['user', 'key', 'administrator', 'external'] },
      email: { type: 'string' },
      name: { type: 'string' },
      roles: texts,
      scopes: texts,
      tenant: { type: ['string', 'null'] },
      ...further,
      authenticatedBy: { enum: ['key', 'token', 'issuer', 'password', 'session-cookie'] },
    },
    required: ['id', 'kind', 'roles', 'scopes', 'tenant', 'authenticatedBy'],
  }),
  example: {
    id: accountId,
    kind: 'user',
    email: exampleEmail,
    name: 'Ada',
    roles: [],
    scopes: ['read', 'write'],
    tenant: null,
    authenticatedBy: 'token',
  } satisfies Me,
});

/**
 * GET /auth/me (§5.1): who the caller is to the program, and by what credential. Never kept by anyone on the way, and without
 * validators: it changes with the account, the session and the key together.
 */
export function meResource(options: MeOptions): Resource {
  const view = createViews(options.accounts.users);
  return actionResource(
    {
      method: 'GET',
      path: `${options.base}/auth/me`,
      tag: accountsTag,
      name: 'Me',
      noun: 'the caller',
      id: 'readMe',
      summary: 'Read the caller',
      output: outputOf(options.accounts),
      codes: [],
      permission: anyCredential,
      handler: async (ask) => ({ content: await whoAsks(options, view, ask) }),
    },
    options.limits,
  );
}

async function whoAsks(
  { store, accounts: { fieldNames } }: MeOptions,
  view: (principal: Principal) => View,
  { principal, known }: Ask,
): Promise<Me> {
  if (principal.kind === 'anonymous' || known === undefined)
    throw new Error('the caller requires a verified credential');
  const isPerson = known.scheme !== 'issuer' && principal.id !== operatorId;
  const row = !isPerson ? undefined : await store.read(usersTable, principal.id);
  const user = row === undefined ? undefined : readUser(row.doc);
  if (row === undefined || fieldNames.size === 0) return describe(principal, known.scheme, user, {});
  const seen = JSON.parse(seenBy(view(principal), row.doc, row.owner).doc) as object;
  const fields = Object.fromEntries(Object.entries(seen).filter(([name]) => fieldNames.has(name)));
  return describe(principal, known.scheme, user, { fields });
}

function describe(
  principal: Authenticated,
  scheme: Scheme,
  user: User | undefined,
  further: Pick<Me, 'fields'>,
): Me {
  return {
    id: principal.id,
    kind: kindOf(principal, scheme, user),
    ...(user === undefined ? {} : { email: user.email }),
    ...(user?.name === undefined ? {} : { name: user.name }),
    roles: [...principal.roles],
    scopes: scopes.filter((scope) => principal.scopes.has(scope)),
    tenant: principal.tenant,
    ...further,
    authenticatedBy: scheme,
  };
}

function kindOf(principal: Authenticated, scheme: Scheme, user: User | undefined): Me['kind'] {
  if (scheme === 'issuer') return 'external';
  if (user !== undefined) return 'user';
  return principal.id === operatorId ? 'administrator' : 'key';
}
