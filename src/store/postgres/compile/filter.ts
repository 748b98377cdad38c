/**
 * A filter as an SQL condition. Inside, SQL's NULL stands for false: AND and OR keep that meaning, and `not`
 * becomes `IS NOT TRUE`, which ends it; so the logic is two-valued as filter.ts asks, while plain
 * comparisons stay in the form that an index can serve.
 *
 * A list of values is one array parameter, however long.
 */
import type { Field } from '../../../model/field.ts';
import type { Comparison, Filter } from '../../../model/filter.ts';
import { kindOf } from '../../field-value.ts';
import { type Shape, type ShapedFilter, shapeFilter, type ValueEncoding } from '../../filter-shape.ts';
import type { Bindable } from '../connection/connection.ts';
import type { Parameters, ParameterType } from './parameters.ts';
import { likeExpression, likePattern, octetsByLike, termExpression } from './pattern.ts';
import { memberSql, valueSql } from './value.ts';

const encoding: ValueEncoding<Bindable> = {
  list: (values) => values,
  pattern: (pattern) => [octetsByLike(pattern), likeExpression(pattern), likePattern(pattern)],
  term: (term) => [octetsByLike(term), termExpression(term), term],
  element: (value) => JSON.stringify([typeof value === 'string' ? value.toWellFormed() : value]),
};

const operators: Readonly<Record<Comparison, string>> = {
  eq: '=',
  ne: 'IS DISTINCT FROM',
  gt: '>',
  gte: '>=',
  lt: '<',
  lte: '<=',
};

/** The shape of a filter as PostgreSQL can hold its values. */
export function shapeOfFilter(filter: Filter): ShapedFilter<Bindable> {
  return shapeFilter(hasNul(filter) ? withoutNul(filter) : filter, encoding);
}

/** The condition; a slot for each of its values is added to `parameters`. */
export function compileFilter(shape: Shape, parameters: Parameters): string {
  switch (shape.op) {
    case 'always':
      return 'TRUE';
    case 'never':
      return 'FALSE';
    case 'and':
    case 'or': {
      const parts = shape.parts.map((part) => compileFilter(part, parameters));
      return `(${parts.join(shape.op === 'and' ? ' AND ' : ' OR ')})`;
    }
    case 'not':
      return `((${compileFilter(shape.part, parameters)}) IS NOT TRUE)`;
    case 'absent':
      return `${valueSql(shape.field)} IS NULL`;
    case 'present':
      return `${valueSql(shape.field)} IS NOT NULL`;
    case 'in': {
      const type = `${typeOf(shape.field, shape.whole)}[]` as ParameterType;
      return `${valueSql(shape.field)} = ANY (${parameters.addValue(shape.at, type)})`;
    }
    case 'has':
      // An array contains an array of one where it has that element; no other kind of value contains an array, nor does an array whose
      // element is an array of it. Numbers compare as decimals: equal doubles are written alike on both sides.
      return `${memberSql(shape.field)} @> ${parameters.addValue(shape.at, 'jsonb')}`;
    case 'like':
      return likeSql(shape.field, shape.at, parameters);
    case 'search': {
      const parts = shape.terms.map((at) => searchSql(at, parameters));
      return `(${parts.join(' AND ')})`;
    }
    default: {
      const mark = parameters.addValue(shape.at, typeOf(shape.field, shape.whole));
      return `${valueSql(shape.field)} ${operators[shape.op]} ${mark}`;
    }
  }
}

/**
 * The type that values of the field travel as.
 * @param whole false where a column of whole numbers is compared with what is none
 */
export function typeOf(field: Field, whole: boolean): ParameterType {
  switch (kindOf(field)) {
    case 'text':
      return 'text';
    case 'number':
      return field.column === undefined || !whole ? 'float8' : 'bigint';
    case 'boolean':
      return 'int';
    case 'time':
      return 'bigint';
    case 'none':
      return 'jsonb';
  }
}

/** Whether a text in the filter has U+0000, which no text of PostgreSQL holds and which could not be sent. */
function hasNul(filter: Filter): boolean {
  const isNul = (value: unknown): boolean => typeof value === 'string' && value.includes('\0');
  switch (filter.op) {
    case 'always':
    case 'never':
      return false;
    case 'and':
    case 'or':
      return filter.filters.some(hasNul);
    case 'not':
      return hasNul(filter.filter);
    case 'in':
      return filter.values.some(isNul);
    case 'like':
      return isNul(filter.pattern);
    case 'search':
      return filter.terms.some(isNul);
    default:
      return isNul(filter.value);
  }
}

/** A filter that means the same in a store in which no text has U+0000. */
function withoutNul(filter: Filter): Filter {
  if (!hasNul(filter)) return filter;
  switch (filter.op) {
    case 'and':
    case 'or':
      return { op: filter.op, filters: filter.filters.map(withoutNul) };
    case 'not':
      return { op: 'not', filter: withoutNul(filter.filter) };
    case 'in':
      return {
        ...filter,
        values: filter.values.filter((value) => typeof value !== 'string' || !value.includes('\0')),
      };
    case 'ne':
      return { op: 'always' };
    case 'gt':
    case 'gte':
      return { ...filter, op: 'gt', value: beforeNul(filter.value) };
    case 'lt':
    case 'lte':
      return { ...filter, op: 'lte', value: beforeNul(filter.value) };
    default:
      return { op: 'never' };
  }
}

/** Whether the text is long, the regular expression, and the plain pattern. A field is no longer than its document. */
function likeSql(field: Field, at: number, parameters: Parameters): string {
  const value = valueSql(field);
  const long = `octet_length(doc) > ${parameters.addValue(at, 'bigint')}`;
  const expression = parameters.addValue(at + 1, 'text');
  return `(CASE WHEN ${long} THEN ${value} ~ ${expression} ELSE ${value} LIKE ${parameters.addValue(at + 2, 'text')} END)`;
}

function searchSql(at: number, parameters: Parameters): string {
  const long = `octet_length(search) > ${parameters.addValue(at, 'bigint')}`;
  const expression = parameters.addValue(at + 1, 'text');
  return `(CASE WHEN ${long} THEN search ~ ${expression} ELSE strpos(search, ${parameters.addValue(at + 2, 'text')}) > 0 END)`;
}

/** A text with U+0000 sorts right above the part that stands before it. */
function beforeNul(value: unknown): string {
  const text = String(value);
  return text.slice(0, text.indexOf('\0'));
}
