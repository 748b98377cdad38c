/** Keys and accounts as the resources write them, for tests of what reads them. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import {
  keysCollection,
  keysTable,
  type User,
  usersCollection,
  usersTable,
} from '../../../src/accounts/account-tables.ts';
import {
  digestOfKey,
  grantOf,
  type Key,
  keySecretChange,
  makeKey,
  prefixOfKey,
} from '../../../src/accounts/keys/key-rows.ts';
import { searchText } from '../../../src/model/collection.ts';
import type { Change, NextRow, Row, Store } from '../../../src/store/store.ts';

export const now = Date.UTC(2030, 0, 1);
export const iso = (ms: number): string => new Date(ms).toISOString();

export type Planted = { readonly text: string; readonly digest: string; readonly key: Key };

export type Wish = Partial<Pick<Key, 'kind' | 'scopes' | 'expiresAt' | 'tunnel' | 'madeBy'>> & {
  readonly id?: string;
  readonly owner?: string;
  /** When the text ends, where it was rotated away. */
  readonly secretEndsAt?: number;
};

export async function commitAll(store: Store, changes: readonly Change[]): Promise<void> {
  assert.equal((await store.commit({ changes, events: [] })).outcome, 'committed');
}

export function keyRow(key: Key, owner: string): NextRow {
  const search = searchText(keysCollection.searchFields, key);
  return rowOf(key, owner, search);
}

export async function plantKey(store: Store, wish: Wish = {}): Promise<Planted> {
  const { id = `key_${randomBytes(6).toString('hex')}`, kind = 'secret', scopes = ['read', 'write'] } = wish;
  const text = makeKey(kind, randomBytes);
  const expiry = wish.expiresAt === undefined ? {} : { expiresAt: wish.expiresAt };
  const tunnel = wish.tunnel === undefined ? {} : { tunnel: wish.tunnel };
  const maker = wish.madeBy === undefined ? {} : { madeBy: wish.madeBy };
  const key: Key = {
    ...{ id, name: 'planted', kind, scopes, ...tunnel, ...expiry, ...maker, prefix: prefixOfKey(text) },
    ...{ createdAt: iso(now), updatedAt: iso(now) },
  };
  const digest = digestOfKey(text).toString('base64url');
  const owner = wish.owner ?? id;
  const expect = { absent: true } as const;
  await commitAll(store, [
    { table: keysTable, id, expect, next: keyRow(key, owner) },
    keySecretChange(digest, grantOf(key, owner), wish.secretEndsAt ?? null, { createdAt: now, expect }),
  ]);
  return { text, digest, key };
}

export async function plantUser(store: Store, wish: Partial<User> = {}): Promise<User> {
  const id = wish.id ?? `usr_${randomBytes(6).toString('hex')}`;
  const user: User = {
    ...{ id, email: `${id}@shop.example`, emailVerified: false, roles: [], scopes: ['read', 'write'] },
    ...{ disabled: false, createdAt: iso(now), updatedAt: iso(now) },
    ...wish,
  };
  const search = searchText(usersCollection.searchFields, user);
  const next = rowOf(user, id, search);
  await commitAll(store, [{ table: usersTable, id, expect: { absent: true }, next }]);
  return user;
}

/** Rewrites the members of a row. */
export async function rewrite(
  store: Store,
  table: string,
  id: string,
  members: Readonly<Record<string, unknown>>,
): Promise<void> {
  for (;;) {
    const row = await mustRead(store, table, id);
    const doc = { ...(JSON.parse(row.doc) as Record<string, unknown>), ...members };
    const next = { ...row, doc: JSON.stringify(doc), search: null, references: [] };
    const change = { table, id, expect: { rev: row.rev }, next };
    // The use of a key is noted in the background, and may come between.
    const { outcome } = await store.commit({ changes: [change], events: [] });
    if (outcome === 'committed') return;
    assert.equal(outcome, 'superseded');
  }
}

export async function remove(store: Store, table: string, id: string): Promise<void> {
  const { rev } = await mustRead(store, table, id);
  await commitAll(store, [{ table, id, expect: { rev }, next: null }]);
}

export async function mustRead(store: Store, table: string, id: string): Promise<Row> {
  const row = await store.read(table, id);
  assert.ok(row, `${table} ${id}`);
  return row;
}

function rowOf(doc: object, owner: string, search: string | null): NextRow {
  return {
    ...{ doc: JSON.stringify(doc), owner, createdAt: now, updatedAt: now, deletedAt: null },
    ...{ search, references: [] },
  };
}
