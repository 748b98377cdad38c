/**
 * Connections to the file: opened for a role, their transactions, prepared statements and errors. WAL lets readers continue during commits;
 * `synchronous=FULL` makes commits survive power loss.
 */
import { DatabaseSync, type SQLOutputValue, type StatementSync } from 'node:sqlite';
import { OctetCache } from '../../memory/octet-cache.ts';
import { foldCase } from '../../model/fold-case.ts';
import { type StorageFault, StoreUnavailable } from '../store.ts';

type Role = 'writer' | 'reader';

export type ConnectionOptions = {
  readonly cacheKibibytes: number;
  readonly busyTimeoutMs: number;
  /** Bytes of the database file that readers map instead of copying; 0 maps nothing. */
  readonly mappedBytesMax: number;
  /** Limit of the database file in pages of 4 KiB; undefined leaves SQLite's own. */
  readonly pagesMax?: number | undefined;
  /** False: a commit may be lost with the machine, for the stores of tests (src/testing.ts). */
  readonly durable?: boolean;
};

/** Pages in the log before a checkpoint, 16 MiB: moves often changed pages once, and its index still fits the processor's cache. */
const checkpointPages = 4096;

export function connect(path: string, role: Role, options: ConnectionOptions): DatabaseSync {
  const database = new DatabaseSync(path, {
    timeout: options.busyTimeoutMs,
    enableForeignKeyConstraints: false,
    enableDoubleQuotedStringLiterals: false,
  });
  installFold(database);
  database.exec(`PRAGMA cache_size = ${-options.cacheKibibytes}`);
  if (role === 'reader') {
    // Reads by id among 10^6 rows (400 MB) were 1.3 times as fast with the file mapped, and equal among 10^3. A search
    // among 10^6 (2 GB) cost 0.8 of what it costs with half of the file mapped.
    database.exec(`PRAGMA query_only = ON; PRAGMA mmap_size = ${options.mappedBytesMax}`);
    return database;
  }
  database.exec(`PRAGMA journal_mode = WAL;
    PRAGMA synchronous = ${options.durable === false ? 'OFF' : 'FULL'};
    PRAGMA secure_delete = ON;
    PRAGMA wal_autocheckpoint = ${checkpointPages};
    PRAGMA journal_size_limit = 67108864`);
  if (options.pagesMax !== undefined) database.exec(`PRAGMA max_page_count = ${options.pagesMax}`);
  return database;
}

/**
 * Installs the function of indexes that ignore case. Other programs read a file with such an index, and cannot write to its table: SQLite
 * accepts an unknown function until it must call it.
 */
export function installFold(database: DatabaseSync): void {
  database.function('comity_fold', { deterministic: true }, (text) =>
    typeof text === 'string' ? foldCase(text) : null,
  );
}

/** Column values in messages between threads and from statements that return arrays. */
export type Cells = readonly SQLOutputValue[];

/** Commits what `work` does, or none of it if it throws, and returns what it returns. Within a transaction it is part of that one. */
export function inTransaction<T>(database: DatabaseSync, work: () => T): T {
  if (database.isTransaction) return work();
  database.exec('BEGIN IMMEDIATE');
  try {
    const made = work();
    database.exec('COMMIT');
    return made;
  } catch (error) {
    if (database.isTransaction) database.exec('ROLLBACK');
    throw error;
  }
}

/**
 * SQLite's memory for a statement: 4,700 octets for a text of 157 characters, 7,000 for 442, 38,700 for 2,952; rounded up. The text is held
 * twice, by SQLite and as the key.
 */
const statementOctets = 4096;
const octetsPerCharacter = 13;

/** Prepared statements by their text, bounded by SQLite's memory for them. Queries of the same shape share a statement. */
export class StatementCache {
  readonly #database: DatabaseSync;
  readonly #statements: OctetCache<StatementSync>;

  constructor(database: DatabaseSync, octetsMax: number) {
    this.#database = database;
    this.#statements = new OctetCache({
      octetsMax,
      octetsOf: (_, sql) => statementOctets + octetsPerCharacter * sql.length,
    });
  }

  /** Returns rows as arrays. A dropped statement is not closed: a caller may be about to run it. */
  prepare(sql: string): StatementSync {
    const kept = this.#statements.get(sql);
    if (kept !== undefined) return kept;
    const statement = this.#database.prepare(sql);
    statement.setReturnArrays(true);
    this.#statements.set(sql, statement);
    return statement;
  }

  /** Drops a statement that failed during iteration, because its next `iterate` would throw the same error again. */
  drop(sql: string): void {
    this.#statements.delete(sql);
  }
}

/* Classifies SQLite's errors: failures of storage (`StoreUnavailable`), and mistakes in statements, which only the caller can fix. */

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
