/**
 * Which store a backup was made of. A restore into the same place continues that store; into another one it makes a copy, beside which the
 * first may still be served. A store in use has no origin, as it has no digests.
 */
import { realpathSync } from 'node:fs';
import { hostname } from 'node:os';
import type { DatabaseSync } from 'node:sqlite';

const table = 'comity_origin';

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

/** @param folder of an embedded store, which exists */
export function folderOrigin(folder: string): string {
  return `${hostname()}:${realpathSync(folder)}`;
}

export function writeOrigin(database: DatabaseSync, origin: string): void {
  dropOrigin(database);
  database.exec(`CREATE TABLE ${table} (place TEXT NOT NULL)`);
  database.prepare(`INSERT INTO ${table} VALUES (?)`).run(origin);
}

/** @returns undefined for a file of an earlier version */
export function readOrigin(database: DatabaseSync): string | undefined {
  const there = database.prepare('SELECT 1 FROM sqlite_schema WHERE name = ?').get(table);
  if (there === undefined) return undefined;
  return String(database.prepare(`SELECT place FROM ${table}`).get()?.place);
}

export function dropOrigin(database: DatabaseSync): void {
  database.exec(`DROP TABLE IF EXISTS ${table}`);
}
