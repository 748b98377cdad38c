/**
 * The tables and collections of accounts and credentials. Passwords, keys, tokens, cookies and codes are stored as digests; with 256 random
 * bits, a slow hash would add nothing. The only stored secret is the private half of each signing key, which Comity needs to sign.
 */
import { hash } from 'node:crypto';
import { Type } from 'typebox';
import { accountDefaults, resolveAccounts } from '../config/accounts.ts';
import { resolveBuiltIn } from '../config/collections.ts';
import { hostGlobCharactersMax } from '../config/tunnel.ts';
import type { Collection } from '../model/collection.ts';
import { type Scope, scopes } from '../model/principal.ts';
import { type Change, keptRow, type MaybePromise, type Row, type Store } from '../store/store.ts';

/** Served as `/users`: id, `UserFields`, createdAt, updatedAt. `owner` is the id itself. */
export const usersTable = 'users';

export type UserFields = {
  /** In the form of `normalizeEmail`; unique. */
  readonly email: string;
  readonly name?: string;
  readonly emailVerified: boolean;
  readonly roles: readonly string[];
  readonly scopes: readonly Scope[];
  readonly tenant?: string;
  /** Comity refuses all credentials of a disabled account. */
  readonly disabled: boolean;
};

export type User = UserFields & {
  readonly id: string;
  readonly createdAt: string;
  readonly updatedAt: string;
};

/** Members of an account that the application does not declare. */
export const ownAccountMembers: Readonly<Record<keyof User, true>> = {
  ...{ id: true, email: true, name: true, emailVerified: true, roles: true, scopes: true },
  ...{ tenant: true, disabled: true, createdAt: true, updatedAt: true },
};

/** The fields that the application declares, as the account has them. */
export function fieldsOfUser(user: User): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(user).filter(([name]) => !Object.hasOwn(ownAccountMembers, name)));
}

/** The names of fields of the application that differ. */
export function changedFields(before: User, after: User): readonly string[] {
  const [from, to] = [fieldsOfUser(before), fieldsOfUser(after)];
  const names = new Set([...Object.keys(from), ...Object.keys(to)]);
  return [...names].filter((name) => JSON.stringify(from[name]) !== JSON.stringify(to[name]));
}

/**
 * An account as it is stored: the members of Comity, and beside them the fields of the application.
 * @param doc of a row of `usersTable`
 */
export function readUser(doc: string): User {
  const stored = JSON.parse(doc) as User;
  return { ...stored, ...accountDefaults, ...stored };
}

/** Makes a unit depend on an account that it does not change. */
export function unchanged({ id, rev }: Row): Change {
  return { table: usersTable, id, expect: { rev }, next: null, stays: true };
}

/** By user id. Every login rewrites the row, so that a login and a password change never overlap unnoticed. */
export const passwordsTable = 'passwords';

/** `hash`: a PHC string of argon2id; null for an account without a password, which signs in by a provider. */
type PasswordRow = { readonly hash: string | null; readonly changedAt: string };

/** By session id `ses_...`; `owner` is the user. Logout removes the row. */
export const sessionsTable = 'sessions';

/** Served as `/keys`, by id `key_...`; `owner` is the principal that the key acts for. */
export const keysTable = 'keys';

/** By the base64url SHA-256 of a key: the key's id and grant, and the end of a key that was rotated. */
export const keySecretsTable = 'key_secrets';

/** One row: all key pairs that sign access tokens, so that a rotation is one compare-and-swap. */
export const signingKeysTable = 'signing_keys';

/** By the base64url SHA-256 of a mailed code; single use. `owner` is the user. */
export const mailCodesTable = 'mail_codes';

/** By the base64url SHA-256 of issuer and subject: the account of an identity at a provider. `owner` is the user. */
export const identitiesTable = 'identities';

/** By the base64url SHA-256 of `state`: pending sign-ins at a provider; single use. */
export const signInsTable = 'sign_ins';

export const auditTable = 'audit';

// The collections that the program brings itself: accounts, API keys and the audit trail. They are declared like those of users, so lists,
// QUERY, patches, conditions and OPTIONS are the same for them.

const nameCharactersMax = 200;
const scope = Type.Union(scopes.map((name) => Type.Literal(name)));

/** Accounts without fields of an application. */
export const usersCollection: Collection = resolveAccounts(undefined).users;

