/**
 * Which errors of a statement are storage failing, so that trying again later may succeed (`StoreUnavailable`), and which are
 * a mistake in what was asked, which only the asker can mend. Decided by SQLSTATE (PostgreSQL, appendix A), never
 * by message texts, which servers translate.
 */
import { DatabaseError } from 'pg';
import { StoreUnavailable } from '../../store.ts';

const retryAfterSeconds = 1;

/**
 * Classes whose first two characters say that the statement or its values are at fault: feature not supported, case not
 * found, cardinality, data, constraint, dependent objects, with check option, syntax or access rule, limits of the program
 * (an index row too long), a condition that SQL raised by itself.
 */
const mistakes: ReadonlySet<string> = new Set([
  '0A',
  '20',
  '21',
  '22',
  '23',
  '2B',
  '42',
  '44',
  '54',
  'CM',
  'P0',
]);

/** Rights are given by people, not by the asker of a request: once they are, the same request succeeds. */
const insufficientPrivilege = '42501';

/** The SQLSTATE of the server behind an error, undefined for any other error. */
export function sqlState(error: unknown): string | undefined {
  return error instanceof DatabaseError ? error.code : undefined;
}

export function isMistake(error: unknown): boolean {
  if (error instanceof StoreUnavailable) return false;
  const state = sqlState(error);
  if (state === undefined) return !isSystemError(error);
  if (state === insufficientPrivilege || isStaleStatement(error) || isForeignStatement(error)) return false;
  return mistakes.has(state.slice(0, 2));
}

/**
 * Whether the very same transaction may succeed if it is done again at once: serialisation failure, deadlock, lock not had in
 * time, a statement cancelled, a prepared statement that is no more.
 */
export function isRetryable(error: unknown): boolean {
  const state = sqlState(error);
  if (state === undefined) return false;
  return (
    state.startsWith('40') ||
    state === '55P03' ||
    state === '57014' ||
    isStaleStatement(error) ||
    isForeignStatement(error)
  );
}

/** The statement was prepared, and what it reads has changed shape since (0A000 of one place in the server). */
export function isStaleStatement(error: unknown): boolean {
  return (
    error instanceof DatabaseError && error.code === '0A000' && error.routine === 'RevalidateCachedQuery'
  );
}

/** A pooler handed the calls to a session that has not prepared the statement, or has one of that name already. */
export function isForeignStatement(error: unknown): boolean {
  return isUnknownStatement(error) || sqlState(error) === '42P05';
}

/** No statement of that name is prepared in the session. */
export function isUnknownStatement(error: unknown): boolean {
  return sqlState(error) === '26000';
}

/**
 * Whether the server ends the session with this error (severity FATAL, which arrives translated, hence the states): class 08,
 * shutdown and crash, and the timeouts of a session.
 */
export function endsSession(error: unknown): boolean {
  const state = sqlState(error);
  if (state === undefined) return false;
  return state.startsWith('08') || state.startsWith('57P') || state === '25P03' || state === '25P04';
}

export function unavailable(message: string, cause?: unknown): StoreUnavailable {
  return new StoreUnavailable(message, { retryAfterSeconds, cause });
}

/** What a caller of the store sees of an error that a call failed with. */
export function asStoreError(error: unknown): unknown {
  return isMistake(error) ? error : asUnavailable(error);
}

/** An error of a statement that nobody asked for with values of their own: whatever it is, storage failed. */
export function asUnavailable(error: unknown): StoreUnavailable {
  return error instanceof StoreUnavailable
    ? error
    : unavailable(`storage failed: ${messageOf(error)}`, error);
}

/** The words of an error; those of its parts where it has none, as when each address of a name refused. */
export function messageOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === '') return error.errors.map(messageOf).join(', ');
  return error instanceof Error ? error.message : String(error);
}

/** An error of a socket or of the name service, as Node makes them. */
function isSystemError(error: unknown): boolean {
  if (error instanceof AggregateError) return error.errors.every(isSystemError);
  return error instanceof Error && 'syscall' in error;
}
