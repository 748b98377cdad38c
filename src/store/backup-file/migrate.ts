/**
 * Brings the system tables of a file up to this program's version, forwards only. `user_version` of the file holds the number of the
 * last migration made; the tables of collections are not migrated but reconciled (sqlite/reconcile.ts).
 */
import type { DatabaseSync } from 'node:sqlite';
import type { Observe } from '../../observe/observation.ts';
import { counters } from './migrations/0001-counters.ts';

/** In order; a migration that has been released is never edited. */
const migrations: readonly { readonly name: string; readonly sql: string }[] = [
  { name: '0001-counters', sql: counters },
];

/** How many there are, which is what `user_version` of an up-to-date file says. */
export const migrationsMade: number = migrations.length;

/** "CMTY": marks the file as this program's in the eyes of `file` and of later versions. */
const applicationId = 0x434d5459;

/** Thrown for a file that this program must not touch. */
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
 * How many migrations were made in the file; 0 for an empty one.
 * @throws UnknownDatabase for a file that is not this program's, or is newer than the program
 */
export function identify(database: DatabaseSync, path: string): number {
  const version = pragma(database, 'user_version');
  const application = pragma(database, 'application_id');
  if (application !== applicationId && (application !== 0 || version !== 0 || !isEmpty(database))) {
    throw new UnknownDatabase(`${path} is a database of another program`);
  }
  if (version > migrations.length) {
    throw new UnknownDatabase(
      `${path} was written by a newer version of the program (schema ${version}, this one knows ${migrations.length})`,
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
