/**
 * Compiles a filter to an SQL condition. Within it, NULL stands for false: AND and OR keep that meaning, and `not` becomes `IS NOT TRUE`,
 * which ends it. So the logic is two-valued as filter.ts demands, while plain comparisons keep the form that an index can serve. A list of
 * values is one array parameter, however long.
 */
import type { Field } from '../../../model/field.ts';
import type { Comparison, Filter } from '../../../model/filter.ts';
import { wordsOfTerm } from '../../../model/search/search-index.ts';
import { kindOf } from '../../field-value.ts';
import {
  levelWithin,
  type RelatedShape,
  type Shape,
  type ShapedFilter,
  shapeFilter,
  type ValueEncoding,
} from '../../filter-shape.ts';
import { quoteName } from '../../sql-text.ts';
import type { Bindable } from '../connection/connection.ts';
import {
  isMarkedSql,
  liveInTable,
  memberSql,
  type Parameters,
  type ParameterType,
  valueSql,
  wordsSql,
} from './expressions.ts';

const encoding: ValueEncoding<Bindable> = {
  list: (values) => values,
  pattern: (pattern) => [octetsByLike(pattern), likeExpression(pattern), likePattern(pattern)],
  term: (term) => [octetsByLike(term), termExpression(term), term],
  words: tsqueryOf,
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

export function shapeOfFilter(filter: Filter): ShapedFilter<Bindable> {
  return shapeFilter(hasNul(filter) ? withoutNul(filter) : filter, encoding);
}

/** Where a filter stands in a statement. */
export type Level = {
  /** The name of its table, quoted. */
  readonly name: string;
  /** Not quoted. */
  readonly schema: string;
  /** True in a statement whose plan must not depend on statistics (expressions.ts). */
  readonly steered: boolean;
};

/** @param parameters receives a slot for each value */
export function compileFilter(shape: Shape, parameters: Parameters, level: Level): string {
  const value = (field: Field): string => valueSql(field, '', level.schema);
  switch (shape.op) {
    case 'always':
      return 'TRUE';
    case 'never':
      return 'FALSE';
    case 'and':
    case 'or': {
      const parts = shape.parts.map((part) => compileFilter(part, parameters, level));
      return `(${parts.join(shape.op === 'and' ? ' AND ' : ' OR ')})`;
    }
    case 'not':
      return `((${compileFilter(shape.part, parameters, level)}) IS NOT TRUE)`;
    case 'absent':
      return `${value(shape.field)} IS NULL`;
    case 'present':
      return `${value(shape.field)} IS NOT NULL`;
    case 'in': {
      const type = `${typeOf(shape.field, shape.whole)}[]` as ParameterType;
      return `${value(shape.field)} = ANY (${parameters.addValue(shape.at, type)})`;
    }
    case 'has':
      if (shape.element === 'instant') {
        const items = `jsonb_path_query(${memberSql(shape.field)}, 'strict $[*] ? (@.type() == "string")', '{}', true)`;
        return `EXISTS (SELECT 1 FROM ${items} AS item WHERE rtrim(item #>> '{}', '0Z') = ${parameters.addValue(shape.at, 'text')})`;
      }
      // An array contains an array of one if it has that element; no other kind of value contains an array, nor does an array whose element
      // is an array of it. Numbers compare as decimals: equal doubles have the same text on both sides.
      return `${memberSql(shape.field)} @> ${parameters.addValue(shape.at, 'jsonb')}`;
    case 'like':
      return likeSql(shape.field, value(shape.field), shape.at, parameters);
    case 'search': {
      const parts = shape.terms.map((at) => searchSql(at, parameters));
      if (shape.words !== undefined) {
        const { mark, at } = shape.words;
        parts.push(isMarkedSql(mark), `${wordsSql(mark)} @@ ${parameters.addValue(at, 'tsquery')}`);
      }
      return `(${parts.join(' AND ')})`;
    }
    case 'related':
      return relatedSql(shape, parameters, level);
    default: {
      const mark = parameters.addValue(shape.at, typeOf(shape.field, shape.whole));
      return `${value(shape.field)} ${operators[shape.op]} ${mark}`;
    }
  }
}

/**
 * Asks for the row by its id. In a scan the planner, which sees the values, may begin with either table; a steered statement looks into the
 * primary key of the other table once for each row.
 */
function relatedSql(
  { field, table, part, named }: RelatedShape,
  parameters: Parameters,
  { name: outer, schema, steered }: Level,
): string {
  const name = levelWithin(outer);
  const id = named === undefined ? valueSql(field, `${outer}.`) : parameters.addValue(named.value, 'text');
  const conditions = [`${name}.id = ${id}`, steered ? liveInTable(schema) : 'deleted_at IS NULL'];
  if (part.op !== 'always') conditions.push(compileFilter(part, parameters, { name, schema, steered }));
  const from = `${quoteName(schema)}.${quoteName(table)} AS ${name}`;
  return `EXISTS (SELECT 1 FROM ${from} WHERE ${conditions.join(' AND ')})`;
}

/** The parameter type for values of the field. @param whole false if an integer column is compared with a fraction */
export function typeOf(field: Field, whole: boolean): ParameterType {
  switch (kindOf(field)) {
    case 'text':
    case 'instant':
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

/** True if a text in the filter contains U+0000, which PostgreSQL cannot store or receive. */
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
    case 'related':
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

/** An equivalent filter for a store in which no text contains U+0000. */
function withoutNul(filter: Filter): Filter {
  if (!hasNul(filter)) return filter;
  switch (filter.op) {
    case 'and':
    case 'or':
      return { op: filter.op, filters: filter.filters.map(withoutNul) };
    case 'not':
    case 'related':
      return { ...filter, filter: withoutNul(filter.filter) };
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

/** Uses the regular expression if the document is long; the field is no longer than its document. */
function likeSql(field: Field, value: string, at: number, parameters: Parameters): string {
  const long = `octet_length(${field.within ?? 'doc'}) > ${parameters.addValue(at, 'bigint')}`;
  const expression = parameters.addValue(at + 1, 'text');
  return `(CASE WHEN ${long} THEN ${value} ~ ${expression} ELSE ${value} LIKE ${parameters.addValue(at + 2, 'text')} END)`;
}

function searchSql(at: number, parameters: Parameters): string {
  const long = `octet_length(search) > ${parameters.addValue(at, 'bigint')}`;
  const expression = parameters.addValue(at + 1, 'text');
  return `(CASE WHEN ${long} THEN search ~ ${expression} ELSE strpos(search, ${parameters.addValue(at + 2, 'text')}) > 0 END)`;
}

/** A text with U+0000 sorts directly above the part before it. */
function beforeNul(value: unknown): string {
  const text = String(value);
  return text.slice(0, text.indexOf('\0'));
}

/**
 * Converts a `like` pattern for LIKE, where a trailing backslash is an error; here it stands for itself.
 * LIKE and strpos cost the text times the pattern, and nothing interrupts them: one row of 1 MB blocked a backend for 20 s, whatever its
 * `statement_timeout`. Regular expressions of PostgreSQL cost only the text once compiled, and can be interrupted, but take longer to
 * start. So they search long texts with long patterns.
 */
export function likePattern(pattern: string): string {
  let backslashes = 0;
  while (pattern.charAt(pattern.length - 1 - backslashes) === '\\') backslashes += 1;
  return backslashes % 2 === 0 ? pattern : `${pattern}\\`;
}

/** Characters of the text times those of the pattern for one call of LIKE or strpos: about 1 ms. */
const stepsMax = 500_000;

/** Octets of a document above which a regular expression is used. */
function octetsByLike(pattern: string): number {
  return Math.ceil(stepsMax / (pattern.length + 1));
}

function likeExpression(pattern: string): string {
  let expression = '';
  for (let index = 0; index < pattern.length; index += 1) {
    const character = pattern.charAt(index);
    if (character === '%') expression += '.*';
    else if (character === '_') expression += '.';
    else if (character === '\\' && index + 1 < pattern.length) {
      index += 1;
      expression += literal(pattern.charAt(index));
    } else expression += literal(character);
  }
  return `^${expression}$`;
}

function termExpression(term: string): string {
  return [...term].map(literal).join('');
}

const special = /^[\x20-\x2f\x3a-\x40\x5b-\x60\x7b-\x7e]$/;

/** Escapes ASCII punctuation. */
function literal(character: string): string {
  return special.test(character) ? `\\${character}` : character;
}

const conjunction = ' & ';

/** A `tsquery`: words are quoted, and contain neither quotes nor backslashes. */
function tsqueryOf(terms: readonly string[]): string {
  const words = terms.flatMap((term) => {
    const { words: all, isPrefix } = wordsOfTerm(term);
    return all.map((word, at) => `'${word}'${isPrefix && at === all.length - 1 ? ':*' : ''}`);
  });
  return words.join(conjunction);
}

/**
 * The `tsquery` without frequent words, empty if it has no others: for each row with the rarest word the index goes to a page of the list of
 * every other one, 0.7 ms for 20 rows of 1,000,000. The terms decide in the end.
 */
export function withoutFrequent(tsquery: string, frequent: ReadonlySet<string>): string {
  const parts = tsquery.split(conjunction);
  return parts.filter((part) => !frequent.has(part.slice(1, -1))).join(conjunction);
}
