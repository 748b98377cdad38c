/**
 * A filter as an SQL condition. Inside, SQL's NULL stands for false: AND and OR keep that meaning, and `not`
 * becomes `IS NOT TRUE`, which ends it; so the logic is two-valued as filter.ts asks, while plain
 * comparisons stay in the form that an index can serve.
 *
 * The text depends on the shape of the filter alone: a list of values is one array parameter however long it is.
 */
import type { Field, Scalar } from '../../../model/field.ts';
import type { Comparison, Filter } from '../../../model/filter.ts';
import { kindOf, type SqlValue, toParameter } from '../../field-value.ts';
import type { Parameters, ParameterType } from './parameters.ts';
import { likePattern } from './pattern.ts';
import { memberSql, valueSql } from './value.ts';

const operators: Readonly<Record<Comparison, string>> = {
  eq: '=',
  ne: 'IS DISTINCT FROM',
  gt: '>',
  gte: '>=',
  lt: '<',
  lte: '<=',
};

/** The condition; its parameters are added to `parameters`. */
export function compileFilter(filter: Filter, parameters: Parameters): string {
  switch (filter.op) {
    case 'always':
      return 'TRUE';
    case 'never':
      return 'FALSE';
    case 'and':
    case 'or': {
      if (filter.filters.length === 0) return filter.op === 'and' ? 'TRUE' : 'FALSE';
      const parts = filter.filters.map((part) => compileFilter(part, parameters));
      return `(${parts.join(filter.op === 'and' ? ' AND ' : ' OR ')})`;
    }
    case 'not':
      return `((${compileFilter(filter.filter, parameters)}) IS NOT TRUE)`;
    case 'eq':
    case 'ne':
    case 'gt':
    case 'gte':
    case 'lt':
    case 'lte':
      return compare(filter.op, filter.field, filter.value, parameters);
    case 'in':
      return among(filter.field, filter.values, parameters);
    case 'has':
      return has(filter.field, filter.value, parameters);
    case 'like':
      if (filter.field.type !== 'string' || kindOf(filter.field) !== 'text' || !isStored(filter.pattern)) {
        return 'FALSE';
      }
      return `${valueSql(filter.field)} LIKE ${parameters.add(likePattern(filter.pattern), 'text')}`;
    case 'search': {
      if (filter.terms.length === 0) return 'TRUE';
      if (!filter.terms.every(isStored)) return 'FALSE';
      const parts = filter.terms.map((term) => `strpos(search, ${parameters.add(term, 'text')}) > 0`);
      return `(${parts.join(' AND ')})`;
    }
  }
}

/**
 * The type that values of the field travel as. The column `rev` takes what is no whole number too.
 * @param value undefined where it is not known yet
 */
export function typeOf(field: Field, value: SqlValue | undefined): ParameterType {
  switch (kindOf(field)) {
    case 'text':
      return 'text';
    case 'number':
      return field.column === undefined || (typeof value === 'number' && !Number.isSafeInteger(value))
        ? 'float8'
        : 'bigint';
    case 'boolean':
      return 'int';
    case 'time':
      return 'bigint';
    case 'none':
      return 'jsonb';
  }
}

function compare(op: Comparison, field: Field, value: Scalar, parameters: Parameters): string {
  if (value === null) {
    if (op === 'eq') return `${valueSql(field)} IS NULL`;
    return op === 'ne' ? `${valueSql(field)} IS NOT NULL` : 'FALSE';
  }
  const parameter = toParameter(field, value);
  if (parameter === undefined) return op === 'ne' ? 'TRUE' : 'FALSE';
  if (typeof parameter === 'string' && !isStored(parameter))
    return compareWithNul(op, field, parameter, parameters);
  return `${valueSql(field)} ${operators[op]} ${parameters.add(parameter, typeOf(field, parameter))}`;
}

/** No text of PostgreSQL holds U+0000, nor could it be sent. One that does stands right above what is before it. */
function compareWithNul(op: Comparison, field: Field, value: string, parameters: Parameters): string {
  if (op === 'eq' || op === 'ne') return op === 'eq' ? 'FALSE' : 'TRUE';
  const mark = parameters.add(value.slice(0, value.indexOf('\0')), 'text');
  return `${valueSql(field)} ${op === 'gt' || op === 'gte' ? '>' : '<='} ${mark}`;
}

function among(field: Field, values: readonly Scalar[], parameters: Parameters): string {
  const list: (string | number)[] = [];
  let type: ParameterType | undefined;
  let orNull = false;
  for (const value of values) {
    const parameter = toParameter(field, value);
    if (parameter === null) orNull = true;
    else if (parameter !== undefined && isStored(parameter)) {
      list.push(parameter);
      const own = typeOf(field, parameter);
      if (type !== 'float8') type = own;
    }
  }
  const parts: string[] = [];
  if (type !== undefined)
    parts.push(`${valueSql(field)} = ANY (${parameters.add(list, `${type}[]` as ParameterType)})`);
  if (orNull) parts.push(`${valueSql(field)} IS NULL`);
  if (parts.length === 0) return 'FALSE';
  return parts.length === 1 ? (parts[0] ?? 'FALSE') : `(${parts.join(' OR ')})`;
}

/**
 * An array contains an array of one where it has that element; no other kind of value contains an array, nor does an array whose
 * element is an array of it. Numbers compare as decimals: equal doubles are written alike on both sides.
 */
function has(field: Field, value: Scalar, parameters: Parameters): string {
  if (field.column !== undefined || (typeof value === 'string' && !isStored(value))) return 'FALSE';
  const element = typeof value === 'string' ? value.toWellFormed() : value;
  return `${memberSql(field)} @> ${parameters.add(JSON.stringify([element]), 'jsonb')}`;
}

/** Whether PostgreSQL can hold the value: anything but a text with U+0000. */
function isStored(value: string | number): boolean {
  return typeof value === 'number' || !value.includes('\0');
}
