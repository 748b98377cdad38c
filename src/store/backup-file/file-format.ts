/**
 * The format of the file that holds a whole store, which is the embedded store's file and a backup of either engine: the tables, the
 * migrations of the system tables, and, in a backup, its origin and digests. Indexes are not part of it: the embedded store creates them
 * when it opens a file (sqlite/sqlite-schema.ts).
 *
 * A row has a rowid besides its id, so that long documents do not enlarge the tree of ids. `doc` is last but for the search text, so that
 * reading the small columns never touches overflow pages.
 */
import { createHash, type Hash } from 'node:crypto';
import { realpathSync } from 'node:fs';
import { hostname } from 'node:os';
import type { DatabaseSync } from 'node:sqlite';
import type { Observe } from '../../observe/observation.ts';
import { quoteName } from '../sql-text.ts';
import { eventsTable } from '../store.ts';

export type FileTable = {
  readonly name: string;
  /** True if rows carry search text. */
  readonly searched: boolean;
  /** True if events carry the id of their resource and its former representation; absent: no. Older files lack them. */
  readonly traced?: boolean;
};

type Column = readonly [name: string, declaration: string];

const firstColumns: readonly Column[] = [
  ['id', 'TEXT PRIMARY KEY NOT NULL'],
  ['rev', 'INTEGER NOT NULL'],
  ['owner', 'TEXT'],
  ['created_at', 'INTEGER NOT NULL'],
  ['updated_at', 'INTEGER NOT NULL'],
  ['deleted_at', 'INTEGER'],
];

const eventColumns: readonly Column[] = [
  ['type', 'TEXT NOT NULL'],
  ['collection', 'TEXT NOT NULL'],
];

/** Null in events of earlier versions, and in events about no resource; `former` is set by updates only. */
export const tracedColumns: readonly Column[] = [
  ['document', 'TEXT'],
  ['former', 'TEXT'],
];

/** Names of the columns in order; PostgreSQL's tables have the same. */
export function columnNamesOf(table: FileTable): readonly string[] {
  return columnsOf(table).map(([name]) => name);
}

export function createTableSql(table: FileTable): string {
  const columns = columnsOf(table).map((column) => column.join(' '));
  return `CREATE TABLE ${quoteName(table.name)} (\n  ${columns.join(',\n  ')}\n)`;
}

function columnsOf(table: FileTable): readonly Column[] {
  const columns = [...firstColumns];
  if (table.name === eventsTable) columns.push(...eventColumns);
  if (table.traced === true) columns.push(...tracedColumns);
  columns.push(['doc', 'TEXT NOT NULL']);
  if (table.searched) columns.push(['search', 'TEXT']);
  return columns;
}

/*
 * Migrates the system tables of a file to this version, forwards only. `user_version` of the file is the number of the last migration; the
 * tables of collections are reconciled instead (sqlite/sqlite-schema.ts).
 */

/** The store-wide revision counter (row 0) and, for every table, the last revision that touched it. */
const counters = `
CREATE TABLE comity_counters (
  n INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  rev INTEGER NOT NULL
);
INSERT INTO comity_counters (n, name, rev) VALUES (0, '', 0);
`;

/** The ranges over which the counter was raised (revision.ts): revisions above `before`, up to `after`. `made_at` in milliseconds; `server` is of PostgreSQL. */
const raises = `
CREATE TABLE comity_raises (
  before INTEGER PRIMARY KEY,
  after INTEGER NOT NULL,
  made_at INTEGER NOT NULL,
  server TEXT NOT NULL DEFAULT ''
);
`;

/** In order; a released migration is never edited. */
const migrations: readonly { readonly name: string; readonly sql: string }[] = [
  { name: '0001-counters', sql: counters },
  { name: '0002-raises', sql: raises },
];

/** The first version with the table `comity_raises`. */
export const raisesVersion = 2;

/** "CMTY": identifies Comity's files for `file` and for later versions. */
const applicationId = 0x434d5459;

/** Thrown for a file that Comity must not touch. */
export class UnknownDatabase extends Error {
  override readonly name = 'UnknownDatabase';
  readonly code = 'store_unknown_database';
}

/** @throws UnknownDatabase */
export function migrate(database: DatabaseSync, path: string, observe: Observe): void {
  const version = identify(database, path);
  for (const [index, { name, sql }] of migrations.entries()) {
    if (index < version) continue;
    const started = performance.now();
    database.exec(`BEGIN IMMEDIATE; ${sql}
      PRAGMA application_id = ${applicationId}; PRAGMA user_version = ${index + 1}; COMMIT`);
    observe({ kind: 'store-migrated', what: name, durationMs: performance.now() - started });
  }
}

