/**
 * Row count and digest of each table, written into a backup and checked by a restore: SQLite detects damaged pages, but not a changed
 * letter. A store in use has no digests, since the next write would outdate them.
 */
import { createHash, type Hash } from 'node:crypto';
import type { DatabaseSync } from 'node:sqlite';
import { quoteName } from '../quote-name.ts';
import { columnNamesOf, type FileTable } from './layout.ts';

const table = 'comity_digests';

export type TableDigest = { readonly rows: number; readonly digest: string };

/** Digests the rows of a table in the order of writing; values in the order of `columnNamesOf`. */
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

/** The digests in the file; empty for a file of an earlier version. */
export function readDigests(database: DatabaseSync): ReadonlyMap<string, TableDigest> {
  const there = database.prepare(`SELECT 1 FROM sqlite_schema WHERE name = ?`).get(table);
  if (there === undefined) return new Map();
  const rows = database.prepare(`SELECT name, rows, digest FROM ${table}`).all();
  return new Map(
    rows.map((row) => [String(row.name), { rows: Number(row.rows), digest: String(row.digest) }]),
  );
}

/** Compares the file with its digests. @returns the first difference */
export function digestFault(database: DatabaseSync): string | undefined {
  const written = readDigests(database);
  for (const each of written.size === 0 ? [] : tablesOf(database)) {
    const fault = differenceOf(each.name, written.get(each.name), digestOf(database, each));
    if (fault !== undefined) return fault;
  }
  return undefined;
}

/** @param written undefined if the file has no digest of the table */
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
  const columns = database.prepare('SELECT 1 FROM pragma_table_info(?) WHERE name = ?');
  return database
    .prepare('SELECT name FROM comity_counters WHERE n > 0 ORDER BY n')
    .all()
    .map((row) => {
      const name = String(row.name);
      const has = (column: string): boolean => columns.get(name, column) !== undefined;
      return { name, searched: has('search'), traced: has('former') };
    });
}

function digestOf(database: DatabaseSync, each: FileTable): TableDigest {
  const columns = columnNamesOf(each).join(', ');
  const select = database.prepare(`SELECT ${columns} FROM ${quoteName(each.name)} ORDER BY rowid`);
  select.setReturnArrays(true);
  const digest = new RowDigest();
  for (const row of select.iterate()) digest.add(row as unknown as readonly unknown[]);
  return digest.end();
}
