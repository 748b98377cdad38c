/**
 * Evaluates a filter on one resource, as a store does in SQL; test/contract compares both. A field's value is the one
 * at its path if it has the field's type, and null otherwise; strings compare by code point, instants by their keys.
 */
import type { Field, Scalar, ScalarType } from './field.ts';
import type { Comparison, Filter } from './filter.ts';
import { createLikeMatcher } from './like.ts';
import { instantKey } from './timestamp.ts';

export type Matchable = {
  readonly value: (field: Field) => unknown;
  /** The folded text that `search` searches; null without one. */
  readonly search: string | null;
  /** Finds an undeleted row that a reference names, for `related`; absent: there is none. */
  readonly related?: ((table: string, id: string) => Matchable | undefined) | undefined;
};

export function matches(filter: Filter, resource: Matchable): boolean {
  switch (filter.op) {
    case 'always':
      return true;
    case 'never':
      return false;
    case 'and':
      return filter.filters.every((part) => matches(part, resource));
    case 'or':
      return filter.filters.some((part) => matches(part, resource));
    case 'not':
      return !matches(filter.filter, resource);
    case 'in':
      return filter.values.some((value) => isEqual(filter.field, resource, value));
    case 'has': {
      const value = resource.value(filter.field);
      if (!Array.isArray(value)) return false;
      if (filter.field.item !== 'timestamp' || typeof filter.value !== 'string') {
        return value.includes(filter.value);
      }
      const key = instantKey(filter.value);
      return value.some((item) => typeof item === 'string' && instantKey(item) === key);
    }
    case 'like': {
      if (filter.field.type !== 'string') return false;
      const value = scalarOf(filter.field, resource.value(filter.field));
      return typeof value === 'string' && createLikeMatcher(filter.pattern)(value);
    }
    case 'search': {
      const { search } = resource;
      if (filter.mark !== undefined && search?.startsWith(filter.mark) !== true) return false;
      return filter.terms.every((term) => search?.includes(term) ?? false);
    }
    case 'related': {
      const id = scalarOf(filter.field, resource.value(filter.field));
      const row = typeof id === 'string' ? resource.related?.(filter.table, id) : undefined;
      return row !== undefined && matches(filter.filter, row);
    }
    case 'eq':
    case 'ne':
    case 'gt':
    case 'gte':
    case 'lt':
    case 'lte':
      return compare(filter.op, filter.field, resource, filter.value);
  }
}

/** The value at the path in a parsed representation: `value` of a `Matchable` without columns. */
export function memberAt(resource: unknown, path: readonly string[]): unknown {
  let value = resource;
  for (const name of path) {
    if (typeof value !== 'object' || value === null || Array.isArray(value) || !Object.hasOwn(value, name)) {
      return undefined;
    }
    value = (value as Readonly<Record<string, unknown>>)[name];
  }
  return value;
}

/** Negative, 0 or positive, by code point: UTF-16 units put U+E000..U+FFFF above the code points from U+10000. */
export function compareText(left: string, right: string): number {
  const length = Math.min(left.length, right.length);
  for (let index = 0; index < length; index += 1) {
    const a = left.charCodeAt(index);
    const b = right.charCodeAt(index);
    if (a !== b) return isSurrogate(a) === isSurrogate(b) ? a - b : isSurrogate(a) ? 1 : -1;
  }
  return left.length - right.length;
}

function isSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdfff;
}

function isEqual(field: Field, resource: Matchable, value: Scalar): boolean {
  return compare('eq', field, resource, value);
}

function compare(op: Comparison, field: Field, resource: Matchable, wanted: Scalar): boolean {
  const actual = scalarOf(field, resource.value(field));
  const value = field.type === 'timestamp' && typeof wanted === 'string' ? instantKey(wanted) : wanted;
  if (op === 'eq') return actual === value;
  if (op === 'ne') return actual !== value;
  // NaN, for which no comparison holds, is the order of incomparable values.
  const order = orderOf(actual, value) ?? Number.NaN;
  if (op === 'gt') return order > 0;
  if (op === 'gte') return order >= 0;
  return op === 'lt' ? order < 0 : order <= 0;
}

function orderOf(left: unknown, right: Scalar): number | undefined {
  if (typeof left === 'string' && typeof right === 'string') return compareText(left, right);
  if (typeof left === 'number' && typeof right === 'number') return left - right;
  if (typeof left === 'boolean' && typeof right === 'boolean') return Number(left) - Number(right);
  return undefined;
}

const typeNames: Readonly<Record<ScalarType, string>> = {
  string: 'string',
  timestamp: 'string',
  number: 'number',
  integer: 'number',
  boolean: 'boolean',
};

/** Arrays and objects equal no scalar but are not null: the value itself means "something else". */
function scalarOf(field: Field, value: unknown): unknown {
  if (value === undefined || value === null) return null;
  if (field.type === 'array' || field.type === 'json') return other;
  if (field.type === 'timestamp') return typeof value === 'string' ? instantKey(value) : null;
  return typeof value === typeNames[field.type] ? value : null;
}

const other = Symbol('neither a scalar nor null');
