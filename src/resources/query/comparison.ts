/**
 * Operators of each field type, and the filters that they compile to. On an array field `eq`, `ne` and `in` test
 * membership; a field of type `json` has no operator.
 */
import type { Field, Scalar } from '../../model/field.ts';
import { anyOf, type Comparison, type Filter, never } from '../../model/filter.ts';
import { along, isDistant } from '../../model/reference-path.ts';
import type { Value } from './field-value.ts';

export type Operator = Comparison | 'in' | 'like' | 'null';

/**
 * SQLite refuses a pattern above 50,000 octets; a pattern far below that already costs a scan too much for each row.
 */
export const patternCharactersMax = 1000;

const scalarOperators: readonly Operator[] = ['eq', 'ne', 'gt', 'gte', 'lt', 'lte', 'in', 'null'];
const stringOperators: readonly Operator[] = [...scalarOperators, 'like'];
const arrayOperators: readonly Operator[] = ['eq', 'ne', 'in', 'null'];
const noOperators: readonly Operator[] = [];

/** Lists the operators that the field takes; none for a field of type `json`. */
export function operatorsOf(field: Field): readonly Operator[] {
  switch (field.type) {
    case 'string':
      return stringOperators;
    case 'array':
      return arrayOperators;
    case 'json':
      return noOperators;
    default:
      return scalarOperators;
  }
}

export function findOperator(field: Field, name: string): Operator | undefined {
  return operatorsOf(field).find((operator) => operator === name);
}

/** Compares the field with a value. On an array `eq` means "contains" and `ne` "does not contain". */
export function compare(field: Field, op: Comparison, value: Value): Filter {
  if (isDistant(field)) {
    // It also holds where there is no resource at the end of the path.
    if (op === 'ne') return { op: 'not', filter: compare(field, 'eq', value) };
    return along(field.steps, compare(field.end, op, value));
  }
  if (field.type !== 'array') return { op, field, value };
  const has: Filter = { op: 'has', field, value };
  return op === 'ne' ? { op: 'not', filter: has } : has;
}

/** Tests whether the field is absent or null (`expected`), or has a value. */
export function isNull(field: Field, expected: boolean): Filter {
  if (isDistant(field)) {
    const isPresent = along(field.steps, isNull(field.end, false));
    return expected ? { op: 'not', filter: isPresent } : isPresent;
  }
  return { op: expected ? 'eq' : 'ne', field, value: null };
}

/**
 * Tests whether the field equals one of the values, or an array contains one; null matches a field that is absent or
 * null.
 */
export function membership(field: Field, values: readonly Scalar[]): Filter {
  const distinct = new Set(values);
  const orNull: readonly Filter[] = distinct.delete(null) ? [isNull(field, true)] : [];
  if (isDistant(field)) {
    const among = distinct.size === 0 ? never : along(field.steps, membership(field.end, [...distinct]));
    return anyOf([among, ...orNull]);
  }
  if (field.type === 'array') {
    const parts: Filter[] = [];
    for (const value of distinct) parts.push({ op: 'has', field, value });
    return anyOf([...parts, ...orNull]);
  }
  // An index serves an equality, but not an `in`.
  const [only] = distinct;
  const among: Filter =
    only === undefined
      ? never
      : distinct.size === 1
        ? { op: 'eq', field, value: only }
        : { op: 'in', field, values: [...distinct] };
  return anyOf([among, ...orNull]);
}

export function isLike(field: Field, pattern: string): Filter {
  return isDistant(field) ? along(field.steps, isLike(field.end, pattern)) : { op: 'like', field, pattern };
}

/** Tests whether an array contains null. */
export function hasNull(field: Field): Filter {
  return isDistant(field) ? along(field.steps, hasNull(field.end)) : { op: 'has', field, value: null };
}

/** Explains why a pattern is invalid; undefined for a valid one. PostgreSQL refuses a trailing escape character. */
export function patternComplaint(pattern: string): string | undefined {
  if (pattern.length > patternCharactersMax)
    return `a pattern must have at most ${patternCharactersMax} characters, not ${pattern.length}`;
  let escapes = 0;
  while (pattern.charCodeAt(pattern.length - 1 - escapes) === 0x5c) escapes += 1;
  return escapes % 2 === 1 ? 'a pattern must not end in the escape character \\' : undefined;
}
