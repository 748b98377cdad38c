/**
 * How a table of the contract is laid out in PostgreSQL: its columns and its indexes, with the names that the sibling in
 * SQLite gives them. Texts compare by code point (`COLLATE "C"`) whatever the database's own collation is. `doc` is text,
 * not `jsonb`: the representation is served byte for byte.
 *
 * Every index leaves out softly deleted rows, and all but the unique ones end with the id, so that they hold the total
 * order that pages walk. Null comes before every value: what can be null stands as `NULLS FIRST`. A column that never
 * is null stands without, as the index behind the primary key must, and an ORDER BY has to say the same to walk it.
 */

import { type Field, madeFields } from '../../../model/field.ts';
import { fieldKey, isNeverNull, kindOf } from '../../field-value.ts';
import { quoteName } from '../../quote-name.ts';
import type { Table } from '../../store.ts';
import { eventsTable } from '../../store.ts';
import { valueSql } from '../compile/value.ts';
import { physicalName } from './physical-name.ts';

/** The number under which each table's revision is counted, by the table's name. */
export type TableNumbers = ReadonlyMap<string, number>;

export type Index = {
  /** At most 63 bytes, not quoted. */
  readonly name: string;
  /** Field keys in order; a unique index has one, every other ends with `id`. */
  readonly keys: readonly string[];
  /** What the client calls the fields of the declaration, in order. */
  readonly fields: readonly string[];
  readonly unique: boolean;
  /** The text after `CREATE [UNIQUE] INDEX [CONCURRENTLY] name`. */
  readonly definition: string;
};

export type Layout = {
  readonly table: Table;
  /** Quoted, with its schema. */
  readonly name: string;
  readonly createSql: string;
  readonly indexes: readonly Index[];
  /** Name of the index behind the primary key. */
  readonly primaryKey: string;
  /** Unique fields by the name of the index that holds them. */
  readonly uniqueFields: ReadonlyMap<string, string>;
};

const idField: Field = { name: 'id', path: ['id'], type: 'string', column: 'id' };
const revField: Field = { name: 'rev', path: ['rev'], type: 'integer', column: 'rev' };

/**
 * The declared tables and the table of events, which is there whether declared or not.
 * @throws TypeError for a declaration that cannot be stored
 */
export function layoutsOf(tables: readonly Table[], schema: string): readonly Layout[] {
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
  return all.map((table) => layoutOf(table, all, schema));
}

function layoutOf(table: Table, all: readonly Table[], schema: string): Layout {
  const name = `${quoteName(schema)}.${quoteName(table.name)}`;
  const indexes = new Map<string, Index>();
  const add = (index: Index): unknown => indexes.has(index.name) || indexes.set(index.name, index);
  for (const fields of table.indexes) add(orderedIndex(table, name, fields));
  if (table.name === eventsTable) add(orderedIndex(table, name, [revField]));
  for (const reference of table.references) {
    if (kindOf(reference.field) !== 'text') {
      throw new TypeError(`reference ${reference.field.name} of table ${table.name} is not a string field`);
    }
    if (!all.some((other) => other.name === reference.table)) {
      throw new TypeError(`table ${table.name} refers to ${reference.table}, which is not declared`);
    }
    const key = fieldKey(reference.field);
    if (![...indexes.values()].some((index) => index.keys[0] === key))
      add(orderedIndex(table, name, [reference.field]));
  }
  const uniqueFields = new Map<string, string>();
  for (const field of table.unique) {
    const index = uniqueIndex(table, name, field);
    uniqueFields.set(index.name, field.name);
    add(index);
  }
  const primaryKey = physicalName(`${table.name}.primary`);
  return {
    table,
    name,
    createSql: createSql(table, name, primaryKey),
    indexes: [...indexes.values()],
    primaryKey,
    uniqueFields,
  };
}

/** Each with its type and constraints. `doc` stands last but for the search text, as in SQLite. */
function columnsOf(table: Table, primaryKey: string): readonly string[] {
  const columns = [
    `id text COLLATE "C" CONSTRAINT ${quoteName(primaryKey)} PRIMARY KEY`,
    'rev bigint NOT NULL',
    'owner text COLLATE "C"',
    'created_at bigint NOT NULL',
    'updated_at bigint NOT NULL',
    'deleted_at bigint',
  ];
  if (table.name === eventsTable)
    columns.push('type text COLLATE "C" NOT NULL', 'collection text COLLATE "C" NOT NULL');
  columns.push('doc text NOT NULL');
  if (table.searched) columns.push(searchColumn);
  return columns;
}

/** Null in rows written before their table was searched. */
export const searchColumn = 'search text COLLATE "C"';

function createSql(table: Table, name: string, primaryKey: string): string {
  return `CREATE TABLE ${name} (\n  ${columnsOf(table, primaryKey).join(',\n  ')}\n)`;
}

function orderedIndex(table: Table, tableName: string, fields: readonly Field[]): Index {
  const last = fields.at(-1);
  if (last === undefined) throw new TypeError(`table ${table.name} has an index over no field`);
  const all = last.column === 'id' ? fields : [...fields, idField];
  const names = fields.map((field) => field.name);
  const keys = all.map((field) => `${valueSql(field)}${isNeverNull(field) ? '' : ' NULLS FIRST'}`);
  return {
    name: physicalName(`${table.name}.index${JSON.stringify(names)}`),
    keys: all.map(fieldKey),
    fields: names,
    unique: false,
    definition: definitionOf(tableName, keys),
  };
}

function uniqueIndex(table: Table, tableName: string, field: Field): Index {
  return {
    name: physicalName(`${table.name}.unique${JSON.stringify([field.name])}`),
    keys: [fieldKey(field)],
    fields: [field.name],
    unique: true,
    definition: definitionOf(tableName, [valueSql(field)]),
  };
}

function definitionOf(tableName: string, keys: readonly string[]): string {
  return `ON ${tableName} (${keys.join(', ')}) WHERE deleted_at IS NULL`;
}

function refuseClashes(tables: readonly Table[]): void {
  const seen = new Set<string>();
  for (const { name } of tables) {
    const folded = name.toLowerCase();
    if (folded.startsWith('pg_') || folded.startsWith('comity_') || name === '' || name.includes('\0')) {
      throw new TypeError(`"${name}" cannot be the name of a table: it is empty or reserved by the store`);
    }
    if (physicalName(name) !== name)
      throw new TypeError(`the name of table "${name}" is longer than 63 bytes`);
    // SQLite does not tell such names apart: what one store refuses, both do.
    if (seen.has(folded))
      throw new TypeError(`two tables have the name "${name}" but for upper and lower case`);
    seen.add(folded);
  }
}
