/**
 * How the values of a field compare in a store, whichever engine it is: its kind, the column it stands in if any, and what a value must
 * be to be compared with it. Times of columns are milliseconds, booleans 0 and 1, numbers doubles as in JSON.parse.
 * How the value is written in SQL is each engine's own (compile/value.ts).
 */
import type { Field, Scalar, ScalarType } from '../model/field.ts';

export type SqlValue = string | number | null;

/** How values compare: `time` is a column of milliseconds, every other kind is read from the document. */
export type ValueKind = 'text' | 'number' | 'boolean' | 'time' | 'none';

type Column = NonNullable<Field['column']>;

/** The name of each column of the contract's rows in both engines. */
export const columnNames: Readonly<Record<Column, string>> = {
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

/** Columns that hold a value in every row. */
export function isNeverNull(field: Field): boolean {
  return field.column !== undefined && field.column !== 'owner' && field.column !== 'deletedAt';
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
