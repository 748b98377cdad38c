/**
 * What may be asked of a field of each type, and the filter that asks it. On an array field `eq`, `ne` and `in` are
 * about membership; a field of type `json` can be selected only.
 */
import type { Field, Scalar } from '../../model/field.ts';
import { anyOf, type Comparison, type Filter, never } from '../../model/filter.ts';
import type { Value } from './field-value.ts';

export type Operator = Comparison | 'in' | 'like' | 'null';

/** A longer pattern would be refused by SQLite (50000 octets) or cost a scan too much for each row. */
export const patternCharactersMax = 1000;

const scalarOperators: readonly Operator[] = ['eq', 'ne', 'gt', 'gte', 'lt', 'lte', 'in', 'null'];
const stringOperators: readonly Operator[] = [...scalarOperators, 'like'];
const arrayOperators: readonly Operator[] = ['eq', 'ne', 'in', 'null'];
const noOperators: readonly Operator[] = [];

/** The operators that the field takes; none for a field that can be selected only. */
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

/** Finds the operator of that name among those of the field. */
export function findOperator(field: Field, name: string): Operator | undefined {
  return operatorsOf(field).find((operator) => operator === name);
}

/** Compares with a value. On an array: `eq` is "has it", `ne` "does not". */
export function compare(field: Field, op: Comparison, value: Value): Filter {
  if (field.type !== 'array') return { op, field, value };
  const has: Filter = { op: 'has', field, value };
  return op === 'ne' ? { op: 'not', filter: has } : has;
}

/** Whether the field is absent or null, or is not. */
export function isNull(field: Field, expected: boolean): Filter {
  return { op: expected ? 'eq' : 'ne', field, value: null };
}

/** The field is, or on an array has, one of the values; null among them stands for absent or null. */
export function membership(field: Field, values: readonly Scalar[]): Filter {
  const distinct = new Set(values);
  const orNull: readonly Filter[] = distinct.delete(null) ? [isNull(field, true)] : [];
  if (field.type === 'array') {
    const parts: Filter[] = [];
    for (const value of distinct) parts.push({ op: 'has', field, value });
    return anyOf([...parts, ...orNull]);
  }
  // One value is an equality: an index serves that, and not `in`.
  const [only] = distinct;
  const among: Filter =
    only === undefined
      ? never
      : distinct.size === 1
        ? { op: 'eq', field, value: only }
        : { op: 'in', field, values: [...distinct] };
  return anyOf([among, ...orNull]);
}

/** Why the pattern cannot be used; undefined when it can. PostgreSQL refuses an escape of nothing. */
export function patternComplaint(pattern: string): string | undefined {
  if (pattern.length > patternCharactersMax)
    return `a pattern has at most ${patternCharactersMax} characters`;
  let escapes = 0;
  while (pattern.charCodeAt(pattern.length - 1 - escapes) === 0x5c) escapes += 1;
  return escapes % 2 === 1 ? 'a pattern must not end in the escape character \\' : undefined;
}
