/**
 * The administrator key: taken from COMITY_ADMIN_KEY, or made at the first start and shown once. Only its SHA-256 is
 * stored: the key has 160 random bits, so a slow password hash would add nothing.
 */
import { hash, randomBytes } from 'node:crypto';
import { administratorRole, authenticated, operatorId, scopes } from '../model/principal.ts';
import { keptRow } from '../store/kept-row.ts';
import type { Row, Store } from '../store/store.ts';

export const secretsTable = 'server_secrets';
export const adminKeyRowId = 'administrator_key';

/** Whom the administrator key stands for. */
export const administrator = authenticated({ id: operatorId, scopes, roles: [administratorRole] });

export type AdminKey = {
  readonly hash: Uint8Array;
  /** Set only when the key was made now. */
  readonly made: string | undefined;
};

/** @param given COMITY_ADMIN_KEY, which the settings table has checked */
export async function loadAdminKey(store: Store, given: string | undefined, now: number): Promise<AdminKey> {
  if (given !== undefined) return { hash: digest(given), made: undefined };
  const row = await store.read(secretsTable, adminKeyRowId);
  if (row !== undefined) return { hash: adminKeyHashOf(row), made: undefined };
  const made = `sk_${randomBytes(20).toString('hex')}`;
  const doc = JSON.stringify({ sha256: digest(made).toString('hex') });
  const next = keptRow(doc, null, now, now);
  const commit = await store.commit({
    changes: [{ table: secretsTable, id: adminKeyRowId, expect: { absent: true }, next }],
    events: [],
  });
  // Another process made one in the same moment: its key is the one that was shown.
  if (commit.outcome !== 'committed') return loadAdminKey(store, undefined, now);
  return { hash: digest(made), made };
}

/** The hash that a stored row holds. */
export function adminKeyHashOf(row: Pick<Row, 'doc'>): Uint8Array {
  const { sha256 } = JSON.parse(row.doc) as { sha256: string };
  return Buffer.from(sha256, 'hex');
}

function digest(key: string): Buffer {
  return hash('sha256', key, 'buffer');
}
