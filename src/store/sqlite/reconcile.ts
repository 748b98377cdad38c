/**
 * Reconciles the tables and indexes of the file with the declared ones: creates missing ones, drops indexes no longer declared, keeps
 * tables no longer declared. Each index is a transaction of its own, so an interrupted start continues where it was; a new file is one
 * transaction.
 */

import type { DatabaseSync } from 'node:sqlite';
import type { Field } from '../../model/field.ts';
import type { Observe } from '../../observe/observation.ts';
import { tracedColumns } from '../backup-file/layout.ts';
import { kindOf } from '../field-value.ts';
import { rowColumns } from '../kept-row.ts';
import { quoteName } from '../quote-name.ts';
import { eventsTable, type Table } from '../store.ts';
import { duplicatesSentence, duplicatesSql, UnfitRows } from '../unfit-rows.ts';
import { viewColumns, viewName } from '../view-columns.ts';
import { pathLiteral, valueSql } from './compile/value.ts';
import { inTransaction } from './in-transaction.ts';
import { isMistake } from './sqlite-failure.ts';
import type { Layout } from './table-layout.ts';
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
      makeIndex(database, layout, { name: index.name, sql: `${drop} ${index.sql}` });
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
    inTransaction(database, () => database.exec(`DROP INDEX ${quoteName(name)}`));
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

/** Sentences about unique fields whose index is missing and whose values are not unique. Reads the tables of these indexes once. */
export function findDuplicates(database: DatabaseSync, layouts: readonly Layout[]): readonly string[] {
  const numbers = countersOf(database);
  const find = database.prepare(`SELECT sql FROM sqlite_schema WHERE type = 'index' AND name = ?`);
  return layouts
    .filter(({ table }) => numbers.has(table.name))
    .flatMap((layout) =>
      layout.indexes
        .filter(({ unique, name, sql }) => unique && find.get(name)?.sql !== sql)
        .flatMap(({ name }) => duplicatesOf(database, layout, name) ?? []),
    );
}

function duplicatesOf(database: DatabaseSync, layout: Layout, index: string): string | undefined {
  const field = layout.table.unique.find(({ name }) => name === layout.uniqueFields.get(index));
  if (field === undefined) return undefined;
  const statement = database.prepare(duplicatesSql(layout.name, valueSql(field)));
  statement.setReturnArrays(true);
  return duplicatesSentence(
    layout.table.name,
    field,
    statement.all() as unknown as readonly (readonly unknown[])[],
  );
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

function makeIndex(
  database: DatabaseSync,
  layout: Layout,
  { name, sql }: { readonly name: string; readonly sql: string },
): void {
  try {
    inTransaction(database, () => database.exec(sql));
  } catch (error) {
    const duplicates = isMistake(error) ? duplicatesOf(database, layout, name) : undefined;
    throw duplicates === undefined ? error : new UnfitRows(duplicates, { index: name, cause: error });
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

// The views of collections in SQLite. A value that does not have the type of its field, as in documents of an earlier schema, is null. SQLite
// finds what a view names when it is read, so a view of another program that uses one of these never prevents its replacement.

/** Replaces views that differ from the declaration, and leaves others of the same name that are not its own. */
function reconcileViews(database: DatabaseSync, tables: readonly Table[]): void {
  const find = database.prepare('SELECT sql FROM sqlite_schema WHERE name = ?');
  for (const table of tables) {
    if (table.view !== true) continue;
    const name = viewName(table);
    const sql = createViewSql(table);
    const found = find.get(name)?.sql;
    if (found === sql || (found !== undefined && !String(found).includes(ownMark))) continue;
    inTransaction(database, () => database.exec(`DROP VIEW IF EXISTS ${quoteName(name)}; ${sql}`));
  }
}

/** SQLite keeps the comment with the view, by which it is known. */
const ownMark = '/* kept by comity */';

function createViewSql(table: Table): string {
  const columns = [
    'id',
    'owner',
    `json_extract(doc,'$.createdAt') AS created_at`,
    `json_extract(doc,'$.updatedAt') AS updated_at`,
    ...viewColumns(table).map(({ name, field }) => `${columnSql(field)} AS ${quoteName(name)}`),
  ];
  return `CREATE VIEW ${quoteName(viewName(table))} AS ${ownMark} SELECT ${columns.join(', ')} FROM ${quoteName(table.name)} WHERE deleted_at IS NULL`;
}

function columnSql(field: Field): string {
  const path = pathLiteral(field);
  if (kindOf(field) === 'none') return `nullif(doc -> ${path},'null')`;
  if (kindOf(field) === 'instant') return instantSql(valueSql(field));
  if (field.type === 'integer') {
    return `CASE json_type(doc,${path}) WHEN 'integer' THEN json_extract(doc,${path}) END`;
  }
  return valueSql(field);
}

/** The shortest kept spelling, which equal instants share. Text that is not kept so, as in documents of an earlier version, is null. */
function instantSql(key: string): string {
  const seconds = '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]T[0-9][0-9]:[0-9][0-9]:[0-9][0-9].';
  const isKept = `${key} GLOB '${seconds}*' AND substr(${key},21) NOT GLOB '*[^0-9]*'`;
  return `CASE WHEN ${isKept} THEN substr(${key}||'000',1,max(23,length(${key})))||'Z' END`;
}
