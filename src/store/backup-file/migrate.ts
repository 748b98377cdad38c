/**
 * Migrates the system tables of a file to this version, forwards only. `user_version` of the file is the number of the last migration; the
 * tables of collections are reconciled instead (sqlite/reconcile.ts).
 */
import type { DatabaseSync } from 'node:sqlite';
import type { Observe } from '../../observe/observation.ts';

/** The store-wide revision counter (row 0) and, for every table, the last revision that touched it. */
const counters = `
CREATE TABLE comity_counters (
  n INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  rev INTEGER NOT NULL
);
INSERT INTO comity_counters (n, name, rev) VALUES (0, '', 0);
`;

/** The ranges over which the counter was raised (raised-revision.ts): revisions above `before`, up to `after`. `made_at` in milliseconds; `server` is of PostgreSQL. */
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
