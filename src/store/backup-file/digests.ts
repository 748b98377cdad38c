/**
 * Row count and digest of each table, kept in a backup and compared when it is restored: SQLite finds pages that are out of order, and not
 * a letter that changed. A store that is served from has none, since they would be out of date with the next write.
 */
import { createHash, type Hash } from 'node:crypto';
import type { DatabaseSync } from 'node:sqlite';
import { quoteName } from '../quote-name.ts';
import { columnNamesOf, type FileTable } from './layout.ts';

const table = 'comity_digests';

export type TableDigest = { readonly rows: number; readonly digest: string };

/** Adds up the rows of a table in the order in which they were written; values in the order of `columnNamesOf`. */
export class RowDigest {
  readonly #hash: Hash = createHash('sha256');
  #rows = 0;

  add(row: readonly unknown[]): void {
    this.#rows += 1;
    this.#hash.update(JSON.stringify(row));
  }

  end(): TableDigest {
    return { rows: this.#rows, digest: this.#hash.digest('hex') };
  }
}

export function dropDigests(database: DatabaseSync): void {
  database.exec(`DROP TABLE IF EXISTS ${table}`);
}

/** Writes the digests of all tables into the file. */
export function writeDigests(database: DatabaseSync): void {
  dropDigests(database);
  database.exec(
    `CREATE TABLE ${table} (name TEXT PRIMARY KEY NOT NULL, rows INTEGER NOT NULL, digest TEXT NOT NULL)`,
  );
  const insert = database.prepare(`INSERT INTO ${table} VALUES (?, ?, ?)`);
  for (const each of tablesOf(database)) {
    const { rows, digest } = digestOf(database, each);
    insert.run(each.name, rows, digest);
  }
}

/** The digests that the file has; empty where it has none, as one of an earlier version. */
export function readDigests(database: DatabaseSync): ReadonlyMap<string, TableDigest> {
  const there = database.prepare(`SELECT 1 FROM sqlite_schema WHERE name = ?`).get(table);
  if (there === undefined) return new Map();
  const rows = database.prepare(`SELECT name, rows, digest FROM ${table}`).all();
  return new Map(
    rows.map((row) => [String(row.name), { rows: Number(row.rows), digest: String(row.digest) }]),
  );
}

/** What of the file differs from its digests; undefined where nothing does. */
export function digestFault(database: DatabaseSync): string | undefined {
  const written = readDigests(database);
  for (const each of written.size === 0 ? [] : tablesOf(database)) {
    const fault = differenceOf(each.name, written.get(each.name), digestOf(database, each));
    if (fault !== undefined) return fault;
  }
  return undefined;
}

/** @param written undefined: the file has none for the table */
export function differenceOf(
  name: string,
  written: TableDigest | undefined,
  found: TableDigest,
): string | undefined {
  if (written === undefined) return `it has no digest of ${name}`;
  if (written.rows !== found.rows) return `${found.rows} of ${written.rows} rows of ${name} can be read`;
  return written.digest === found.digest ? undefined : `rows of ${name} were changed`;
}

function tablesOf(database: DatabaseSync): readonly FileTable[] {
  const columns = database.prepare(`SELECT 1 FROM pragma_table_info(?) WHERE name = 'search'`);
  return database
    .prepare('SELECT name FROM comity_counters WHERE n > 0 ORDER BY n')
    .all()
    .map(({ name }) => ({ name: String(name), searched: columns.get(String(name)) !== undefined }));
}

function digestOf(database: DatabaseSync, each: FileTable): TableDigest {
  const columns = columnNamesOf(each).join(', ');
  const select = database.prepare(`SELECT ${columns} FROM ${quoteName(each.name)} ORDER BY rowid`);
  select.setReturnArrays(true);
  const digest = new RowDigest();
  for (const row of select.iterate()) digest.add(row as unknown as readonly unknown[]);
  return digest.end();
}
