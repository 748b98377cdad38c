/**
 * Reads a file with a whole store, and rejects files that are not one or may be incomplete. It opens the file as immutable, so that the
 * folder may be read-only; therefore it rejects a file with a log beside it, which holds the last commits.
 */
import { closeSync, openSync, readSync, statSync } from 'node:fs';
import { DatabaseSync, type SQLOutputValue } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { purgedCounter, type Raise } from '../revision.ts';
import { quoteName } from '../sql-text.ts';
import {
  columnNamesOf,
  differenceOf,
  type FileTable,
  identify,
  RowDigest,
  raisesVersion,
  readDigests,
  readOrigin,
  UnknownDatabase,
} from './file-format.ts';

export type StoredTable = FileTable & {
  /** The last revision that touched it. */
  readonly rev: number;
  readonly rows: number;
};

export type StoredRow = readonly SQLOutputValue[];

export type StoreFile = {
  readonly rev: number;
  readonly raises: readonly Raise[];
  /** The greatest revision of the events that were purged. */
  readonly purged: number;
  readonly tables: readonly StoredTable[];
  /** As in file-format.ts; undefined for a file of an earlier version. */
  readonly origin: string | undefined;
  /** Reads the rows of a table in the order of writing. @throws UnfitBackup for a damaged file */
  rows(table: StoredTable, columns: readonly string[]): Iterable<StoredRow>;
  close(): void;
};

/** Thrown for a file that cannot be restored. */
export class UnfitBackup extends Error {
  override readonly name = 'UnfitBackup';
  readonly code = 'store_unfit_backup';
}

/** @throws UnfitBackup with a message that names the file and says what to do */
export function readFile(path: string): StoreFile {
  refuseOthers(path);
  const database = openUnchanging(path);
  try {
    return convertErrors(path, () => {
      const version = identify(database, path);
      if (version === 0) throw new UnfitBackup(`${path} holds no store`);
      const { rev, purged, tables } = countsOf(database, path);
      return {
        rev,
        purged,
        raises: version < raisesVersion ? [] : raisesOf(database),
        tables,
        origin: readOrigin(database),
        rows: (table, columns) => rowsOf(database, path, { table, columns, revMax: rev }),
        close: () => database.close(),
      };
    });
  } catch (error) {
    database.close();
    throw error;
  }
}

/** Opens the file read-only, without looking for a log or a lock beside it. */
export function openUnchanging(path: string): DatabaseSync {
  const url = pathToFileURL(path);
  url.searchParams.set('immutable', '1');
  return new DatabaseSync(url, { readOnly: true });
}

const magic = 'SQLite format 3\0';

function refuseOthers(path: string): void {
  const begins = Buffer.alloc(magic.length);
  let file: number;
  try {
    file = openSync(path, 'r');
  } catch (error) {
    throw new UnfitBackup(`cannot read ${path}: ${messageOf(error)}`, { cause: error });
  }
  try {
    readSync(file, begins, 0, begins.length, 0);
  } catch (error) {
    throw new UnfitBackup(`cannot read ${path}: ${messageOf(error)}`, { cause: error });
  } finally {
    closeSync(file);
  }
  if (begins.toString('latin1') !== magic)
    throw new UnfitBackup(`${path} is not a file that "comity backup" wrote`);
  for (const suffix of ['-wal', '-journal']) {
    const log = `${path}${suffix}`;
    if ((statSync(log, { throwIfNoEntry: false })?.size ?? 0) === 0) continue;
    throw new UnfitBackup(
      `${path} is incomplete without its write-ahead log (${log}), as while a server runs; make a backup with "comity backup" and restore that`,
    );
  }
}

function countsOf(database: DatabaseSync, path: string): Pick<StoreFile, 'rev' | 'purged' | 'tables'> {
  const counters = database.prepare('SELECT n, name, rev FROM comity_counters ORDER BY n').all();
  let rev: number | undefined;
  let purged = 0;
  const tables: StoredTable[] = [];
  const columns = database.prepare('SELECT 1 FROM pragma_table_info(?) WHERE name = ?');
  for (const counter of counters) {
    const name = String(counter.name);
    if (counter.n === 0) {
      rev = Number(counter.rev);
      continue;
    }
    if (counter.n === purgedCounter) {
      purged = Number(counter.rev);
      continue;
    }
    const rows = Number(database.prepare(`SELECT count(*) AS rows FROM ${quoteName(name)}`).get()?.rows);
    const has = (column: string): boolean => columns.get(name, column) !== undefined;
    const held = { name, searched: has('search'), traced: has('former') };
    tables.push({ ...held, rev: Number(counter.rev), rows });
  }
  if (rev === undefined) throw new UnfitBackup(`${path} is damaged: it has no revision counter`);
  return { rev, purged, tables };
}

function raisesOf(database: DatabaseSync): readonly Raise[] {
  return database
    .prepare('SELECT before, after, made_at FROM comity_raises ORDER BY before')
    .all()
    .map(({ before, after, made_at }) => ({
      before: Number(before),
      after: Number(after),
      madeAt: Number(made_at),
    }));
}

type Reading = {
  readonly table: StoredTable;
  readonly columns: readonly string[];
  /** The file's revision, which no row can exceed. */
  readonly revMax: number;
};

function* rowsOf(
  database: DatabaseSync,
  path: string,
  { table, columns, revMax }: Reading,
): Generator<StoredRow> {
  const at = columns.indexOf('rev');
  const select = database.prepare(
    `SELECT ${columns.join(', ')} FROM ${quoteName(table.name)} ORDER BY rowid`,
  );
  select.setReturnArrays(true);
  const digest = columns.join() === columnNamesOf(table).join() ? new RowDigest() : undefined;
  const written = digest === undefined ? undefined : readDigests(database).get(table.name);
  const rows = convertErrors(path, () => select.iterate()) as unknown as Iterator<StoredRow>;
  let read = 0;
  for (;;) {
    const { done, value } = convertErrors(path, () => rows.next());
    if (done === true) break;
    if (at !== -1 && Number(value[at]) > revMax) {
      throw new UnfitBackup(
        `${path} is damaged: a row of ${table.name} has a revision above that of the file`,
      );
    }
    read += 1;
    digest?.add(value);
    yield value;
  }
  if (read !== table.rows) {
    throw new UnfitBackup(`${path} is damaged: ${read} of ${table.rows} rows of ${table.name} can be read`);
  }
  const fault =
    digest === undefined || written === undefined
      ? undefined
      : differenceOf(table.name, written, digest.end());
  if (fault !== undefined) throw new UnfitBackup(`${path} is damaged: ${fault}`);
}

/** Converts SQLite's errors to `UnfitBackup` with the file's name. */
function convertErrors<T>(path: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof UnfitBackup) throw error;
    if (error instanceof UnknownDatabase) throw new UnfitBackup(error.message, { cause: error });
    throw new UnfitBackup(`${path} is damaged: ${messageOf(error)}`, { cause: error });
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

export type Restored = {
  readonly rows: number;
  readonly tables: number;
  /** The store-wide revision, from which the store continues. */
  readonly rev: number;
};

/** Thrown when other processes use the store that a restore would fill. */
export class StoreInUse extends Error {
  override readonly name = 'StoreInUse';
  readonly code = 'store_in_use';
}

/** Thrown when a restore finds rows in the store. */
export class NotEmpty extends Error {
  override readonly name = 'NotEmpty';
  readonly code = 'store_not_empty';
}
