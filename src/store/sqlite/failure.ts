/**
 * Which errors of SQLite are storage failing, so that trying again later may succeed (`StoreUnavailable`), and which are
 * a mistake in what was asked, which only the asker can mend.
 */
import { StoreUnavailable } from '../store.ts';

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

export function unavailable(message: string, cause?: unknown): StoreUnavailable {
  return new StoreUnavailable(message, { retryAfterSeconds, cause });
}

/** What a caller of the store sees of an error that a statement threw. */
export function asStoreError(error: unknown): unknown {
  return isMistake(error) ? error : unavailable(`storage failed: ${messageOf(error)}`, error);
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
