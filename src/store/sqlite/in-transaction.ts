/** One transaction around a piece of work, within which others that begin one join it. */
import type { DatabaseSync } from 'node:sqlite';

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
