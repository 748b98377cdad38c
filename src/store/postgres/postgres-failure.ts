/**
 * Failures of PostgreSQL: errors of statements by their class, and errors of opening and migrating a schema.
 * Classifies errors of statements: failures of storage, which a retry may overcome (`StoreUnavailable`), and mistakes in the statement or
 * its values, which only the caller can correct. Decides by SQLSTATE (PostgreSQL, appendix A), never by messages, which servers translate.
 */
import { DatabaseError } from 'pg';
import { StoreUnavailable } from '../store.ts';

/**
 * Classes (the first two characters) of mistakes: feature not supported, case not found, cardinality, data, constraint, dependent objects,
 * with check option, syntax or access rule, program limits (an index row too long), a condition raised by SQL.
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

/** Not a mistake: once an administrator grants the privilege, the same request succeeds. */
const insufficientPrivilege = '42501';

/** The server's SQLSTATE; undefined for any other error. */
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

/** True if an immediate retry may succeed: serialisation failure, deadlock, lock timeout, a cancelled or lost statement. */
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

/** True if a table or type of a prepared statement has changed (0A000 from one place in the server). */
export function isStaleStatement(error: unknown): boolean {
  return (
    error instanceof DatabaseError && error.code === '0A000' && error.routine === 'RevalidateCachedQuery'
  );
}

/** True if a pooler passed the calls to a session that has not prepared the statement, or has another of that name. */
export function isForeignStatement(error: unknown): boolean {
  return isUnknownStatement(error) || sqlState(error) === '42P05';
}

/** True if the session has no prepared statement of that name. */
export function isUnknownStatement(error: unknown): boolean {
  return sqlState(error) === '26000';
}

/** True if the server ends the session (severity FATAL, by states): class 08, shutdown, crash, and session timeouts. */
export function endsSession(error: unknown): boolean {
  const state = sqlState(error);
  if (state === undefined) return false;
  return state.startsWith('08') || state.startsWith('57P') || state === '25P03' || state === '25P04';
}

/** Converts an error of a call to what the store's callers see. */
export function asStoreError(error: unknown): unknown {
  return isMistake(error) ? error : asUnavailable(error);
}

/** Converts an error of one of Comity's own statements, which means that storage failed. */
export function asUnavailable(error: unknown): StoreUnavailable {
  return error instanceof StoreUnavailable
    ? error
    : new StoreUnavailable(`storage failed: ${messageOf(error)}`, { cause: error });
}

/** The message of an error, or those of its parts if it has none, as when each address of a name refused. */
export function messageOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === '') return error.errors.map(messageOf).join(', ');
  return error instanceof Error ? error.message : String(error);
}

/** True for Node's errors of sockets and of the name service. */
function isSystemError(error: unknown): boolean {
  if (error instanceof AggregateError) return error.errors.every(isSystemError);
  return error instanceof Error && 'syscall' in error;
}

/* Errors of opening and migrating a schema, for one line of the command line; none contains an address or a password. */

/** The schema lacks tables or indexes of the declaration; `comity migrate` adds them. */
export class SchemaOutdated extends Error {
  override readonly name = 'SchemaOutdated';
  readonly code = 'schema_outdated';
  readonly missing: readonly string[];

  constructor(schema: string, missing: readonly string[]) {
    super(`the schema "${schema}" lacks what the configuration declares: ${briefly(missing)}`);
    this.missing = missing;
  }
}

/** The schema was made by a newer version, whose tables this one does not know. */
export class SchemaTooNew extends Error {
  override readonly name = 'SchemaTooNew';
  readonly code = 'schema_too_new';

  constructor(schema: string, found: number, known: number) {
    super(
      `the schema "${schema}" was made by a newer version of Comity (schema ${found}; this version supports up to ${known})`,
    );
  }
}

type Unfitness = 'version' | 'encoding' | 'standby' | 'read-only' | 'rights' | 'occupied' | 'pooler';

/** The server, or this user's rights on it, cannot serve as the store. The message says what to do. */
export class UnfitServer extends Error {
  override readonly name = 'UnfitServer';
  readonly code = 'store_unfit_server';
  readonly unfitness: Unfitness;

  constructor(unfitness: Unfitness, message: string) {
    super(message);
    this.unfitness = unfitness;
  }
}

/** Another process migrates the schema, or a transaction blocks a step, for longer than the timeout. */
export class SchemaBusy extends Error {
  override readonly name = 'SchemaBusy';
  readonly code = 'schema_busy';
}

/** The connection failed, or the server failed a statement; `cause` is the original error, with its code. */
export class DatabaseFailed extends Error {
  override readonly name = 'DatabaseFailed';
  readonly code = 'database_failed';

  constructor(cause: unknown) {
    super(cause instanceof Error ? cause.message : String(cause), { cause });
  }
}

const namedMax = 3;

function briefly(things: readonly string[]): string {
  const named = things.slice(0, namedMax).join(', ');
  return things.length > namedMax ? `${named} and ${things.length - namedMax} more` : named;
}
