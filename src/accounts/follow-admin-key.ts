/**
 * Follows the administrator key in the store, so that a change by one process applies to all without a restart. A key from
 * COMITY_ADMIN_KEY does not change.
 */
import type { Observe } from '../observe/observation.ts';
import type { Row, Store } from '../store/store.ts';
import { type AdminKey, adminKeyHashOf, adminKeyRowId, secretsTable } from './admin-key.ts';

/** Delay after a failed read; nothing else would repeat it. */
const retryMs = 1000;

export type FollowedKey = {
  readonly hash: () => Uint8Array;
  readonly stop: () => void;
};

/** @param key as loaded @param given COMITY_ADMIN_KEY */
export function followAdminKey(
  store: Store,
  key: AdminKey,
  given: string | undefined,
  observe: Observe,
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

  if (given !== undefined) return { hash: () => hash, stop: () => undefined };
  const forget = store.onChange(secretsTable, look);
  // The key may have changed since it was loaded.
  void look();
  return {
    hash: () => hash,
    stop: () => {
      forget();
      clearTimeout(timer);
    },
  };
}
