/**
 * Rows of API keys. The row in `keys` is served and holds no secret. Each text of a key has a row in `key_secrets`, found by its
 * digest: usually one, several during a rotation with overlap. The row of a text holds everything that a request needs, so that one
 * read finds it and one row proves it. A change of a key's rights therefore writes the rows of its texts in the same unit. `lastUsedAt`
 * is not in them: recording a use must not invalidate verdicts.
 */
import { hash } from 'node:crypto';
import type { HostRules } from '../../model/host-rules.ts';
import type { Scope } from '../../model/principal.ts';
import { type Change, keptRow } from '../../store/store.ts';
import { keySecretsTable } from '../account-tables.ts';

/** Hosts that a key may tunnel to; a row without this member has no host rules. */
export type KeyTunnel = {
  readonly mode: HostRules['mode'];
  /** Undefined allows every host. */
  readonly allow?: readonly string[];
  readonly deny: readonly string[];
};

export type Key = {
  readonly id: string;
  readonly name: string;
  readonly kind: KeyKind;
  readonly scopes: readonly Scope[];
  readonly tunnel?: KeyTunnel;
  readonly expiresAt?: string;
  readonly prefix: string;
  /** Id of the key that created this one, and without which it is not valid. */
  readonly madeBy?: string;
  readonly lastUsedAt?: string;
  readonly createdAt: string;
  readonly updatedAt: string;
};

export type KeyGrant = {
  readonly key: string;
  readonly owner: string;
  readonly kind: KeyKind;
  readonly scopes: readonly Scope[];
  readonly keyExpiresAt: string | null;
  readonly madeBy: string | null;
  readonly tunnel?: KeyTunnel;
};

export type KeySecret = KeyGrant & {
  /** Base64url SHA-256 of the text; repeats the row's id, which pages of documents do not hold. */
  readonly digest: string;
  /** Expiry of a rotated text; null: that of its key. */
  readonly expiresAt: string | null;
};

/** The last time that a row can hold: the end of the year 9999. */
const neverMs = 253_402_300_799_999;

/**
 * Stores the row of a text that is valid until `expiresAt` (ms; null: as long as its key). `updatedAt` gets the same time, so that
 * retention removes only expired rows.
 */
export function keySecretChange(
  digest: string,
  grant: KeyGrant,
  expiresAt: number | null,
  row: { readonly createdAt: number; readonly expect: Change['expect'] },
): Change {
  const secret: KeySecret = {
    digest,
    ...grant,
    expiresAt: expiresAt === null ? null : new Date(expiresAt).toISOString(),
  };
  const next = keptRow(JSON.stringify(secret), grant.key, row.createdAt, expiresAt ?? neverMs);
  return { table: keySecretsTable, id: digest, expect: row.expect, next };
}

/** @param owner of the row; null never occurs */
export function grantOf(key: Key, owner: string | null): KeyGrant {
  const { id, kind, scopes, expiresAt = null, madeBy = null, tunnel } = key;
  const grant = { key: id, owner: owner ?? id, kind, scopes, keyExpiresAt: expiresAt, madeBy };
  return tunnel === undefined ? grant : { ...grant, tunnel };
}

/** Removes expired rows of `key_secrets` after this time, to which the clocks of processes must agree. */
export const keySecretsRetention = { table: keySecretsTable, seconds: 3600 } as const;

/** Secret keys are for servers; publishable ones may be part of a public page, so they can never write. */
export type KeyKind = 'secret' | 'publishable';

const marks: Readonly<Record<KeyKind, string>> = { secret: 'sk_', publishable: 'pk_' };
const markCharacters = 3;
const randomBytes = 32;
const randomCharacters = 43;
const shownCharacters = 4;
const base64url = /^[A-Za-z0-9_-]+$/;

/** Generates `sk_` or `pk_` and 256 random bits in base64url. Only its SHA-256 is stored; a slow hash would add nothing. */
export function makeKey(kind: KeyKind, random: (count: number) => Buffer): string {
  return `${marks[kind]}${random(randomBytes).toString('base64url')}`;
}

/** Returns the kind of a well-formed key; undefined for any other text. */
export function kindOfKey(text: string): KeyKind | undefined {
  if (text.length !== markCharacters + randomCharacters) return undefined;
  const kind = text.startsWith(marks.secret)
    ? 'secret'
    : text.startsWith(marks.publishable)
      ? 'publishable'
      : undefined;
  return kind !== undefined && base64url.test(text.slice(markCharacters)) ? kind : undefined;
}

export function digestOfKey(text: string): Buffer {
  return hash('sha256', text, 'buffer');
}

/** Returns the part of a key that people may see: 24 of its 256 random bits. */
export function prefixOfKey(text: string): string {
  return text.slice(0, markCharacters + shownCharacters);
}
