/**
 * The schema in SQLite: the tables and indexes of the contract, how a start brings a file up to them, and the index of words. Rowids keep
 * indexes small and let scans count rows (reader/deadline.ts).
 */
import type { DatabaseSync } from 'node:sqlite';
import type { Field } from '../../model/field.ts';
import type { SearchIndex } from '../../model/search/search-index.ts';
import type { Observe } from '../../observe/observation.ts';
import { createTableSql, tracedColumns } from '../backup-file/file-format.ts';
import {
  type DeclaredIndex,
  declaredIndexes,
  duplicatesSentence,
  duplicatesSql,
  UnfitRows,
  viewColumns,
  viewName,
  withEvents,
} from '../declared-indexes.ts';
import { fieldKey, kindOf } from '../field-value.ts';
import { quoteName } from '../sql-text.ts';
import { eventsTable, rowColumns, type Table } from '../store.ts';
import { isMarked, pathLiteral, valueSql } from './compile/value.ts';
import { inTransaction, isMistake } from './connection.ts';

type Index = {
  readonly name: string;
  /** Field keys in order; every index but a unique one ends with `id`. */
  readonly keys: readonly string[];
  readonly unique: boolean;
  readonly sql: string;
};

export type Layout = {
  readonly table: Table;
  /** Quoted name. */
  readonly name: string;
  readonly createSql: string;
  readonly indexes: readonly Index[];
  /** SQLite's own name for the index of a TEXT PRIMARY KEY. */
  readonly primaryKey: string;
  /** Unique fields by the name of their index. */
  readonly uniqueFields: ReadonlyMap<string, readonly Field[]>;
  readonly words: WordIndex | undefined;
};

/** Includes the events table, even if it is not declared. */
export function layoutsOf(tables: readonly Table[]): readonly Layout[] {
  const all = withEvents(tables);
  return all.map((table) => layoutOf(table, all));
}

function layoutOf(table: Table, all: readonly Table[]): Layout {
  const indexes = declaredIndexes(table, all);
  const words = wordIndexOf(table);
  return {
    table,
    name: quoteName(table.name),
    createSql: createTableSql({ ...table, traced: table.name === eventsTable }),
    indexes: indexes.map((index) => indexOf(table, index)),
    primaryKey: `sqlite_autoindex_${table.name}_1`,
    uniqueFields: new Map(indexes.filter(({ unique }) => unique).map(({ label, fields }) => [label, fields])),
    words,
  };
}

function indexOf(table: Table, { label, over, unique }: DeclaredIndex): Index {
  const kind = unique ? 'UNIQUE INDEX' : 'INDEX';
  const values = over.map((field) => valueSql(field)).join(', ');
  const sql = `CREATE ${kind} ${quoteName(label)} ON ${quoteName(table.name)}(${values}) WHERE deleted_at IS NULL`;
  return { name: label, keys: over.map(fieldKey), unique, sql };
}

