/**
 * A filter as an SQL condition. Inside, SQL's NULL stands for false: AND and OR keep that meaning, and `not`
 * becomes `IS NOT TRUE`, which ends it; so the logic is two-valued as filter.ts asks, while plain
 * comparisons stay in the form that an index can serve.
 */
import type { Field, Scalar } from '../../../model/field.ts';
import type { Comparison, Filter } from '../../../model/filter.ts';
import { kindOf, type SqlValue, toParameter } from '../../field-value.ts';
import { globOf } from './pattern.ts';
import { pathLiteral, valueSql } from './value.ts';

/** Above this many values a list is bound as one JSON text: SQLite takes at most 32766 parameters. */
const listParametersMax = 100;

const operators: Readonly<Record<Comparison, string>> = {
  eq: '=',
  ne: 'IS NOT',
  gt: '>',
  gte: '>=',
  lt: '<',
  lte: '<=',
};

/** The condition; its parameters are appended to `parameters` in the order of their marks. */
export function compileFilter(filter: Filter, parameters: SqlValue[]): string {
  switch (filter.op) {
    case 'always':
      return '1';
    case 'never':
      return '0';
    case 'and':
    case 'or': {
      const word = filter.op === 'and' ? ' AND ' : ' OR ';
      const parts = filter.filters.map((part) => compileFilter(part, parameters));
      return parts.length === 0 ? (filter.op === 'and' ? '1' : '0') : join(parts, word);
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
      if (filter.field.type !== 'string' || kindOf(filter.field) !== 'text') return '0';
      parameters.push(globOf(filter.pattern));
      return `${valueSql(filter.field)} GLOB ?`;
    case 'search': {
      const parts = filter.terms.map((term) => {
        parameters.push(term);
        return 'instr(search,?)>0';
      });
      return parts.length === 0 ? '1' : join(parts, ' AND ');
    }
  }
}

/** Joins in halves: a chain of n operators is a tree of depth n to SQLite, which takes 1000. */
function join(parts: readonly string[], word: string): string {
  if (parts.length <= 16) return `(${parts.join(word)})`;
  const half = parts.length >> 1;
  return `(${join(parts.slice(0, half), word)}${word}${join(parts.slice(half), word)})`;
}

function compare(op: Comparison, field: Field, value: Scalar, parameters: SqlValue[]): string {
  const parameter = toParameter(field, value);
  if (value === null) {
    if (op === 'eq') return `${valueSql(field)} IS NULL`;
    return op === 'ne' ? `${valueSql(field)} IS NOT NULL` : '0';
  }
  if (parameter === undefined) return op === 'ne' ? '1' : '0';
  parameters.push(parameter);
  return `${valueSql(field)} ${operators[op]} ?`;
}

function among(field: Field, values: readonly Scalar[], parameters: SqlValue[]): string {
  const list: SqlValue[] = [];
  let orNull = false;
  for (const value of values) {
    const parameter = toParameter(field, value);
    if (parameter === null) orNull = true;
    else if (parameter !== undefined) list.push(parameter);
  }
  const parts: string[] = [];
  if (list.length > listParametersMax) {
    const value = kindOf(field) === 'text' ? 'value' : 'CAST(value AS REAL)';
    parts.push(`${valueSql(field)} IN (SELECT ${value} FROM json_each(?))`);
    parameters.push(JSON.stringify(list));
  } else if (list.length > 0) {
    parts.push(`${valueSql(field)} IN (${list.map(() => '?').join(',')})`);
    parameters.push(...list);
  }
  if (orNull) parts.push(`${valueSql(field)} IS NULL`);
  return parts.length === 0 ? '0' : join(parts, ' OR ');
}

/** json_each also walks objects and scalars: the type of the whole is checked first. */
function has(field: Field, value: Scalar, parameters: SqlValue[]): string {
  if (field.column !== undefined) return '0';
  const path = pathLiteral(field);
  return `(json_type(doc,${path})='array' AND EXISTS (SELECT 1 FROM json_each(doc,${path}) WHERE ${element(value, parameters)}))`;
}

function element(value: Scalar, parameters: SqlValue[]): string {
  if (value === null) return `type='null'`;
  if (typeof value === 'boolean') return `type='${value}'`;
  parameters.push(value);
  return typeof value === 'string'
    ? `type='text' AND value=?`
    : `type IN ('integer','real') AND CAST(value AS REAL)=?`;
}
