/**
 * Reconciles the tables and indexes of the file with the declared ones: creates missing ones, drops indexes no longer declared, keeps
 * tables no longer declared. Each index is a transaction of its own, so an interrupted start continues where it was; a new file is one
 * transaction.
 */
import type { DatabaseSync } from 'node:sqlite';
import type { Observe } from '../../observe/observation.ts';
import { tracedColumns } from '../backup-file/layout.ts';
import { rowColumns } from '../kept-row.ts';
import { quoteName } from '../quote-name.ts';
import { eventsTable } from '../store.ts';
import { inTransaction } from './in-transaction.ts';
import type { Layout } from './table-layout.ts';
import { reconcileViews } from './views.ts';
import { pendingIndex, reconcileWords } from './word-index.ts';

/** The number of each table in the counters, by the table's name. */
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
    else if (name === eventsTable) addTracedColumns(database, layout, observe);
    for (const row of indexes.all(name)) {
      if (row.sql !== null) found.set(String(row.name), String(row.sql));
    }
    for (const index of allIndexes(layout)) {
      const sql = found.get(index.name);
      found.delete(index.name);
      if (sql === index.sql) continue;
      const started = performance.now();
      const drop = sql === undefined ? '' : `DROP INDEX ${quoteName(index.name)};`;
      change(database, `${drop} ${index.sql}`, index.name);
      observe({
        kind: 'store-migrated',
        what: `index ${index.name}`,
        durationMs: performance.now() - started,
      });
    }
  }
  for (const { table, words } of layouts) reconcileWords(database, table, words, observe);
  reconcileViews(
    database,
    layouts.map(({ table }) => table),
  );
  for (const name of found.keys()) {
    change(database, `DROP INDEX ${quoteName(name)}`, name);
    observe({ kind: 'store-migrated', what: `index ${name} dropped`, durationMs: 0 });
  }
  return countersOf(database);
}

function allIndexes({
  table,
  indexes,
  words,
}: Layout): readonly { readonly name: string; readonly sql: string }[] {
  return words === undefined ? indexes : [...indexes, pendingIndex(table, words)];
}

/** Thrown if stored rows violate the declaration, such as a field that became unique. */
export class UnfitRows extends Error {
  override readonly name = 'UnfitRows';
  readonly code = 'store_unfit_rows';
  /** Label of the index that they violate. */
  readonly index: string;

  constructor(message: string, { index, cause }: { readonly index: string; readonly cause: unknown }) {
    super(message, { cause });
    this.index = index;
  }
}

function createTable(database: DatabaseSync, layout: Layout, observe: Observe): void {
  const started = performance.now();
  inTransaction(database, () => {
    database.exec(layout.createSql);
    database.prepare('INSERT INTO comity_counters (name, rev) VALUES (?, 0)').run(layout.table.name);
  });
  observe({
    kind: 'store-migrated',
    what: `table ${layout.table.name}`,
    durationMs: performance.now() - started,
  });
}

/** Search finds rows written before this column existed only after their next write. */
function addSearchColumn(database: DatabaseSync, layout: Layout, observe: Observe): void {
  const columns = database.prepare('SELECT name FROM pragma_table_info(?)').all(layout.table.name);
  if (columns.some((column) => column.name === 'search')) return;
  database.exec(`ALTER TABLE ${layout.name} ADD COLUMN search TEXT`);
  observe({ kind: 'store-migrated', what: `search text of ${layout.table.name}`, durationMs: 0 });
}

/** Events from before these columns have none of their values, and so no place in a history. */
function addTracedColumns(database: DatabaseSync, { name, table }: Layout, observe: Observe): void {
  const columns = database.prepare('SELECT name FROM pragma_table_info(?)').all(table.name);
  for (const [column, type] of tracedColumns) {
    if (columns.some((existing) => existing.name === column)) continue;
    database.exec(`ALTER TABLE ${name} ADD COLUMN ${column} ${type}`);
    observe({ kind: 'store-migrated', what: `column ${column} of ${table.name}`, durationMs: 0 });
  }
}

function change(database: DatabaseSync, sql: string, index: string): void {
  try {
    inTransaction(database, () => database.exec(sql));
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new UnfitRows(`cannot make index ${index}: ${reason}`, { index, cause: error });
  }
}

export function countersOf(database: DatabaseSync): TableNumbers {
  const rows = database.prepare('SELECT n, name FROM comity_counters WHERE n > 0').all();
  return new Map(rows.map((row) => [String(row.name), Number(row.n)]));
}

type TableEntry = {
  readonly layout: Layout;
  /** The table's number in the counters, which hold its version. */
  readonly tableNumber: number;
  readonly readSql: string;
};

/** @throws TypeError if no table has the name */
export type TableDirectory = (name: string) => TableEntry;

/** Looks up tables by name. Built once per store, so that a read builds no SQL. */
export function tableDirectory(layouts: readonly Layout[], numbers: TableNumbers): TableDirectory {
  const tables = new Map<string, TableEntry>(
    layouts.map((layout) => {
      const { name } = layout.table;
      const readSql = `SELECT ${rowColumns} FROM ${layout.name} WHERE id = ?`;
      return [name, { layout, tableNumber: numbers.get(name) ?? 0, readSql }];
    }),
  );
  return (name) => {
    const table = tables.get(name);
    if (table === undefined) throw new TypeError(`no table is named ${name}`);
    return table;
  };
}