/*
 * Reconciles the tables and indexes of the file with the declared ones: creates missing ones, drops indexes no longer declared, keeps
 * tables no longer declared. Each index is a transaction of its own, so an interrupted start continues where it was; a new file is one
 * transaction.
 */

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
  const fields = layout.uniqueFields.get(index);
  if (fields === undefined) return undefined;
  const values = fields.map((field) => valueSql(field));
  const statement = database.prepare(duplicatesSql(layout.name, values));
  statement.setReturnArrays(true);
  return duplicatesSentence(
    layout.table.name,
    fields,
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

/*
 * The index of words of a table (`Table.words`): an FTS5 table without content, and triggers that keep it with every write, also of other programs.
 *
 * The index holds a row if and only if the row is not deleted and its text begins with the mark of the declaration. Texts of an earlier
 * declaration are `pending`: a partial index lists them, and the writer thread makes them again in small transactions beside requests
 * (writer/filling.ts). All state is in the file, so a process that is killed continues where it was. Searches wait until no row is pending.
 */

export type WordIndex = {
  readonly words: SearchIndex;
  /** Quoted name of the FTS5 table. */
  readonly name: string;
  /** True in SQL if a row is pending. */
  readonly pendingSql: string;
  /** Names and texts of the table and its triggers, as SQLite keeps them. */
  readonly objects: readonly { readonly name: string; readonly sql: string }[];
  /** Adds the rows that have their text already. */
  readonly fillSql: string;
};

const suffixes = ['insert', 'update', 'delete'] as const;

/**
 * Words stand between spaces, so the tokenizer that splits at ASCII only suffices. `=` is a word (src/model/search/search-index.ts).
 * The lists of short prefixes keep a prefix of one letter as cheap as a word.
 */
const fts5 = `fts5(words, content='', columnsize=0, tokenize="ascii tokenchars '='", prefix='1 2 3')`;

function wordIndexOf(table: Table): WordIndex | undefined {
  const { words } = table;
  if (words === undefined) return undefined;
  const rows = quoteName(table.name);
  const own = ownName(table.name);
  const name = quoteName(own);
  const text = (row: string): string => `substr(${row}search,${words.mark.length + 1})`;
  const holds = (row: string): string =>
    `${row}deleted_at IS NULL AND ${isMarked(`${row}search`, words.mark)}`;
  const add = `INSERT INTO ${name}(rowid, words) SELECT new.rowid, ${text('new.')} WHERE ${holds('new.')};`;
  const remove = `INSERT INTO ${name}(${name}, rowid, words) SELECT 'delete', old.rowid, ${text('old.')} WHERE ${holds('old.')};`;
  const trigger = (on: string, when: string, body: string): { name: string; sql: string } => {
    const called = triggerName(table.name, on);
    return {
      name: called,
      sql: `CREATE TRIGGER ${quoteName(called)} AFTER ${when} ON ${rows} BEGIN ${body} END`,
    };
  };
  return {
    words,
    name,
    pendingSql: `deleted_at IS NULL AND (search IS NULL OR NOT ${isMarked('search', words.mark)})`,
    objects: [
      { name: own, sql: `CREATE VIRTUAL TABLE ${name} USING ${fts5}` },
      trigger('insert', 'INSERT', add),
      trigger('update', 'UPDATE OF search, deleted_at', `${remove} ${add}`),
      trigger('delete', 'DELETE', remove),
    ],
    fillSql: `INSERT INTO ${name}(rowid, words) SELECT rowid, ${text('')} FROM ${rows} WHERE ${holds('')}`,
  };
}

/** No table of a collection has such a name, and no other table of FTS5 begins with it. */
function ownName(table: string): string {
  return `comity_search:${table}:words`;
}

function triggerName(table: string, on: string): string {
  return `${ownName(table)}:${on}`;
}

/** Creates the index in one transaction with what it can hold already, or drops what is no longer declared. */
function reconcileWords(
  database: DatabaseSync,
  table: Table,
  index: WordIndex | undefined,
  observe: Observe,
): void {
  const started = performance.now();
  const found = database.prepare('SELECT sql FROM sqlite_schema WHERE name = ?');
  const isCurrent =
    index === undefined
      ? found.get(ownName(table.name)) === undefined
      : index.objects.every(({ name, sql }) => found.get(name)?.sql === sql);
  if (!isCurrent) {
    inTransaction(database, () => {
      for (const on of suffixes) {
        database.exec(`DROP TRIGGER IF EXISTS ${quoteName(triggerName(table.name, on))}`);
      }
      database.exec(`DROP TABLE IF EXISTS ${quoteName(ownName(table.name))}`);
      if (index !== undefined) create(database, index);
    });
    const what = `search index of ${table.name}${index === undefined ? ' dropped' : ''}`;
    observe({ kind: 'store-migrated', what, durationMs: performance.now() - started });
  } else if (index !== undefined && !hasPageOctets(database, table)) setPageOctets(database, index.name);
}

/** `secure-delete` removes the entries of a deleted text at once, where FTS5 would only mark them. */
function create(database: DatabaseSync, { name, objects, fillSql }: WordIndex): void {
  for (const { sql } of objects) database.exec(sql);
  database.exec(`INSERT INTO ${name}(${name}, rank) VALUES ('secure-delete', 1)`);
  setPageOctets(database, name);
  database.exec(fillSql);
}

/**
 * Octets of a page of the index, where 4050 are the default. A search of several words goes to a page for each row that the rarest has, and
 * reads half of it: in 10^6 documents two words, one of 20 documents, take 140 us instead of 280.
 */
const pageOctets = 1000;

/** An index from before this setting keeps its pages, until FTS5 merges what they hold. */
function setPageOctets(database: DatabaseSync, name: string): void {
  database.exec(`INSERT INTO ${name}(${name}, rank) VALUES ('pgsz', ${pageOctets})`);
}

function hasPageOctets(database: DatabaseSync, { name }: Table): boolean {
  const found = database
    .prepare(`SELECT v FROM ${quoteName(`${ownName(name)}_config`)} WHERE k = 'pgsz'`)
    .get();
  return found?.v === pageOctets;
}

export function pendingName({ name }: Table): string {
  return `${name}.unsearched`;
}

/** Name and SQL of the partial index of pending rows, which is empty once the index of words is complete. */
function pendingIndex(
  table: Table,
  { pendingSql }: WordIndex,
): { readonly name: string; readonly sql: string } {
  const name = pendingName(table);
  return { name, sql: `CREATE INDEX ${quoteName(name)} ON ${quoteName(table.name)}(id) WHERE ${pendingSql}` };
}
