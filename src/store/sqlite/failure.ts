/**
 * Which errors of SQLite are storage failing, so that trying again later may succeed (`StoreUnavailable`), and which are
 * a mistake in what was asked, which only the asker can mend.
 */
import { type StorageFault, StoreUnavailable } from '../store.ts';

const retryAfterSeconds = 1;

/** SQLITE_ERROR, TOOBIG, CONSTRAINT, MISMATCH, RANGE: the statement or its values are at fault. */
const mistakes: ReadonlySet<number> = new Set([1, 18, 19, 20, 25]);

/** The result code of SQLite behind an error, undefined for any other error. */
export function resultCode(error: unknown): number | undefined {
  if (!(error instanceof Error) || !('errcode' in error)) return undefined;
  return typeof error.errcode === 'number' ? error.errcode : undefined;
}

export function isMistake(error: unknown): boolean {
  const code = resultCode(error);
  return code === undefined || mistakes.has(code & 0xff);
}

/** By result code: SQLITE_CORRUPT and SQLITE_NOTADB, SQLITE_FULL. */
const faults: ReadonlyMap<number, StorageFault> = new Map([
  [11, 'storage_damaged'],
  [26, 'storage_damaged'],
  [13, 'storage_full'],
]);

export function faultOf(error: unknown): StorageFault | undefined {
  const code = resultCode(error);
  return code === undefined ? undefined : faults.get(code & 0xff);
}

export function unavailable(message: string, cause?: unknown, fault?: StorageFault): StoreUnavailable {
  return new StoreUnavailable(message, { retryAfterSeconds, cause, fault });
}

/** What a caller of the store sees of an error that a statement threw. */
export function asStoreError(error: unknown): unknown {
  return isMistake(error) ? error : unavailable(`storage failed: ${messageOf(error)}`, error, faultOf(error));
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
