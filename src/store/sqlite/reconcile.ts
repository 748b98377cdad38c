/**
 * Makes the tables and indexes of the file those that are declared: what is missing is made, an index no longer declared is
 * dropped, a table no longer declared is kept as it is. Each index is its own transaction, so a start
 * that was interrupted goes on where it was.
 */
import type { DatabaseSync } from 'node:sqlite';
import type { Observe } from '../../observe/observation.ts';
import { quoteName } from '../quote-name.ts';
import type { Layout } from './layout.ts';

/** The number under which each table's revision is counted, by the table's name. */
export type TableNumbers = ReadonlyMap<string, number>;

export function reconcile(
  database: DatabaseSync,
  layouts: readonly Layout[],
  observe: Observe,
): TableNumbers {
  const numbers = countersOf(database);
  const found = new Map<string, string>();
  const indexes = database.prepare(
    `SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND tbl_name = ?`,
  );
  for (const layout of layouts) {
    const { name } = layout.table;
    if (!numbers.has(name)) createTable(database, layout, observe);
    else if (layout.table.searched) addSearchColumn(database, layout, observe);
    for (const row of indexes.all(name)) {
      if (row.sql !== null) found.set(String(row.name), String(row.sql));
    }
    for (const index of layout.indexes) {
      const sql = found.get(index.name);
      found.delete(index.name);
      if (sql === index.sql) continue;
      const started = performance.now();
      const drop = sql === undefined ? '' : `DROP INDEX ${quoteName(index.name)};`;
      change(database, `${drop} ${index.sql}`, `index ${index.name}`);
      observe({
        kind: 'store-migrated',
        what: `index ${index.name}`,
        durationMs: performance.now() - started,
      });
    }
  }
  for (const name of found.keys()) {
    change(database, `DROP INDEX ${quoteName(name)}`, `index ${name}`);
    observe({ kind: 'store-migrated', what: `index ${name} dropped`, durationMs: 0 });
  }
  return countersOf(database);
}

/** Thrown when rows already stored stand against what is declared, such as a value that became unique. */
export class UnfitRows extends Error {
  override readonly name = 'UnfitRows';
  readonly code = 'store_unfit_rows';
}

function createTable(database: DatabaseSync, layout: Layout, observe: Observe): void {
  const started = performance.now();
  database.exec('BEGIN IMMEDIATE');
  try {
    database.exec(layout.createSql);
    database.prepare('INSERT INTO comity_counters (name, rev) VALUES (?, 0)').run(layout.table.name);
    database.exec('COMMIT');
  } catch (error) {
    database.exec('ROLLBACK');
    throw error;
  }
  observe({
    kind: 'store-migrated',
    what: `table ${layout.table.name}`,
    durationMs: performance.now() - started,
  });
}

/** Rows written before the table was searched are found again once they are written the next time. */
function addSearchColumn(database: DatabaseSync, layout: Layout, observe: Observe): void {
  const columns = database.prepare('SELECT name FROM pragma_table_info(?)').all(layout.table.name);
  if (columns.some((column) => column.name === 'search')) return;
  database.exec(`ALTER TABLE ${layout.name} ADD COLUMN search TEXT`);
  observe({ kind: 'store-migrated', what: `search text of ${layout.table.name}`, durationMs: 0 });
}

function change(database: DatabaseSync, sql: string, what: string): void {
  database.exec('BEGIN IMMEDIATE');
  try {
    database.exec(`${sql}; COMMIT`);
  } catch (error) {
    if (database.isTransaction) database.exec('ROLLBACK');
    const reason = error instanceof Error ? error.message : String(error);
    throw new UnfitRows(`cannot make ${what}: ${reason}`, { cause: error });
  }
}

function countersOf(database: DatabaseSync): TableNumbers {
  const rows = database.prepare('SELECT n, name FROM comity_counters WHERE n > 0').all();
  return new Map(rows.map((row) => [String(row.name), Number(row.n)]));
}
