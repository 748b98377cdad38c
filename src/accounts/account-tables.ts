/**
 * The tables of accounts and credentials. Passwords, keys, tokens, cookies and codes are stored as digests. The only stored secret is
 * the private half of each signing key, which Comity needs to sign.
 */
import { accountDefaults } from '../config/account-members.ts';
import type { Scope } from '../model/principal.ts';

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

/** By user id. Every login rewrites the row, so that a login and a password change never overlap unnoticed. */
export const passwordsTable = 'passwords';

/** `hash`: a PHC string of argon2id; null for an account without a password, which signs in by a provider. */
export type PasswordRow = { readonly hash: string | null; readonly changedAt: string };

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
