/**
 * Reads a file that holds a whole store, and refuses what is not one or cannot be trusted to be whole. The file is opened as one that nobody
 * changes, so that it may stand where nothing can be written; for the same reason a file with a log beside it is
 * refused: what was committed last stands in there.
 */
import { closeSync, openSync, readSync, statSync } from 'node:fs';
import { DatabaseSync, type SQLOutputValue } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { quoteName } from '../quote-name.ts';
import { differenceOf, RowDigest, readDigests } from './digests.ts';
import { columnNamesOf, type FileTable } from './layout.ts';
import { identify, migrationsMade, UnknownDatabase } from './migrate.ts';

/** A table with what is counted of it. */
export type StoredTable = FileTable & {
  /** The last revision that touched it. */
  readonly rev: number;
  readonly rows: number;
};

/** Values in the order of the columns asked for. */
export type StoredRow = readonly SQLOutputValue[];

export type StoreFile = {
  /** The store-wide revision. */
  readonly rev: number;
  readonly tables: readonly StoredTable[];
  /** The rows of a table in the order in which they were written. @throws UnfitBackup when the file is damaged */
  rows(table: StoredTable, columns: readonly string[]): Iterable<StoredRow>;
  close(): void;
};

/** Thrown for a file that nothing can be restored from. */
export class UnfitBackup extends Error {
  override readonly name = 'UnfitBackup';
  readonly code = 'store_unfit_backup';
}

/** @throws UnfitBackup, whose message names the file and says what to do */
export function readFile(path: string): StoreFile {
  refuseOthers(path);
  const database = openUnchanging(path);
  try {
    return judged(path, () => {
      const version = identify(database, path);
      if (version < migrationsMade) {
        throw new UnfitBackup(
          version === 0
            ? `${path} holds no store`
            : `${path} is of an older version; put it in a data folder, start the server on it, and back that up`,
        );
      }
      const { rev, tables } = countsOf(database, path);
      return {
        rev,
        tables,
        rows: (table, columns) => rowsOf(database, path, { table, columns, revMax: rev }),
        close: () => database.close(),
      };
    });
  } catch (error) {
    database.close();
    throw error;
  }
}

/** Opens the file for reading alone, without looking for a log or a lock beside it. */
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
      `${log} stands beside the file and holds a part of it, as while a server runs; copy that store with "comity backup" first`,
    );
  }
}

function countsOf(database: DatabaseSync, path: string): Pick<StoreFile, 'rev' | 'tables'> {
  const counters = database.prepare('SELECT n, name, rev FROM comity_counters ORDER BY n').all();
  let rev: number | undefined;
  const tables: StoredTable[] = [];
  const columns = database.prepare(`SELECT 1 FROM pragma_table_info(?) WHERE name = 'search'`);
  for (const counter of counters) {
    const name = String(counter.name);
    if (counter.n === 0) {
      rev = Number(counter.rev);
      continue;
    }
    const rows = Number(database.prepare(`SELECT count(*) AS rows FROM ${quoteName(name)}`).get()?.rows);
    tables.push({ name, searched: columns.get(name) !== undefined, rev: Number(counter.rev), rows });
  }
  if (rev === undefined) throw new UnfitBackup(`${path} is damaged: it counts no revisions`);
  return { rev, tables };
}

type Reading = {
  readonly table: StoredTable;
  readonly columns: readonly string[];
  /** No row can be newer than what the file counts. */
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
  const rows = judged(path, () => select.iterate()) as unknown as Iterator<StoredRow>;
  let read = 0;
  for (;;) {
    const { done, value } = judged(path, () => rows.next());
    if (done === true) break;
    if (at !== -1 && Number(value[at]) > revMax) {
      throw new UnfitBackup(`${path} is damaged: a row of ${table.name} is newer than the file counts`);
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

/** What SQLite says of a file that it cannot read is put into words that name the file. */
function judged<T>(path: string, read: () => T): T {
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
