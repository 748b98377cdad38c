/** The tables and indexes of the contract in SQLite. Rowids keep indexes small and let scans count rows (reader/deadline.ts). */
import { createTableSql } from '../backup-file/layout.ts';
import { type DeclaredIndex, declaredIndexes, withEvents } from '../declared-indexes.ts';
import { fieldKey } from '../field-value.ts';
import { quoteName } from '../quote-name.ts';
import { eventsTable, type Table } from '../store.ts';
import { valueSql } from './compile/value.ts';
import { type WordIndex, wordIndexOf } from './word-index.ts';

export type Index = {
  readonly name: string;
  /** Field keys in order; a unique index has one, every other ends with `id`. */
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
  /** Names of unique fields by the name of their index. */
  readonly uniqueFields: ReadonlyMap<string, string>;
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
    uniqueFields: new Map(
      indexes.filter(({ unique }) => unique).map(({ label, fields }) => [label, fields[0]?.name ?? '']),
    ),
    words,
  };
}

function indexOf(table: Table, { label, over, unique }: DeclaredIndex): Index {
  const kind = unique ? 'UNIQUE INDEX' : 'INDEX';
  const values = over.map((field) => valueSql(field)).join(', ');
  const sql = `CREATE ${kind} ${quoteName(label)} ON ${quoteName(table.name)}(${values}) WHERE deleted_at IS NULL`;
  return { name: label, keys: over.map(fieldKey), unique, sql };
}
