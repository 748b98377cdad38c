/**
 * Rules by which stores compare the values of a field: the kind of the field, its column, and the parameter for a comparison. Times of columns are
 * milliseconds, booleans 0 and 1, numbers doubles as in JSON.parse. The SQL belongs to each engine (compile/expressions.ts).
 */
import type { Field, Scalar, ScalarType } from '../model/field.ts';
import { instantKey, millisecondCharacters } from '../model/timestamp.ts';

export type SqlValue = string | number | null;

/** `time` is a column of milliseconds; the other kinds may be members of the document. `instant` compares by its key (model/timestamp.ts). */
export type ValueKind = 'text' | 'instant' | 'number' | 'boolean' | 'time' | 'none';

type Column = NonNullable<Field['column']>;

export const columnNames: Readonly<Record<Column, string>> = {
  id: 'id',
  owner: 'owner',
  createdAt: 'created_at',
  updatedAt: 'updated_at',
  deletedAt: 'deleted_at',
  rev: 'rev',
  type: 'type',
  collection: 'collection',
  document: 'document',
  rank: 'rank',
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
  document: 'text',
  rank: 'number',
};

const scalarKinds: Readonly<Record<ScalarType, ValueKind>> = {
  string: 'text',
  timestamp: 'instant',
  number: 'number',
  integer: 'number',
  boolean: 'boolean',
};

export function kindOf(field: Field): ValueKind {
  if (field.period !== undefined) return 'text';
  if (field.column !== undefined) return columnKinds[field.column];
  return field.type === 'array' || field.type === 'json' ? 'none' : scalarKinds[field.type];
}

/** Identifies a field by where its value is stored, whatever clients call it. */
export function fieldKey(field: Field): string {
  return `${field.folded === true ? '~' : ''}${field.column ?? `${field.within ?? ''}${JSON.stringify(field.path)}`}`;
}

const nullableColumns: ReadonlySet<Column> = new Set(['owner', 'deletedAt', 'document']);

export function isNeverNull(field: Field): boolean {
  return field.column !== undefined && !nullableColumns.has(field.column);
}

/**
 * The parameter for a comparison with the field; undefined if no value of the field can equal it.
 * @throws RangeError for an invalid time: callers reject those first
 */
export function toParameter(field: Field, value: Scalar): SqlValue | undefined {
  if (value === null) return null;
  switch (kindOf(field)) {
    case 'text':
      return typeof value === 'string' ? value : undefined;
    case 'instant':
      return typeof value === 'string' ? instantKey(value) : undefined;
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

/** The parameter for a sort key from a page: converts booleans and times to their stored form. */
export function keyParameter(field: Field, value: Scalar): SqlValue {
  if (typeof value === 'boolean') return Number(value);
  if (typeof value !== 'string') return value;
  const kind = kindOf(field);
  if (kind === 'instant') return instantKey(value);
  return kind === 'time' ? parseTime(value) : value;
}

/** A time between two milliseconds, which no column holds, is in the middle. */
function parseTime(text: string): number {
  const time = Date.parse(text);
  if (Number.isNaN(time))
    throw new RangeError(`the value must be an ISO 8601 time, not "${text.slice(0, 64)}"`);
  return instantKey(text).length > millisecondCharacters ? time + 0.5 : time;
}
