/**
 * Which indexes a table of the contract needs, the same in both engines, and which tables a store may have. How an index is written
 * is the engine's own (sqlite/layout.ts, postgres/schema/layout.ts).
 *
 * Every index leaves out softly deleted rows, and all but the unique ones end with the id, so that they hold the total order
 * that pages walk.
 */
import { type Field, idField, madeFields } from '../model/field.ts';
import { fieldKey, kindOf } from './field-value.ts';
import { eventsTable, type Table } from './store.ts';

export type DeclaredIndex = {
  /** `products.index["price"]`: what tells it from every other, by table, kind and fields. */
  readonly label: string;
  /** As declared. */
  readonly fields: readonly Field[];
  /** What it is over: as declared, and the id unless it is unique. */
  readonly over: readonly Field[];
  readonly unique: boolean;
};

const revField: Field = { name: 'rev', path: ['rev'], type: 'integer', column: 'rev' };

const undeclaredEvents: Table = {
  name: eventsTable,
  fields: madeFields,
  indexes: [],
  unique: [],
  references: [],
  searched: false,
};

/** Names that the engines keep for themselves, and the prefix of the store's own tables. */
const reservedPrefixes = ['sqlite_', 'pg_', 'comity_'];

/**
 * The declared tables and the table of events, which is there whether declared or not.
 * @throws TypeError for names that cannot stand beside each other: SQLite does not tell upper and lower case apart
 */
export function withEvents(tables: readonly Table[]): readonly Table[] {
  const declared = tables.some((table) => table.name === eventsTable);
  const all = declared ? tables : [...tables, undeclaredEvents];
  const seen = new Set<string>();
  for (const { name } of all) {
    const folded = name.toLowerCase();
    if (reservedPrefixes.some((prefix) => folded.startsWith(prefix)) || name === '' || name.includes('\0')) {
      throw new TypeError(`"${name}" cannot be the name of a table: it is empty or reserved by the store`);
    }
    if (seen.has(folded))
      throw new TypeError(`two tables have the name "${name}" but for upper and lower case`);
    seen.add(folded);
  }
  return all;
}

/**
 * In the order in which they are made: declared ones, the log's, those of references that no other serves, unique ones.
 * @param all tables, for the targets of references
 * @throws TypeError for an index over no field and for a reference that cannot be held
 */
export function declaredIndexes(table: Table, all: readonly Table[]): readonly DeclaredIndex[] {
  const indexes = new Map<string, DeclaredIndex>();
  const add = (index: DeclaredIndex): unknown => indexes.has(index.label) || indexes.set(index.label, index);
  for (const fields of table.indexes) add(ordered(table, fields));
  if (table.name === eventsTable) add(ordered(table, [revField]));
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
  if (last === undefined) throw new TypeError(`table ${table.name} has an index over no field`);
  const over = last.column === 'id' ? fields : [...fields, idField];
  return { label: labelOf(table, 'index', fields), fields, over, unique: false };
}

function labelOf(table: Table, kind: 'index' | 'unique', fields: readonly Field[]): string {
  return `${table.name}.${kind}${JSON.stringify(fields.map((field) => field.name))}`;
}
