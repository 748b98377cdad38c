/**
 * The SQL of a table in PostgreSQL: its columns and its indexes, with the names used in SQLite. Texts compare by code point (`COLLATE "C"`)
 * whatever the database's collation. `doc` is text, not `jsonb`: the representation is served byte for byte.
 * Null sorts before every value, so nullable keys are `NULLS FIRST`. Keys that are never null have no such clause, like the primary key's
 * index, and an ORDER BY must match that to use the index.
 */
import { hash } from 'node:crypto';
import type { Field } from '../../../model/field.ts';
import { type DeclaredIndex, declaredIndexes, withEvents } from '../../declared-indexes.ts';
import { fieldKey, isNeverNull } from '../../field-value.ts';
import { quoteName } from '../../sql-text.ts';
import { eventsTable, type Table } from '../../store.ts';
import { pendingSql, valueSql, wordsSql } from '../compile/expressions.ts';

/** The number of each table in the counters, by the table's name. */
export type TableNumbers = ReadonlyMap<string, number>;

export type Index = {
  /** At most 63 bytes, not quoted. */
  readonly name: string;
  readonly label: string;
  /** Field keys in order; every index but a unique one ends with `id`. */
  readonly keys: readonly string[];
  /** Clients' names of the declared fields, in order. */
  readonly fields: readonly string[];
  readonly unique: boolean;
  /** The text after `CREATE [UNIQUE] INDEX [CONCURRENTLY] name`. */
  readonly definition: string;
};

export type Layout = {
  readonly table: Table;
  /** Quoted, with its schema. */
  readonly name: string;
  /** Not quoted. */
  readonly schema: string;
  readonly createSql: string;
  readonly indexes: readonly Index[];
  readonly search: SearchLayout | undefined;
  /** Name of the index behind the primary key. */
  readonly primaryKey: string;
  /** Unique fields by the name of their index. */
  readonly uniqueFields: ReadonlyMap<string, readonly Field[]>;
};

/** The index of words, and the one that lists the rows that have no text for it yet. */
type SearchLayout = { readonly words: Index; readonly pending: Index };

/** Includes the events table, even if it is not declared. @throws TypeError for a declaration that cannot be stored */
export function layoutsOf(tables: readonly Table[], schema: string): readonly Layout[] {
  const all = withEvents(tables);
  for (const { name } of all) {
    if (physicalName(name) !== name)
      throw new TypeError(`the name of table "${name}" is longer than 63 bytes`);
  }
  return all.map((table) => layoutOf(table, all, schema));
}

function layoutOf(table: Table, all: readonly Table[], schema: string): Layout {
  const name = `${quoteName(schema)}.${quoteName(table.name)}`;
  const declared = declaredIndexes(table, all);
  const indexes = declared.map((index) => indexOf(name, index, schema));
  const primaryKey = physicalName(`${table.name}.primary`);
  return {
    ...{ table, name, schema },
    createSql: createSql(table, name, primaryKey),
    indexes,
    search: searchOf(table, name),
    primaryKey,
    uniqueFields: new Map(
      declared.filter(({ unique }) => unique).map(({ label, fields }) => [physicalName(label), fields]),
    ),
  };
}

/** Definitions of the columns. `doc` is last but for the search text, as in SQLite. */
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
    columns.push('type text COLLATE "C" NOT NULL', 'collection text COLLATE "C" NOT NULL', ...tracedColumns);
  columns.push('doc text NOT NULL');
  if (table.searched) columns.push(searchColumn);
  return columns;
}

/** Columns of events; null in those of earlier versions. */
export const tracedColumns: readonly string[] = ['document text COLLATE "C"', 'former text'];

/** Null in rows written before their table was searched. */
export const searchColumn = 'search text COLLATE "C"';

function createSql(table: Table, name: string, primaryKey: string): string {
  return `CREATE TABLE ${name} (\n  ${columnsOf(table, primaryKey).join(',\n  ')}\n)`;
}

function indexOf(tableName: string, { label, fields, over, unique }: DeclaredIndex, schema: string): Index {
  const keys = over.map(
    (field) => `${valueSql(field, '', schema)}${unique || isNeverNull(field) ? '' : ' NULLS FIRST'}`,
  );
  return {
    name: physicalName(label),
    label,
    keys: over.map(fieldKey),
    fields: fields.map((field) => field.name),
    unique,
    definition: `ON ${tableName} (${keys.join(', ')}) WHERE deleted_at IS NULL`,
  };
}

/**
 * `fastupdate` is off: a search would read the whole list of entries that are not in the index yet. Deleted rows are in the index of words,
 * because the planner uses the statistics of an expression only if its index has no condition.
 */
function searchOf({ name, words }: Table, tableName: string): SearchLayout | undefined {
  if (words === undefined) return undefined;
  const { mark } = words;
  const index = (kind: string, definition: string): Index => ({
    name: physicalName(`${name}.${kind}`),
    label: `${name}.${kind}`,
    ...{ keys: [], fields: words.fields, unique: false, definition: `ON ${tableName} ${definition}` },
  });
  return {
    words: index('search', `USING gin (${wordsSql(mark)}) WITH (fastupdate = off)`),
    pending: index('unsearched', `(id) WHERE ${pendingSql(mark)}`),
  };
}

/*
 * Names that fit PostgreSQL, which silently truncates identifiers after 63 bytes: a longer one is cut at a whole character and ends with a
 * digest of all of it, so that long names stay distinct. The catalogue `comity_indexes` has the full name.
 */

const nameBytesMax = 63;
/** 80 bits make collisions practically impossible. */
const digestCharacters = 20;

/** @returns the name itself if it fits */
export function physicalName(name: string): string {
  if (Buffer.byteLength(name) <= nameBytesMax) return name;
  let cut = '';
  let bytes = digestCharacters + 1;
  for (const character of name) {
    bytes += Buffer.byteLength(character);
    if (bytes > nameBytesMax) break;
    cut += character;
  }
  return `${cut}~${hash('sha256', name, 'hex').slice(0, digestCharacters)}`;
}

/** The channel for LISTEN and NOTIFY between processes on one schema; the server takes 63 bytes. */
export function channelOf(schema: string): string {
  return physicalName(`comity_${schema}`);
}