/**
 * The number of migrations made in the file; 0 for an empty file.
 * @throws UnknownDatabase for a file of another program or of a newer version
 */
export function identify(database: DatabaseSync, path: string): number {
  const version = pragma(database, 'user_version');
  const application = pragma(database, 'application_id');
  if (application !== applicationId && (application !== 0 || version !== 0 || !isEmpty(database))) {
    throw new UnknownDatabase(`${path} is a database of another program`);
  }
  if (version > migrations.length) {
    throw new UnknownDatabase(
      `${path} was written by a newer version of Comity (schema ${version}; this version supports up to ${migrations.length}); run the newer program`,
    );
  }
  return version;
}

function pragma(database: DatabaseSync, name: string): number {
  return Number(database.prepare(`PRAGMA ${name}`).get()?.[name]);
}

function isEmpty(database: DatabaseSync): boolean {
  return database.prepare('SELECT 1 FROM sqlite_schema LIMIT 1').get() === undefined;
}

/*
 * Which store a backup was made of. A restore into the same place continues that store; into another one it makes a copy, beside which the
 * first may still be served. A store in use has no origin, as it has no digests.
 */

const originTable = 'comity_origin';

/** A row that a restore leaves in the store whatever the file has, in a table of Comity's own. */
export type SetRow = {
  readonly table: string;
  readonly id: string;
  /** Undefined: there is no such row. */
  readonly doc: string | undefined;
  /** Milliseconds since the epoch. */
  readonly at: number;
};

/** @param sameStore whether the backup was made of a store in the place that it is restored into */
export type RowToSet = (sameStore: boolean) => SetRow;

/** Runs before the first row of a restore is written, in a store that is known to be empty. @param sameStore as for `RowToSet` */
export type BeforeRestore = (sameStore: boolean) => Promise<void>;

/** @param folder of an embedded store, which exists */
export function folderOrigin(folder: string): string {
  return `${hostname()}:${realpathSync(folder)}`;
}

function writeOrigin(database: DatabaseSync, origin: string): void {
  database.exec(`CREATE TABLE ${originTable} (place TEXT NOT NULL)`);
  database.prepare(`INSERT INTO ${originTable} VALUES (?)`).run(origin);
}

/** @returns undefined for a file of an earlier version */
export function readOrigin(database: DatabaseSync): string | undefined {
  const there = database.prepare('SELECT 1 FROM sqlite_schema WHERE name = ?').get(originTable);
  if (there === undefined) return undefined;
  return String(database.prepare(`SELECT place FROM ${originTable}`).get()?.place);
}

/*
 * Row count and digest of each table, written into a backup and checked by a restore: SQLite detects damaged pages, but not a changed
 * letter. A store in use has no digests, since the next write would outdate them.
 */

const digestsTable = 'comity_digests';

type TableDigest = { readonly rows: number; readonly digest: string };

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

/** Makes a copy of a store a backup. */
export function markBackup(database: DatabaseSync, origin: string): void {
  unmarkBackup(database);
  writeOrigin(database, origin);
  writeDigests(database);
}

/** Before a store is used. */
export function unmarkBackup(database: DatabaseSync): void {
  for (const table of [originTable, digestsTable]) database.exec(`DROP TABLE IF EXISTS ${table}`);
}

function writeDigests(database: DatabaseSync): void {
  database.exec(
    `CREATE TABLE ${digestsTable} (name TEXT PRIMARY KEY NOT NULL, rows INTEGER NOT NULL, digest TEXT NOT NULL)`,
  );
  const insert = database.prepare(`INSERT INTO ${digestsTable} VALUES (?, ?, ?)`);
  for (const each of tablesOf(database)) {
    const { rows, digest } = digestOf(database, each);
    insert.run(each.name, rows, digest);
  }
}

/** The digests in the file; empty for a file of an earlier version. */
export function readDigests(database: DatabaseSync): ReadonlyMap<string, TableDigest> {
  const there = database.prepare(`SELECT 1 FROM sqlite_schema WHERE name = ?`).get(digestsTable);
  if (there === undefined) return new Map();
  const rows = database.prepare(`SELECT name, rows, digest FROM ${digestsTable}`).all();
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
