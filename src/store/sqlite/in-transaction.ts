/** One transaction around a piece of work, within which others that begin one join it. */
import type { DatabaseSync } from 'node:sqlite';

/** Commits what `work` does, or none of it if it throws. Within a transaction it is part of that one. */
export function inTransaction(database: DatabaseSync, work: () => void): void {
  if (database.isTransaction) {
    work();
    return;
  }
  database.exec('BEGIN IMMEDIATE');
  try {
    work();
    database.exec('COMMIT');
  } catch (error) {
    if (database.isTransaction) database.exec('ROLLBACK');
    throw error;
  }
}
