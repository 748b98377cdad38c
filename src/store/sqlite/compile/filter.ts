/**
 * A filter as an SQL condition. Inside, SQL's NULL stands for false: AND and OR keep that meaning, and `not`
 * becomes `IS NOT TRUE`, which ends it; so the logic is two-valued as filter.ts asks, while plain
 * comparisons stay in the form that an index can serve.
 */
import type { Field } from '../../../model/field.ts';
import type { Comparison } from '../../../model/filter.ts';
import { kindOf, type SqlValue } from '../../field-value.ts';
import type { Element, Shape, ShapedFilter, ValueEncoding, ValueSlot } from '../../filter-shape.ts';
import { globOf } from './pattern.ts';
import { pathLiteral, valueSql } from './value.ts';

/** A list is one JSON text: SQLite takes at most 32,766 parameters, and each number of them would be a statement of its own. */
export const encoding: ValueEncoding<SqlValue> = {
  list: (values) => JSON.stringify(values),
  pattern: (pattern) => [nativeOctetsMax(pattern), pattern, globOf(pattern)],
  term: (term) => [nativeOctetsMax(term), term],
  element: (value) => (typeof value === 'boolean' ? Number(value) : value),
};

const operators: Readonly<Record<Comparison, string>> = {
  eq: '=',
  ne: 'IS NOT',
  gt: '>',
  gte: '>=',
  lt: '<',
  lte: '<=',
};

type Slots = { push(slot: ValueSlot): unknown };

/** The condition; a slot for each of its values is appended to `parameters`, in the order of their marks. */
export function compileFilter(shape: Shape, parameters: Slots): string {
  switch (shape.op) {
    case 'always':
      return '1';
    case 'never':
      return '0';
    case 'and':
    case 'or': {
      const parts = shape.parts.map((part) => compileFilter(part, parameters));
      return join(parts, shape.op === 'and' ? ' AND ' : ' OR ');
    }
    case 'not':
      return `((${compileFilter(shape.part, parameters)}) IS NOT TRUE)`;
    case 'absent':
      return `${valueSql(shape.field)} IS NULL`;
    case 'present':
      return `${valueSql(shape.field)} IS NOT NULL`;
    case 'in': {
      parameters.push({ value: shape.at });
      const value = kindOf(shape.field) === 'text' ? 'value' : 'CAST(value AS REAL)';
      return `${valueSql(shape.field)} IN (SELECT ${value} FROM json_each(?))`;
    }
    case 'has':
      if (shape.element === 'string' || shape.element === 'number') parameters.push({ value: shape.at });
      return hasSql(shape.field, shape.element);
    case 'like':
      return likeSql(shape.field, shape.at, parameters);
    case 'search': {
      const parts = shape.terms.map((at) => {
        parameters.push({ value: at });
        parameters.push({ value: at + 1 });
        parameters.push({ value: at + 1 });
        return 'CASE WHEN octet_length(search)>? THEN comity_holds(search,?) ELSE instr(search,?)>0 END';
      });
      return join(parts, ' AND ');
    }
    default:
      parameters.push({ value: shape.at });
      return `${valueSql(shape.field)} ${operators[shape.op]} ?`;
  }
}

/** The filter as a condition with the values to run it with, for a statement that is compiled each time. */
export function conditionOf({ shape, values }: ShapedFilter<SqlValue>, parameters: SqlValue[]): string {
  const slots: ValueSlot[] = [];
  const condition = compileFilter(shape, slots);
  for (const { value } of slots) parameters.push(values[value] ?? null);
  return condition;
}

/** Joins in halves: a chain of n operators is a tree of depth n to SQLite, which takes 1000. */
function join(parts: readonly string[], word: string): string {
  if (parts.length <= 16) return `(${parts.join(word)})`;
  const half = parts.length >> 1;
  return `(${join(parts.slice(0, half), word)}${word}${join(parts.slice(half), word)})`;
}

/**
 * Steps (characters of the text times those of the pattern) that SQLite may take for one row in one call, which nothing interrupts:
 * about 20 us. A longer text goes to a function of ours, which looks at the time as it goes (reader/deadline.ts).
 */
const nativeStepsMax = 16_384;

function nativeOctetsMax(pattern: string): number {
  return Math.ceil(nativeStepsMax / (pattern.length + 1));
}

/** A field is no longer than its document; the length of a column is known without reading it. */
function likeSql(field: Field, at: number, parameters: Slots): string {
  const value = valueSql(field);
  const column = field.column === undefined ? 'doc' : value;
  for (const part of [0, 1, 2]) parameters.push({ value: at + part });
  return `CASE WHEN octet_length(${column})>? THEN comity_like(${value},?) ELSE ${value} GLOB ? END`;
}

/** json_each also walks objects and scalars: the type of the whole is checked first. */
function hasSql(field: Field, element: Element): string {
  const path = pathLiteral(field);
  return `(json_type(doc,${path})='array' AND EXISTS (SELECT 1 FROM json_each(doc,${path}) WHERE ${elementSql(element)} AND ((key & 1023) OR comity_tick())))`;
}

function elementSql(element: Element): string {
  if (element === 'string') return `type='text' AND value=?`;
  if (element === 'number') return `type IN ('integer','real') AND CAST(value AS REAL)=?`;
  return `type='${element}'`;
}
