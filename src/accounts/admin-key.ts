/**
 * The administrator key: from COMITY_ADMIN_KEY, or generated at the first start and shown once. Only its SHA-256 is stored: with 160
 * random bits a slow password hash would add nothing. Processes follow the stored key, so that a change by one applies to all without a
 * restart.
 */
import { hash, randomBytes } from 'node:crypto';
import { administratorRole, authenticated, operatorId, scopes } from '../model/principal.ts';
import type { Services } from '../store/capabilities.ts';
import { keptRow, type Row, type Store } from '../store/store.ts';

export const secretsTable = 'server_secrets';
export const adminKeyRowId = 'administrator_key';

export const administrator = authenticated({ id: operatorId, scopes, roles: [administratorRole] });

export type AdminKey = {
  readonly hash: Uint8Array;
  readonly made: string | undefined;
};

/** @param given COMITY_ADMIN_KEY, checked by the settings table */
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
  // Another process generated a key at the same moment and showed that one.
  if (commit.outcome !== 'committed') return loadAdminKey(store, undefined, now);
  return { hash: digest(made), made };
}

export function adminKeyHashOf(row: Pick<Row, 'doc'>): Uint8Array {
  const { sha256 } = JSON.parse(row.doc) as { sha256: string };
  return Buffer.from(sha256, 'hex');
}

function digest(key: string): Buffer {
  return hash('sha256', key, 'buffer');
}

/** Loads a secret that all processes share, such as the key that signs cursors; generates it at first use. @param name the row's id */
export async function loadSecret(
  store: Store,
  name: string,
  now: number,
  randomBytes: (count: number) => Buffer,
): Promise<string> {
  const row = await store.read(secretsTable, name);
  if (row !== undefined) return (JSON.parse(row.doc) as { secret: string }).secret;
  const secret = randomBytes(32).toString('base64url');
  const next = keptRow(JSON.stringify({ secret }), null, now, now);
  const commit = await store.commit({
    changes: [{ table: secretsTable, id: name, expect: { absent: true }, next }],
    events: [],
  });
  return commit.outcome === 'committed' ? secret : loadSecret(store, name, now, randomBytes);
}

/** Loads a keyed digest of 128 bits that all processes share. The key on both sides of the text rules out length extension. */
export async function loadMac(
  { store, clock, random }: Pick<Services, 'store' | 'clock' | 'random'>,
  name: string,
): Promise<(text: string) => string> {
  const secret = await loadSecret(store, name, clock(), random);
  return (text) => hash('sha256', `${secret}\n${text}\n${secret}`, 'base64url').slice(0, 22);
}

/** Delay after a failed read; nothing else would repeat it. */
const retryMs = 1000;

export type FollowedKey = {
  /** SHA-256 of the key as this process knows it. */
  readonly hash: () => Uint8Array;
  /** True if the key is in the store, where another process may change it, rather than in COMITY_ADMIN_KEY. */
  readonly isKept: boolean;
  readonly stop: () => void;
};

/** @param key as loaded @param given COMITY_ADMIN_KEY */
export function followAdminKey(
  { store, observe }: Services,
  key: AdminKey,
  given: string | undefined,
): FollowedKey {
  let hash = key.hash;
  let looks = 0;
  let adopted = 0;
  let timer: NodeJS.Timeout | undefined;

  function adopt(row: Row | undefined, look: number): void {
    // Two reads may complete out of order. Revisions do not order them: the newer one may be lost with its unit.
    if (row === undefined || look < adopted) return;
    adopted = look;
    hash = adminKeyHashOf(row);
  }

  async function look(): Promise<void> {
    clearTimeout(timer);
    try {
      looks += 1;
      const at = looks;
      adopt(await store.read(secretsTable, adminKeyRowId), at);
    } catch (error) {
      observe({ kind: 'store-failed', what: 'administrator key', error });
      clearTimeout(timer);
      timer = setTimeout(look, retryMs).unref();
    }
  }

  if (given !== undefined) return { hash: () => hash, isKept: false, stop: () => undefined };
  const forget = store.onChange(secretsTable, look);
  // The key may have changed since it was loaded.
  void look();
  return {
    hash: () => hash,
    isKept: true,
    stop: () => {
      forget();
      clearTimeout(timer);
    },
  };
}
