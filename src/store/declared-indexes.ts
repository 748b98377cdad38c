/**
 * The indexes that each table of the contract needs, the same in both engines, and the tables that a store may have. The SQL of an index
 * belongs to the engine (sqlite/table-layout.ts, postgres/schema/schema-layout.ts).
 *
 * Every index leaves out softly deleted rows. All but the unique ones end with the id, so that they hold the total order of pages.
 */
import { type Field, idField, madeFields } from '../model/field.ts';
import { fieldKey, kindOf } from './field-value.ts';
import { eventsTable, type Table } from './store.ts';
import type { IndexReport } from './store-report.ts';

export type DeclaredIndex = {
  /** Identifies the index by table, kind and fields, such as `products.index["price"]`. */
  readonly label: string;
  readonly fields: readonly Field[];
  /** The declared fields, then the id unless the index is unique. */
  readonly over: readonly Field[];
  readonly unique: boolean;
};

const revField: Field = { name: 'rev', path: ['rev'], type: 'integer', column: 'rev' };
/** The history of a resource, newest first, at the cost of a page. */
const historyFields: readonly Field[] = [
  { name: 'collection', path: [], type: 'string', column: 'collection' },
  { name: 'document', path: [], type: 'string', column: 'document' },
  revField,
];

const undeclaredEvents: Table = {
  name: eventsTable,
  fields: madeFields,
  indexes: [],
  unique: [],
  references: [],
  searched: false,
};

/** Prefixes of the engines and of the store's own tables. */
const reservedPrefixes = ['sqlite_', 'pg_', 'comity_'];

/**
 * Adds the events table if it is not declared.
 * @throws TypeError for reserved names and for names equal but for case, which SQLite does not distinguish
 */
export function withEvents(tables: readonly Table[]): readonly Table[] {
  const declared = tables.some((table) => table.name === eventsTable);
  const all = declared ? tables : [...tables, undeclaredEvents];
  const seen = new Set<string>();
  for (const { name } of all) {
    const folded = name.toLowerCase();
    if (reservedPrefixes.some((prefix) => folded.startsWith(prefix)) || name === '' || name.includes('\0')) {
      throw new TypeError(
        `"${name}" cannot be the name of a table: names must not be empty or start with ${reservedPrefixes.join(', ')}`,
      );
    }
    if (seen.has(folded))
      throw new TypeError(`two tables are named "${name}" apart from upper and lower case`);
    seen.add(folded);
  }
  return all;
}

/**
 * Lists the indexes in order of creation: declared ones, the event log's, those of references that no other index covers, unique ones.
 * @param all tables, for the targets of references
 * @throws TypeError for an index without fields and for an invalid reference
 */
export function declaredIndexes(table: Table, all: readonly Table[]): readonly DeclaredIndex[] {
  return wantedIndexes(table, all).filter(({ label }) => table.late?.has(label) !== true);
}

/** As `declaredIndexes`, with those that are made after a migration of documents. */
export function wantedIndexes(table: Table, all: readonly Table[]): readonly DeclaredIndex[] {
  const indexes = new Map<string, DeclaredIndex>();
  const add = (index: DeclaredIndex): unknown => indexes.has(index.label) || indexes.set(index.label, index);
  for (const fields of table.indexes) add(ordered(table, fields));
  if (table.name === eventsTable) {
    add(ordered(table, [revField]));
    add(ordered(table, historyFields));
  }
  for (const { field, table: target } of table.references) {
    if (kindOf(field) !== 'text') {
      throw new TypeError(`reference ${field.name} of table ${table.name} is not a string field`);
    }
    if (!all.some((other) => other.name === target)) {
      throw new TypeError(`table ${table.name} refers to ${target}, which is not declared`);
    }
    const key = fieldKey(field);
    const served = indexes
      .values()
      .some(({ over: [first] }) => first !== undefined && fieldKey(first) === key);
    if (!served) add(ordered(table, [field]));
  }
  for (const field of table.unique) {
    const label = labelOf(table, 'unique', [field]);
    add({ label, fields: [field], over: [field], unique: true });
  }
  return [...indexes.values()];
}

function ordered(table: Table, fields: readonly Field[]): DeclaredIndex {
  const last = fields.at(-1);
  if (last === undefined) throw new TypeError(`table ${table.name} has an index without fields`);
  const over = last.column === 'id' ? fields : [...fields, idField];
  return { label: labelOf(table, 'index', fields), fields, over, unique: false };
}

function labelOf(table: Table, kind: 'index' | 'unique', fields: readonly Field[]): string {
  return `${table.name}.${kind}${JSON.stringify(fields.map((field) => field.name))}`;
}

/** @param isStanding whether the index of this label is in the store */
export function reportIndexes(
  wanted: readonly DeclaredIndex[],
  isStanding: (label: string) => boolean,
): readonly IndexReport[] {
  return wanted.map(({ label, fields, unique }) => ({
    kind: unique ? 'unique' : 'index',
    fields: fields.map(({ name }) => name),
    stands: isStanding(label),
  }));
}
