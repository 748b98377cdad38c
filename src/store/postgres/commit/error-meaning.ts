/**
 * What a failed commit means for its batch, decided by SQLSTATE. The classes of connection/failure.ts say what a caller is told;
 * here it matters besides whether the transaction is certain to be undone.
 */
import { DatabaseError } from 'pg';
import { isRetryable, sqlState } from '../connection/failure.ts';
import { fenceText, sessionText } from './transaction.ts';

/**
 * `refused`: an assumption of the units does not hold. `values`: some unit's values are at fault. `again`: the same may succeed at once.
 * `fence`: another epoch began, so take the fence and do it again. `failed`: storage fails; the transaction is undone.
 * `unknown`: it may have been committed.
 */
export type Meaning = 'refused' | 'values' | 'again' | 'fence' | 'failed' | 'unknown';

/** Of `comity_expect`. */
const unexpected = 'CM001';

/**
 * Classes of errors that undo the transaction and leave the session as it is. Others, such as a full disk (53100) or an internal
 * error (XX000), may take the server down in the middle of a commit.
 */
const undoing: ReadonlySet<string> = new Set([
  '0A',
  '20',
  '21',
  '22',
  '23',
  '25',
  '26',
  '40',
  '42',
  '54',
  '55',
  'P0',
]);
const ofValues: ReadonlySet<string> = new Set(['21', '22', '23', '54']);

export function meaningOf(error: unknown): Meaning {
  const state = sqlState(error);
  if (state === undefined) return 'unknown';
  if (state === unexpected) {
    const { message } = error as DatabaseError;
    return message === fenceText || message === sessionText ? 'fence' : 'refused';
  }
  if (isRetryable(error)) return 'again';
  const kind = state.slice(0, 2);
  if (ofValues.has(kind)) return 'values';
  return undoing.has(kind) ? 'failed' : 'unknown';
}

/** The constraint or index that a value violated, and its table. */
export function violationOf(error: unknown): { readonly index: string; readonly table: string } | undefined {
  if (sqlState(error) !== '23505' || !(error instanceof DatabaseError)) return undefined;
  const { constraint, table } = error;
  return constraint === undefined || table === undefined ? undefined : { index: constraint, table };
}
