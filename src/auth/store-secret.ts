/**
 * A random secret made once and kept in the store, such as the key that signs cursors: the same for every process.
 */
import { keptRow } from '../store/kept-row.ts';
import type { Store } from '../store/store.ts';
import { secretsTable } from './admin-key.ts';

/**
 * @param name which secret; the row's id
 * @param randomBytes that many octets of good randomness
 */
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
