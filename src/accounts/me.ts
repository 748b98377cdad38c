/**
 * GET /auth/me (§5.1): who the caller is to the program, and by what credential. The response is never cached and has no validators: it
 * changes with the account, the session and the key together.
 */
import type { ResolvedAccounts } from '../config/accounts.ts';
import { actionResource } from '../kernel/action.ts';
import { type Item, named } from '../kernel/documentation.ts';
import type { Ask, Resource } from '../kernel/resource.ts';
import { type Authenticated, operatorId, type Principal, type Scheme, scopes } from '../model/principal.ts';
import { createViews, seenBy, type View } from '../resources/collection/view.ts';
import type { AccountParts } from './account-parts.ts';
import { accountId, accountsTag, anyCredential, exampleEmail } from './account-schemas.ts';
import { readUser, type User, usersTable } from './account-tables.ts';

type Me = {
  readonly id: string;
  /** `key`: of no account. `external`: of a trusted issuer. `administrator`: the administrator key. */
  readonly kind: 'user' | 'key' | 'administrator' | 'external';
  readonly email?: string;
  readonly name?: string;
  readonly roles: readonly string[];
  readonly scopes: readonly string[];
  readonly tenant: string | null;
  /** The roles that the caller gives to accounts; absent: none. */
  readonly grants?: readonly string[];
  /** The fields of the account that the application declares and the caller sees. */
  readonly fields?: Readonly<Record<string, unknown>>;
  readonly authenticatedBy: Scheme;
};

const texts = { type: 'array', items: { type: 'string' } };

function outputOf({ users, fieldNames }: ResolvedAccounts) {
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
      grants: {
        ...texts,
        description:
          'Roles that the caller gives to accounts; of an administrator, those that the declaration names.',
      },
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

export function meResource(parts: AccountParts): Resource {
  const { base, settings, accounts } = parts;
  const view = createViews(accounts.users);
  return actionResource(
    {
      method: 'GET',
      path: `${base}/auth/me`,
      tag: accountsTag,
      name: 'Me',
      id: 'readMe',
      summary: 'Read the caller',
      output: outputOf(accounts),
      codes: [],
      permission: anyCredential,
      handler: async (ask) => ({ content: await readCaller(parts, view, ask) }),
    },
    settings,
  );
}

async function readCaller(
  { store, accounts: { fieldNames }, administering }: AccountParts,
  view: (principal: Principal) => View,
  { principal, known }: Ask,
): Promise<Me> {
  if (principal.kind === 'anonymous' || known === undefined)
    throw new Error('the caller requires a verified credential');
  const isPerson = known.scheme !== 'issuer' && principal.id !== operatorId;
  const row = !isPerson ? undefined : await store.read(usersTable, principal.id);
  const user = row === undefined ? undefined : readUser(row.doc);
  const grants = administering.rolesGivenBy(principal);
  const own = grants.length === 0 ? {} : { grants };
  if (row === undefined || fieldNames.size === 0) return describe(principal, known.scheme, user, own);
  const seen = JSON.parse(seenBy(view(principal), row.doc, row.owner).doc) as object;
  const fields = Object.fromEntries(Object.entries(seen).filter(([name]) => fieldNames.has(name)));
  return describe(principal, known.scheme, user, { ...own, fields });
}

function describe(
  principal: Authenticated,
  scheme: Scheme,
  user: User | undefined,
  further: Pick<Me, 'fields' | 'grants'>,
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
