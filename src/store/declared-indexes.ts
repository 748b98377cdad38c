/**
 * The schema that both engines make of the tables of the contract: the indexes that each needs, the tables that a store may have, the views
 * for SQL tools, and the refusal of rows that do not fit. The SQL of an index
 * belongs to the engine (sqlite/sqlite-schema.ts, postgres/schema/schema-layout.ts).
 *
 * Every index leaves out softly deleted rows. All but the unique ones end with the id, so that they hold the total order of pages.
 */
import { type Field, idField, madeFields } from '../model/field.ts';
import { memberAt } from '../model/matches.ts';
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
  for (const fields of table.unique)
    add({ label: labelOf(table, 'unique', fields), fields, over: fields, unique: true });
  return [...indexes.values()];
}

function ordered(table: Table, fields: readonly Field[]): DeclaredIndex {
  const last = fields.at(-1);
  if (last === undefined) throw new TypeError(`table ${table.name} has an index without fields`);
  const over = last.column === 'id' ? fields : [...fields, idField];
  return { label: labelOf(table, 'index', fields), fields, over, unique: false };
}

function labelOf(table: Table, kind: 'index' | 'unique', fields: readonly Field[]): string {
  const names = fields.map(({ name, folded }) => (folded === true ? `lower(${name})` : name));
  return `${table.name}.${kind}${JSON.stringify(names)}`;
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

/*
 * The view of a collection for SQL tools: its name, and a column for each member at the top level. Names are in lower case with underscores,
 * which need no quotes in SQL. No collection has an underscore in its name, so that no view has the name of a table.
 */

type ViewColumn = { readonly name: string; readonly field: Field };

/** Columns that every view has, before those of the members. */
const viewHead = ['id', 'owner', 'created_at', 'updated_at'] as const;

export function viewName({ name }: Table): string {
  return `view_${name.replaceAll('-', '_')}`;
}

/** Names that are equal apart from case, which SQLite does not distinguish, get numbers. */
export function viewColumns({ fields }: Table): readonly ViewColumn[] {
  const taken = new Set<string>(viewHead);
  const columns: ViewColumn[] = [];
  for (const field of fields) {
    if (field.column !== undefined || field.path.length !== 1) continue;
    const plain = field.name.replace(/([a-z0-9])([A-Z])/g, '$1_$2').toLowerCase();
    let name = plain;
    for (let number = 2; taken.has(name); number += 1) name = `${plain}_${number}`;
    taken.add(name);
    columns.push({ name, field });
  }
  return columns;
}

/*
 * Rows that the declaration of their table refuses. For fields that became unique these are the rows with equal values: both engines find
 * them with one statement around their own expression of the value, when an index cannot be made and beforehand (`duplicatesSentence`).
 */

/** Thrown if stored rows violate the declaration, such as a field that became unique. The message names rows. */
export class UnfitRows extends Error {
  override readonly name = 'UnfitRows';
  readonly code = 'store_unfit_rows';
  /** Label of the index that they violate. */
  readonly index: string | undefined;

  constructor(
    message: string,
    { index, cause }: { readonly index: string | undefined; readonly cause: unknown },
  ) {
    super(message, { cause });
    this.index = index;
  }
}

/** Values that a sentence shows, most frequent first. */
const valuesShownMax = 5;
const valueCharactersMax = 64;

/**
 * Reads the table once, as building the index does.
 * @param name of the table, quoted
 * @param values expressions of the fields
 */
export function duplicatesSql(name: string, values: readonly string[]): string {
  const columns = values.map((value, at) => `${value} AS v${at}`).join(', ');
  const present = values.map((_, at) => `v${at} IS NOT NULL`).join(' AND ');
  return `WITH shared AS (
    SELECT count(*) AS held, min(id) AS first, max(id) AS last
    FROM (SELECT ${columns}, id FROM ${name} WHERE deleted_at IS NULL) AS rows_of_table
    WHERE ${present} GROUP BY ${values.map((_, at) => `v${at}`).join(', ')} HAVING count(*) > 1)
    SELECT held, first, last, (SELECT doc FROM ${name} WHERE id = first), count(*) OVER (), sum(held) OVER ()
    FROM shared ORDER BY held DESC, first LIMIT ${valuesShownMax}`;
}

/** @param rows of the statement @returns undefined if no two rows have the same values */
export function duplicatesSentence(
  table: string,
  fields: readonly Field[],
  rows: readonly (readonly unknown[])[],
): string | undefined {
  const [first] = rows;
  if (first === undefined) return undefined;
  const [values, documents] = [Number(first[4]), Number(first[5])];
  const shown = rows.map(([held, one, other, doc]) => {
    const document: unknown = JSON.parse(String(doc));
    const value = fields.map(({ path }) => JSON.stringify(memberAt(document, path))).join(', ');
    return `${Number(held).toLocaleString('en')} have ${value.slice(0, valueCharactersMax)}, such as ${one} and ${other}`;
  });
  const more = values > rows.length ? `; and ${(values - rows.length).toLocaleString('en')} more values` : '';
  const apart = fields.some(({ folded }) => folded === true) ? ' apart from case' : '';
  const together = fields.length > 1 ? ' together' : '';
  return `${table}: ${listOfNames(fields.map(({ name }) => name))} must be unique${together}${apart}, and ${documents.toLocaleString('en')} documents have a value that another has: ${shown.join('; ')}${more}; give each a value of its own, with a server of the earlier declaration or by a migration`;
}

/** `tenantId and sku` */
export function listOfNames(names: readonly string[]): string {
  return names.length < 2 ? names.join() : `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`;
}
