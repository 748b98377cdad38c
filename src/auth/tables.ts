/**
 * The tables behind accounts, and what their rows hold. No secret stands in one: passwords, keys, tokens, cookies and codes are kept as
 * digests. The one exception is the private half of signing keys, which must be used again.
 */
import type { Scope } from '../model/principal.ts';

/** Served as `/users`: id, the members of `UserFields`, createdAt, updatedAt. `owner` is the id itself. */
export const usersTable = 'users';

export type UserFields = {
  /** As `normalizeEmail` writes it; unique. */
  readonly email: string;
  readonly name?: string;
  readonly emailVerified: boolean;
  readonly roles: readonly string[];
  readonly scopes: readonly Scope[];
  readonly tenant?: string;
  /** All credentials of the account are refused. */
  readonly disabled: boolean;
};

export type User = UserFields & {
  readonly id: string;
  readonly createdAt: string;
  readonly updatedAt: string;
};

/** The values of members that an account was not given. */
export const userDefaults = {
  emailVerified: false,
  roles: [],
  scopes: ['read', 'write'],
  disabled: false,
} as const satisfies Partial<UserFields>;

/** Parses the row of an account. A member with a default that the row lacks has its default. */
export function readUser(doc: string): User {
  const stored = JSON.parse(doc) as User;
  return { ...stored, ...userDefaults, ...stored };
}

/** By user id. Every login rewrites the row, so that a login and a change of the password never pass each other. */
export const passwordsTable = 'passwords';

/** `hash`: a PHC string of argon2id; null where the account has no password, only identities of providers. */
export type PasswordRow = { readonly hash: string | null; readonly changedAt: string };

/** By session id `ses_...`; `owner` is the user. What logout removes. */
export const sessionsTable = 'sessions';

/** Served as `/keys`; `owner` is the principal that the key acts for. Id `key_...`. */
export const keysTable = 'keys';

/** By the base64url SHA-256 of a key: which key it is, and until when where it was rotated away. */
export const keySecretsTable = 'key_secrets';

/** One row: the ring of key pairs that sign access tokens, so that a rotation is one compare-and-swap. */
export const signingKeysTable = 'signing_keys';

/** By the base64url SHA-256 of a code that was sent by mail; single use. `owner` is the user. */
export const mailCodesTable = 'mail_codes';

/** By the base64url SHA-256 of issuer and subject: which account an identity at a provider belongs to. `owner` is the user. */
export const identitiesTable = 'identities';

/** By the base64url SHA-256 of `state`: sign-ins under way at a provider; single use. */
export const signInsTable = 'sign_ins';

/** Served as `/audit`. */
export const auditTable = 'audit';
