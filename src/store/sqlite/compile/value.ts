/**
 * The SQL value of a field, and what a value must be to compare with it. A field's value is what stands at
 * its path when it is of the field's type, and null otherwise: the `CASE` keeps `true` from passing for 1
 * and an array for its JSON text, and numbers are doubles as in JSON.parse: SQLite would keep 2^60 exact as an integer,
 * unequal to itself as JavaScript writes it. Filters, sorts and indexes use the very same text, which is
 * how SQLite recognises an expression index.
 */
import type { Field, Scalar, ScalarType } from '../../../model/field.ts';
import { quoteText } from '../identifier.ts';

export type SqlValue = string | number | null;

/** How values compare: `time` is a column of milliseconds, every other kind is read from the document. */
export type ValueKind = 'text' | 'number' | 'boolean' | 'time' | 'none';

type Column = NonNullable<Field['column']>;

const columnNames: Readonly<Record<Column, string>> = {
  id: 'id',
  owner: 'owner',
  createdAt: 'created_at',
  updatedAt: 'updated_at',
  deletedAt: 'deleted_at',
  rev: 'rev',
  type: 'type',
  collection: 'collection',
};

const columnKinds: Readonly<Record<Column, ValueKind>> = {
  id: 'text',
  owner: 'text',
  createdAt: 'time',
  updatedAt: 'time',
  deletedAt: 'time',
  rev: 'number',
  type: 'text',
  collection: 'text',
};

const scalarKinds: Readonly<Record<ScalarType, ValueKind>> = {
  string: 'text',
  timestamp: 'text',
  number: 'number',
  integer: 'number',
  boolean: 'boolean',
};

export function kindOf(field: Field): ValueKind {
  if (field.column !== undefined) return columnKinds[field.column];
  return field.type === 'array' || field.type === 'json' ? 'none' : scalarKinds[field.type];
}

/** Tells fields apart by where their value stands, whatever a client calls them. */
export function fieldKey(field: Field): string {
  return field.column ?? JSON.stringify(field.path);
}

/** The JSON path as an SQL literal. SQLite takes JSON escapes within a quoted label, so no name breaks out. */
export function pathLiteral(field: Field): string {
  let path = '$';
  for (const label of field.path) path += `.${JSON.stringify(label)}`;
  return quoteText(path);
}

export function valueSql(field: Field): string {
  if (field.column !== undefined) return columnNames[field.column];
  const path = pathLiteral(field);
  switch (kindOf(field)) {
    case 'boolean':
      return `CASE json_type(doc,${path}) WHEN 'true' THEN 1 WHEN 'false' THEN 0 END`;
    case 'number':
      return `CASE WHEN json_type(doc,${path}) IN ('integer','real') THEN CAST(json_extract(doc,${path}) AS REAL) END`;
    case 'text':
    case 'time':
      return `CASE json_type(doc,${path}) WHEN 'text' THEN json_extract(doc,${path}) END`;
    case 'none':
      return `nullif(json_type(doc,${path}),'null')`;
  }
}

/**
 * The value to bind for a comparison with the field; undefined where no value of the field can equal it.
 * @throws RangeError for a time that cannot be read: callers refuse those first
 */
export function toParameter(field: Field, value: Scalar): SqlValue | undefined {
  if (value === null) return null;
  switch (kindOf(field)) {
    case 'text':
      return typeof value === 'string' ? value : undefined;
    case 'number':
      return typeof value === 'number' ? value : undefined;
    case 'boolean':
      return typeof value === 'boolean' ? Number(value) : undefined;
    case 'time':
      return typeof value === 'string' ? parseTime(value) : undefined;
    case 'none':
      return undefined;
  }
}

/** A sort key as a page gave it: booleans and times come back in the form they are stored in. */
export function keyParameter(field: Field, value: Scalar): SqlValue {
  if (typeof value === 'boolean') return Number(value);
  if (typeof value === 'string' && kindOf(field) === 'time') return parseTime(value);
  return value;
}

function parseTime(text: string): number {
  const time = Date.parse(text);
  if (Number.isNaN(time)) throw new RangeError(`cannot read the time "${text.slice(0, 64)}"`);
  return time;
}
