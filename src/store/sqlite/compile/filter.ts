/**
 * Compiles a filter to an SQL condition. Within it, NULL stands for false: AND and OR keep that meaning, and `not` becomes `IS NOT TRUE`,
 * which ends it. So the logic is two-valued as filter.ts demands, while plain comparisons keep the form that an index can serve.
 */
import type { Field } from '../../../model/field.ts';
import type { Comparison } from '../../../model/filter.ts';
import { wordsOfTerm } from '../../../model/search/search-index.ts';
import { kindOf, type SqlValue } from '../../field-value.ts';
import {
  type Element,
  levelWithin,
  type RelatedShape,
  type Shape,
  type ShapedFilter,
  type ValueEncoding,
  type ValueSlot,
} from '../../filter-shape.ts';
import { quoteName } from '../../sql-text.ts';
import { isMarked, pathLiteral, textColumn, valueSql } from './value.ts';

/** Encodes a list as one JSON text: SQLite takes at most 32,766 parameters, and each length would be a statement of its own. */
export const encoding: ValueEncoding<SqlValue> = {
  list: (values) => JSON.stringify(values),
  pattern: (pattern) => [nativeOctetsMax(pattern), pattern, globOf(pattern)],
  term: (term) => [nativeOctetsMax(term), term],
  words: matchOf,
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

/**
 * True for every row; for one row in 16 and for each long one it calls back to check the deadline. A call takes 0.3 us; a filter of 256
 * comparisons takes some milliseconds between two calls. It is the first condition: SQLite evaluates conditions in order, and would never
 * call it behind one that no row passes.
 */
export const tickSql = '(((rowid & 15) AND octet_length(doc)<=4096) OR comity_tick())';

type Slots = { push(slot: ValueSlot): unknown };

/**
 * @param parameters receives a slot for each value, in the order of their marks
 * @param table the quoted name of the table that the statement reads
 */
export function compileFilter(shape: Shape, parameters: Slots, table: string): string {
  switch (shape.op) {
    case 'always':
      return '1';
    case 'never':
      return '0';
    case 'and':
    case 'or': {
      const parts = shape.parts.map((part) => compileFilter(part, parameters, table));
      return join(parts, shape.op === 'and' ? ' AND ' : ' OR ');
    }
    case 'not':
      return `((${compileFilter(shape.part, parameters, table)}) IS NOT TRUE)`;
    case 'absent':
      return `${valueSql(shape.field)} IS NULL`;
    case 'present':
      return `${valueSql(shape.field)} IS NOT NULL`;
    case 'in': {
      parameters.push({ value: shape.at });
      const kind = kindOf(shape.field);
      const value = kind === 'text' || kind === 'instant' ? 'value' : 'CAST(value AS REAL)';
      return `${valueSql(shape.field)} IN (SELECT ${value} FROM json_each(?))`;
    }
    case 'has':
      if (!literalElements.has(shape.element)) parameters.push({ value: shape.at });
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
      if (shape.words !== undefined) parts.unshift(isMarked('search', shape.words.mark));
      return join(parts, ' AND ');
    }
    case 'related':
      return relatedSql(shape, parameters, table);
    default:
      parameters.push({ value: shape.at });
      return `${valueSql(shape.field)} ${operators[shape.op]} ?`;
  }
}

/** A query of FTS5: words are quoted, and contain no quotation marks. */
export function matchOf(terms: readonly string[]): string {
  const parts = terms.map((term) => {
    const { words, isPrefix } = wordsOfTerm(term);
    return `"${words.join(' ')}"${isPrefix ? ' *' : ''}`;
  });
  return parts.join(' AND ');
}

/** Compiles the filter with its values, for a statement that is not cached. @param table quoted */
export function conditionOf(
  { shape, values }: ShapedFilter<SqlValue>,
  parameters: SqlValue[],
  table: string,
): string {
  const slots: ValueSlot[] = [];
  const condition = compileFilter(shape, slots, table);
  for (const { value } of slots) parameters.push(values[value] ?? null);
  return condition;
}

/**
 * Finds the one row by its id, so that a row costs one look into the primary key of the other table, however large that is. The levels have
 * names that no table may have: a table may refer to itself.
 */
function relatedSql({ field, table, part, named }: RelatedShape, parameters: Slots, outer: string): string {
  const inner = levelWithin(outer);
  if (named !== undefined) parameters.push(named);
  const id = named === undefined ? valueSql(field, `${outer}.`) : '?';
  const condition = part.op === 'always' ? '' : ` AND ${compileFilter(part, parameters, inner)}`;
  return `EXISTS (SELECT 1 FROM ${quoteName(table)} AS ${inner} WHERE ${inner}.id=${id} AND ${inner}.deleted_at IS NULL${condition})`;
}

/** Joins in halves: to SQLite a chain of n operators is a tree of depth n, limited to 1000. */
function join(parts: readonly string[], word: string): string {
  if (parts.length <= 16) return `(${parts.join(word)})`;
  const half = parts.length >> 1;
  return `(${join(parts.slice(0, half), word)}${word}${join(parts.slice(half), word)})`;
}

/** Limit of uninterruptible steps (characters of text times pattern) per row: about 20 us. Beyond it, reader/deadline.ts searches. */
const nativeStepsMax = 16_384;

function nativeOctetsMax(pattern: string): number {
  return Math.ceil(nativeStepsMax / (pattern.length + 1));
}

/** Bounds the field's length by its document's; SQLite knows the length of a column without reading it. */
function likeSql(field: Field, at: number, parameters: Slots): string {
  const value = valueSql(field);
  const column = field.column === undefined ? textColumn(field) : value;
  for (const part of [0, 1, 2]) parameters.push({ value: at + part });
  return `CASE WHEN octet_length(${column})>? THEN comity_like(${value},?) ELSE ${value} GLOB ? END`;
}

/** Checks the type first: json_each also walks objects and scalars. */
function hasSql(field: Field, element: Element): string {
  const at = `${textColumn(field)},${pathLiteral(field)}`;
  return `(json_type(${at})='array' AND EXISTS (SELECT 1 FROM json_each(${at}) WHERE ${elementSql(element)} AND ((key & 1023) OR comity_tick())))`;
}

const literalElements: ReadonlySet<Element> = new Set(['null', 'true', 'false']);

function elementSql(element: Element): string {
  if (element === 'instant') return `type='text' AND rtrim(value,'0Z')=?`;
  if (element === 'string') return `type='text' AND value=?`;
  if (element === 'number') return `type IN ('integer','real') AND CAST(value AS REAL)=?`;
  return `type='${element}'`;
}

/** Converts a `like` pattern to GLOB, which never folds case as LIKE may. A trailing backslash stands for itself. */
function globOf(pattern: string): string {
  let glob = '';
  for (let index = 0; index < pattern.length; index += 1) {
    const character = pattern.charAt(index);
    if (character === '%') glob += '*';
    else if (character === '_') glob += '?';
    else if (character === '\\' && index + 1 < pattern.length) {
      index += 1;
      glob += literal(pattern.charAt(index));
    } else glob += literal(character);
  }
  return glob;
}

function literal(character: string): string {
  return character === '*' || character === '?' || character === '[' ? `[${character}]` : character;
}
