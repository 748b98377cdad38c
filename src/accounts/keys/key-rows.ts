/**
 * Rows of API keys. The row in `keys` is served and holds no secret. Each text of a key has a row in `key_secrets`, found by its
 * digest: usually one, several during a rotation with overlap. The row of a text holds everything that a request needs, so that one
 * read finds it and one row proves it. A change of a key's rights therefore writes the rows of its texts in the same unit. `lastUsedAt`
 * is not in them: recording a use must not invalidate verdicts.
 */
import { hash } from 'node:crypto';
import { ownerField } from '../../model/field.ts';
import { byId } from '../../model/filter.ts';
import type { HostRules } from '../../model/host-rules.ts';
import type { Scope } from '../../model/principal.ts';
import { type Change, keptRow, type Row, type Store } from '../../store/store.ts';
import { keySecretsTable, keysTable } from '../account-tables.ts';

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

export const keysPerUnitMax = 50;

export type KeysOfOwner = {
  removal(owner: string): Promise<readonly Change[]>;
  clear(owner: string): Promise<void>;
};

/** Units of one removal, which also catches keys that are created meanwhile. */
const unitsMax = 1000;

/** @param entryOf creates the audit entry of a revocation */
export function createKeysOfOwner(
  store: Pick<Store, 'plan' | 'read' | 'commit'>,
  entryOf: (key: string) => Change,
): KeysOfOwner {
  const secrets = createSecretsOfKey(store);

  async function removal(owner: string): Promise<readonly Change[]> {
    const { docs } = await store
      .plan({
        table: keysTable,
        filter: { op: 'eq', field: ownerField, value: owner },
        sort: byId,
        limit: keysPerUnitMax,
      })
      .page({ from: 'start' });
    const parts = await Promise.all(
      docs.map(async (doc) => {
        const { id } = JSON.parse(doc) as Key;
        const row = await store.read(keysTable, id);
        if (row === undefined) return [];
        const own: Change = { table: keysTable, id, expect: { rev: row.rev }, next: null };
        return [own, ...(await secrets.removal(id)), entryOf(id)];
      }),
    );
    return parts.flat();
  }

  return {
    removal,
    async clear(owner) {
      for (let unit = 0; unit < unitsMax; unit += 1) {
        const changes = await removal(owner);
        if (changes.length === 0) return;
        await store.commit({ changes, events: [] });
      }
    },
  };
}

/** Texts of one key; `rotate` removes those beyond it that expire first. */
export const secretsOfKeyMax = 10;

export type StoredSecret = KeySecret & { readonly row: Row };

export type SecretsOfKey = {
  find(key: string): Promise<readonly StoredSecret[]>;
  removal(key: string): Promise<readonly Change[]>;
};

export function createSecretsOfKey(store: Pick<Store, 'plan' | 'read'>): SecretsOfKey {
  async function find(key: string): Promise<readonly StoredSecret[]> {
    const plan = store.plan({
      table: keySecretsTable,
      filter: { op: 'eq', field: ownerField, value: key },
      sort: byId,
      limit: secretsOfKeyMax * 2,
    });
    const { docs } = await plan.page({ from: 'start' });
    const found = await Promise.all(
      docs.map(async (doc) => {
        const secret = JSON.parse(doc) as KeySecret;
        const row = await store.read(keySecretsTable, secret.digest);
        // The text may have been removed or rotated since the page was read; a commit that expects the revision detects later changes.
        return row === undefined ? [] : [{ ...(JSON.parse(row.doc) as KeySecret), row }];
      }),
    );
    return found.flat();
  }

  return {
    find,
    async removal(key) {
      return (await find(key)).map(({ digest, row }) => ({
        table: keySecretsTable,
        id: digest,
        expect: { rev: row.rev },
        next: null,
      }));
    },
  };
}
