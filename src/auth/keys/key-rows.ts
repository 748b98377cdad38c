/**
 * What the rows of API keys hold. The row of a key is served and holds no secret; beside it stands one row for each text that is good
 * for it, found by the digest of that text: usually one, after a rotation with overlap for a while several.
 *
 * The row of a text says all that a request needs to know, so that one read finds it and one row vouches for it. Whoever changes what a
 * key may do, or ends it, therefore writes the rows of its texts in the same unit. `lastUsedAt` is not among it: noting a use
 * unsettles no verdict.
 */
import type { HostRules } from '../../model/host-rules.ts';
import type { Scope } from '../../model/principal.ts';
import { keptRow } from '../../store/kept-row.ts';
import type { Change } from '../../store/store.ts';
import { keySecretsTable } from '../tables.ts';
import type { KeyKind } from './key-text.ts';

/** Hosts that a key may tunnel to, as its row holds them; it has no list where the row says nothing. */
export type KeyTunnel = {
  readonly mode: HostRules['mode'];
  /** Left out: every host. */
  readonly allow?: readonly string[];
  readonly deny: readonly string[];
};

/** A row of `keys`, as served. */
export type Key = {
  readonly id: string;
  readonly name: string;
  readonly kind: KeyKind;
  readonly scopes: readonly Scope[];
  readonly tunnel?: KeyTunnel;
  readonly expiresAt?: string;
  readonly prefix: string;
  /** Id of the key that it was made with; it is good as long as that one is. */
  readonly madeBy?: string;
  readonly lastUsedAt?: string;
  readonly createdAt: string;
  readonly updatedAt: string;
};

/** What a key may do, for whom, and until when. */
export type KeyGrant = {
  /** Id of the key. */
  readonly key: string;
  /** Id of the principal that it acts for. */
  readonly owner: string;
  readonly kind: KeyKind;
  readonly scopes: readonly Scope[];
  readonly keyExpiresAt: string | null;
  readonly madeBy: string | null;
  /** Left out by keys without a list of their own. */
  readonly tunnel?: KeyTunnel;
};

/** A row of `key_secrets`. */
export type KeySecret = KeyGrant & {
  /** Base64url SHA-256 of the text: the row's own id, so that a page of such rows says which they are. */
  readonly digest: string;
  /** When a text that was rotated away ends; null: with its key. */
  readonly expiresAt: string | null;
};

/** The times that rows can be given in, and so the last that anything is kept until: the end of the year 9999. */
const neverMs = 253_402_300_799_999;

/**
 * The change that keeps a text good until `expiresAt` (ms; null: as long as its key). The row says so in `updatedAt` too, which is what
 * retention removes rows by: so one that is over goes, and the others stay.
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

/** @param owner of the row, which has one always */
export function grantOf(key: Key, owner: string | null): KeyGrant {
  const { id, kind, scopes, expiresAt = null, madeBy = null, tunnel } = key;
  const grant = { key: id, owner: owner ?? id, kind, scopes, keyExpiresAt: expiresAt, madeBy };
  return tunnel === undefined ? grant : { ...grant, tunnel };
}

/** Rows of `key_secrets` that are over go after this time: the clocks of two processes may differ by less. */
export const keySecretsRetention = { table: keySecretsTable, seconds: 3600 } as const;
