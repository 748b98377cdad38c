/**
 * How a table of the contract is laid out in SQLite: its columns, which are those of the file (backup-file/layout.ts), and its
 * indexes. Rows have rowids, so that indexes stay small and a scan can count rows to see whether its time is
 * over (reader/deadline.ts).
 *
 * Every index leaves out softly deleted rows, and all but the unique ones end with the id, so that they hold
 * the total order that pages walk.
 */

import { type Field, madeFields } from '../../model/field.ts';
import { createTableSql } from '../backup-file/layout.ts';
import { fieldKey, kindOf } from '../field-value.ts';
import { quoteName } from '../quote-name.ts';
import type { Table } from '../store.ts';
import { eventsTable } from '../store.ts';
import { valueSql } from './compile/value.ts';

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
  /** SQLite's own name for the index behind a TEXT PRIMARY KEY. */
  readonly primaryKey: string;
  /** Unique fields by the name of the index that holds them. */
  readonly uniqueFields: ReadonlyMap<string, string>;
};

const idField: Field = { name: 'id', path: ['id'], type: 'string', column: 'id' };
const revField: Field = { name: 'rev', path: ['rev'], type: 'integer', column: 'rev' };

/** The declared tables and the table of events, which is there whether declared or not. */
export function layoutsOf(tables: readonly Table[]): readonly Layout[] {
  const declared = tables.some((table) => table.name === eventsTable);
  const events: Table = {
    name: eventsTable,
    fields: madeFields,
    indexes: [],
    unique: [],
    references: [],
    searched: false,
  };
  const all = declared ? tables : [...tables, events];
  refuseClashes(all);
  return all.map((table) => layoutOf(table, all));
}

function layoutOf(table: Table, all: readonly Table[]): Layout {
  const name = quoteName(table.name);
  const indexes = new Map<string, Index>();
  const add = (index: Index): unknown => indexes.has(index.name) || indexes.set(index.name, index);
  for (const fields of table.indexes) add(orderedIndex(table, fields));
  if (table.name === eventsTable) add(orderedIndex(table, [revField]));
  for (const reference of table.references) {
    if (kindOf(reference.field) !== 'text') {
      throw new TypeError(`reference ${reference.field.name} of table ${table.name} is not a string field`);
    }
    if (!all.some((other) => other.name === reference.table)) {
      throw new TypeError(`table ${table.name} refers to ${reference.table}, which is not declared`);
    }
    const key = fieldKey(reference.field);
    if (![...indexes.values()].some((index) => index.keys[0] === key))
      add(orderedIndex(table, [reference.field]));
  }
  const primaryKey = `sqlite_autoindex_${table.name}_1`;
  const uniqueFields = new Map<string, string>();
  for (const field of table.unique) {
    const index = uniqueIndex(table, field);
    uniqueFields.set(index.name, field.name);
    add(index);
  }
  return {
    table,
    name,
    createSql: createTableSql(table),
    indexes: [...indexes.values()],
    primaryKey,
    uniqueFields,
  };
}

function orderedIndex(table: Table, fields: readonly Field[]): Index {
  const last = fields.at(-1);
  if (last === undefined) throw new TypeError(`table ${table.name} has an index over no field`);
  const all = last.column === 'id' ? fields : [...fields, idField];
  const name = `${table.name}.index${JSON.stringify(fields.map((field) => field.name))}`;
  return { name, keys: all.map(fieldKey), unique: false, sql: indexSql('INDEX', name, table, all) };
}

function uniqueIndex(table: Table, field: Field): Index {
  const name = `${table.name}.unique${JSON.stringify([field.name])}`;
  return { name, keys: [fieldKey(field)], unique: true, sql: indexSql('UNIQUE INDEX', name, table, [field]) };
}

function indexSql(kind: string, name: string, table: Table, fields: readonly Field[]): string {
  const values = fields.map((field) => `${valueSql(field)}`).join(', ');
  return `CREATE ${kind} ${quoteName(name)} ON ${quoteName(table.name)}(${values}) WHERE deleted_at IS NULL`;
}

function refuseClashes(tables: readonly Table[]): void {
  const seen = new Set<string>();
  for (const { name } of tables) {
    const folded = name.toLowerCase();
    if (folded.startsWith('sqlite_') || folded.startsWith('comity_') || name === '' || name.includes('\0')) {
      throw new TypeError(`"${name}" cannot be the name of a table: it is empty or reserved by the store`);
    }
    if (seen.has(folded))
      throw new TypeError(`two tables have the name "${name}" but for upper and lower case`);
    seen.add(folded);
  }
}
