/** Classifies SQLite's errors: failures of storage (`StoreUnavailable`), and mistakes in statements, which only the caller can fix. */
import { type StorageFault, StoreUnavailable } from '../store.ts';

/** SQLITE_ERROR, TOOBIG, CONSTRAINT, MISMATCH, RANGE. */
const mistakes: ReadonlySet<number> = new Set([1, 18, 19, 20, 25]);

/** SQLite's result code; undefined for other errors. */
export function resultCode(error: unknown): number | undefined {
  if (!(error instanceof Error) || !('errcode' in error)) return undefined;
  return typeof error.errcode === 'number' ? error.errcode : undefined;
}

export function isMistake(error: unknown): boolean {
  const code = resultCode(error);
  return code === undefined || mistakes.has(code & 0xff);
}

/** SQLITE_CORRUPT, SQLITE_NOTADB, SQLITE_FULL. */
const faults: ReadonlyMap<number, StorageFault> = new Map([
  [11, 'storage_damaged'],
  [26, 'storage_damaged'],
  [13, 'storage_full'],
]);

export function faultOf(error: unknown): StorageFault | undefined {
  const code = resultCode(error);
  return code === undefined ? undefined : faults.get(code & 0xff);
}

/** Converts an error of a statement to what the store's callers see. */
export function asStoreError(error: unknown): unknown {
  if (isMistake(error)) return error;
  return new StoreUnavailable(`storage failed: ${messageOf(error)}`, { cause: error, fault: faultOf(error) });
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
