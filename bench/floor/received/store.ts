/** The table of the receiving floors in SQLite, and keys that are in it before. */
import { DatabaseSync } from 'node:sqlite';
import { dedupeKey, seededKey } from '../../received/messages.ts';

/** Makes a new database with this many keys, by a transaction that need not survive a crash. */
export function seedReceived(file: string, count: number): void {
  const database = new DatabaseSync(file);
  database.exec(
    `PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; PRAGMA cache_size = -262144;
     CREATE TABLE received (id TEXT PRIMARY KEY NOT NULL, body TEXT NOT NULL, at INTEGER NOT NULL); BEGIN`,
  );
  const insert = database.prepare("INSERT INTO received VALUES (?, '{}', 0)");
  // Every second one and then those between, so that the leaves of the index are as full as they are after a year.
  for (const first of [0, 1]) {
    for (let index = first; index < count; index += 2)
      insert.run(dedupeKey('standard', seededKey(index, count)));
  }
  database.exec('COMMIT; PRAGMA wal_checkpoint(TRUNCATE)');
  database.close();
}