/** A key's own list is read with every verification, and kept with every one that is remembered. */
const keyHostGlobsMax = 100;
const hostGlobs = (description: string) =>
  Type.Array(Type.String({ minLength: 1, maxLength: hostGlobCharactersMax }), {
    maxItems: keyHostGlobsMax,
    description,
  });

export const keysCollection: Collection = resolveBuiltIn('keys', {
  description:
    'API keys. The response that creates or rotates a key shows it once; Comity stores only its digest.',
  schema: Type.Object({
    name: Type.String({ minLength: 1, maxLength: nameCharactersMax }),
    kind: Type.Union([Type.Literal('secret'), Type.Literal('publishable')]),
    scopes: Type.Optional(
      Type.Array(scope, {
        uniqueItems: true,
        description:
          'Must be scopes of the caller. Default: `read` and `write`. A publishable key has only `read`.',
      }),
    ),
    /** Without it, its owner's alone. */
    tunnel: Type.Optional(
      Type.Object(
        {
          mode: Type.Optional(
            Type.Union([Type.Literal('enforce'), Type.Literal('report')], {
              default: 'enforce',
              description: '`report`: Comity permits and logs connections that the lists would refuse.',
            }),
          ),
          allow: Type.Optional(
            hostGlobs('Permitted hosts: `api.example.com`, `*.example.com`, `192.0.2.1`, `*`. Default: all.'),
          ),
          deny: Type.Optional(hostGlobs('Refused hosts, even if `allow` permits them.')),
        },
        {
          additionalProperties: false,
          description:
            'Hosts that the key may tunnel to, in addition to the rules for its owner. Requires the scope `tunnel`.',
        },
      ),
    ),
    expiresAt: Type.Optional(
      Type.String({
        format: 'date-time',
        description: 'Must be in the future, and not after the expiry of the key that creates it.',
      }),
    ),
    /** The first characters, so that people know which key it is. */
    prefix: Type.Optional(Type.String()),
    /** The key that it was made with: revoking that one ends this one too. */
    madeBy: Type.Optional(Type.String()),
    lastUsedAt: Type.Optional(Type.String({ format: 'date-time' })),
  }),
  access: { read: 'owner', create: 'principal', update: 'owner', delete: 'owner' },
  unpatchable: ['kind', 'scopes', 'tunnel', 'prefix', 'madeBy', 'lastUsedAt'],
  examples: [{ name: 'Nightly import', kind: 'secret', scopes: ['read', 'write'] }],
});

export const auditCollection: Collection = resolveBuiltIn('audit', {
  description: 'The audit trail: changes of accounts and keys, and who made them.',
  schema: Type.Object({
    type: Type.String(),
    actor: Type.Optional(
      Type.Object({
        kind: Type.String(),
        id: Type.Union([Type.String(), Type.Null()]),
        keyId: Type.Optional(Type.String()),
      }),
    ),
    requestId: Type.Optional(Type.String()),
    subject: Type.Optional(Type.String()),
    address: Type.Optional(Type.String()),
    detail: Type.Optional(Type.Object({}, { additionalProperties: true })),
  }),
  access: {
    read: 'administrator',
    create: 'administrator',
    update: 'administrator',
    delete: 'administrator',
  },
  indexes: ['type', 'actor.id', 'subject'],
  search: ['type', 'actor', 'subject', 'address'],
});

/** SHA-256 in base64url. */
export function digestOf(secret: string): string {
  return hash('sha256', secret, 'base64url');
}

export type StoredPassword = PasswordRow & { readonly row: Row };

export function readPassword(
  store: Pick<Store, 'read'>,
  userId: string,
): MaybePromise<StoredPassword | undefined> {
  const row = store.read(passwordsTable, userId);
  return row instanceof Promise ? row.then(stored) : stored(row);
}

function stored(row: Row | undefined): StoredPassword | undefined {
  return row === undefined ? undefined : { ...(JSON.parse(row.doc) as PasswordRow), row };
}

/** @param before undefined if the account has no such row yet @param at milliseconds since the epoch */
export function passwordChange(
  userId: string,
  before: StoredPassword | undefined,
  hash: string | null,
  at: number,
): Change {
  const changedAt =
    before !== undefined && before.hash === hash ? before.changedAt : new Date(at).toISOString();
  const doc: PasswordRow = { hash, changedAt };
  return {
    table: passwordsTable,
    id: userId,
    expect: before === undefined ? { absent: true } : { rev: before.row.rev },
    next: keptRow(JSON.stringify(doc), userId, before?.row.createdAt ?? at, at),
  };
}
