/**
 * The administrator key as the store has it now: changed by one process, it counts on all of them without a restart. A key
 * from COMITY_ADMIN_KEY is the operator's own and follows nothing.
 */
import type { Observe } from '../observe/observation.ts';
import type { Row, Store } from '../store/store.ts';
import { type AdminKey, adminKeyHashOf, adminKeyRowId, secretsTable } from './admin-key.ts';

/** After a failed look at the store; nothing else would make this process look again. */
const retryMs = 1000;

export type FollowedKey = {
  /** SHA-256 of the key that is good now. */
  readonly hash: () => Uint8Array;
  readonly stop: () => void;
};

/** @param key as it was loaded @param given COMITY_ADMIN_KEY */
export function followAdminKey(
  store: Store,
  key: AdminKey,
  given: string | undefined,
  observe: Observe,
): FollowedKey {
  let hash = key.hash;
  let rev = 0;
  let timer: NodeJS.Timeout | undefined;

  function adopt(row: Row | undefined): void {
    // Of two looks the later may be answered first.
    if (row === undefined || row.rev <= rev) return;
    rev = row.rev;
    hash = adminKeyHashOf(row);
  }

  async function look(): Promise<void> {
    clearTimeout(timer);
    try {
      adopt(await store.read(secretsTable, adminKeyRowId));
    } catch (error) {
      observe({ kind: 'store-failed', what: 'administrator key', error });
      clearTimeout(timer);
      timer = setTimeout(look, retryMs).unref();
    }
  }

  if (given !== undefined) return { hash: () => hash, stop: () => undefined };
  const forget = store.onChange(secretsTable, look);
  // It may have changed since it was loaded.
  void look();
  return {
    hash: () => hash,
    stop: () => {
      forget();
      clearTimeout(timer);
    },
  };
}
