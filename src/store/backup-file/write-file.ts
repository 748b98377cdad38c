/**
 * Writes a store into a fresh file that the embedded store opens like one of its own: the tables with their rows, and the counters, from
 * which revisions go on. Nothing is safe before the file is closed and published (publish.ts), so nothing is
 * journalled; indexes are left to whoever opens the file.
 */
import { DatabaseSync, type SQLInputValue } from 'node:sqlite';
import { quoteName } from '../quote-name.ts';
import { writeDigests } from './digests.ts';
import { columnNamesOf, createTableSql, type FileTable } from './layout.ts';
import { migrate } from './migrate.ts';

/** A table as it is counted: its number and the last revision that touched it. */
export type CountedTable = FileTable & { readonly number: number; readonly rev: number };

/** Values in the order of `columnNamesOf`. */
export type FileRow = readonly SQLInputValue[];

export type FileWriter = {
  insert(table: FileTable, rows: Iterable<FileRow>): void;
  /** What was written is in the file after this, though not yet on disk. */
  close(): void;
};

/**
 * @param path an empty file
 * @param rev the store-wide revision
 */
export function writeFile(path: string, rev: number, tables: readonly CountedTable[]): FileWriter {
  const database = new DatabaseSync(path, { enableForeignKeyConstraints: false });
  database.exec(
    'PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -16384',
  );
  migrate(database, path, ignore);
  database.exec('BEGIN');
  database.prepare('UPDATE comity_counters SET rev = ? WHERE n = 0').run(rev);
  const count = database.prepare('INSERT INTO comity_counters (n, name, rev) VALUES (?, ?, ?)');
  for (const table of tables) {
    database.exec(createTableSql(table));
    count.run(table.number, table.name, table.rev);
  }
  return {
    insert(table, rows) {
      const columns = columnNamesOf(table);
      const places = columns.map(() => '?').join(', ');
      const insert = database.prepare(
        `INSERT INTO ${quoteName(table.name)} (${columns.join(', ')}) VALUES (${places})`,
      );
      for (const row of rows) insert.run(...row);
    },
    close() {
      writeDigests(database);
      database.exec('COMMIT');
      database.close();
    },
  };
}

function ignore(): void {
  // Making a file anew is not worth telling.
}
