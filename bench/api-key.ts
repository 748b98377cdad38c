/**
 * The API keys that every benchmark stores beside its products, as many: one for each index, an administrator's own, which stands for
 * itself. Pure: an index in, text out.
 */
import { hash } from 'node:crypto';
import { digestOfKey, keySecretChange } from '../src/accounts/keys/key-rows.ts';

import type { Change } from '../src/store/store.ts';

/** The key with this index: as long and as random as real ones, and known to whoever knows the index. */
export function apiKey(index: number): string {
  return `sk_${hash('sha256', `benchmark ${index}`, 'base64url')}`;
}

/** The row that makes it good. */
export function apiKeyChange(index: number): Change {
  const key = `key_${String(index).padStart(26, '0')}`;
  const digest = digestOfKey(apiKey(index)).toString('base64url');
  const grant = {
    key,
    owner: key,
    kind: 'secret',
    scopes: ['read', 'write'],
    keyExpiresAt: null,
    madeBy: null,
  } as const;
  return keySecretChange(digest, grant, null, { createdAt: 0, expect: { absent: true } });
}
