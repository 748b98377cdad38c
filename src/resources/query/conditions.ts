/**
 * The conditions of queries, which all syntaxes share: operators of each field type, values, fields beyond references
 * (§4.17), and the words of `q`. On an array field `eq`, `ne` and `in` test membership; a field of type `json` has no
 * operator.
 */

import { checkNumber } from '../../http/syntax/json.ts';
import { foldText } from '../../model/collection.ts';
import { type Field, ignoringCase, type Scalar, type ScalarType } from '../../model/field.ts';
import {
  along,
  always,
  anyOf,
  type Comparison,
  distantField,
  endOfPath,
  equals,
  type Filter,
  isDistant,
  never,
  type Reach,
  relatedCount,
} from '../../model/filter.ts';
import { foldCase } from '../../model/fold-case.ts';
import { isRelativeTime, relativeWords, unknownZoneIn } from '../../model/period.ts';
import type { SearchIndex } from '../../model/search/search-index.ts';
import { parseSearch } from '../../model/search/search-index.ts';
import { instantWords, keptInstant } from '../../model/timestamp.ts';
import type { QueryLimits, Target } from './list-query.ts';
import { cap, type FaultList, listed, type Place, quote, unknownField } from './query-faults.ts';

export type Operator = Comparison | 'in' | 'like' | 'null' | 'eqi' | 'ilike';

/**
 * SQLite refuses a pattern above 50,000 octets; a pattern far below that already costs a scan too much for each row.
 */
const patternCharactersMax = 1000;

const scalarOperators: readonly Operator[] = ['eq', 'ne', 'gt', 'gte', 'lt', 'lte', 'in', 'null'];
const stringOperators: readonly Operator[] = [...scalarOperators, 'like', 'eqi', 'ilike'];
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

/** The operators that take one value, without `like` and `ilike`. `eqi` is `eq` without regard to case. */
export type ValueOperator = Comparison | 'eqi';

/** Compares the field with a value. On an array `eq` means "contains" and `ne` "does not contain". */
export function compare(field: Field, op: ValueOperator, value: Value): Filter {
  if (isDistant(field)) {
    // It also holds where there is no resource at the end of the path.
    if (op === 'ne') return { op: 'not', filter: compare(field, 'eq', value) };
    return along(field.steps, compare(field.end, op, value));
  }
  if (op === 'eqi') return equals(ignoringCase(field), value);
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

/** @param op `ilike`: without regard to case */
export function isLike(field: Field, op: 'like' | 'ilike', pattern: string): Filter {
  if (isDistant(field)) return along(field.steps, isLike(field.end, op, pattern));
  return op === 'like'
    ? { op, field, pattern }
    : { op: 'like', field: ignoringCase(field), pattern: foldCase(pattern) };
}

export function isPattern(operator: Operator): operator is 'like' | 'ilike' {
  return operator === 'like' || operator === 'ilike';
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

// Reads a client's text or JSON value as the value of a field. Both stores compare these values, so each is exact: a number is one that a
// double holds, a time has the kept spelling of instants, and a string has nothing that PostgreSQL cannot store (U+0000, lone
// surrogates).

export type Value = string | number | boolean;

/** A day, which means its first moment in UTC. */
const dayGrammar = /^\d{4}-\d\d-\d\d$/;
const wholeNumber = /^-?[1-9]\d*$/;
/** A `+` that a query string has made a space. */
const spacedPlus = / (?:\d\d:\d\d$|P)/;

const wanted: Readonly<Record<ScalarType, string>> = {
  string: 'a string without U+0000',
  number: 'a number',
  integer: 'an integer',
  boolean: 'true or false',
  timestamp: `a day, or ${instantWords}, or ${relativeWords}`,
};

/** Returns the type of the field's values; for an array, of its items. */
function valueType(field: Pick<Field, 'type' | 'item'>): ScalarType {
  if (field.type === 'array') return field.item ?? 'string';
  return field.type === 'json' ? 'string' : field.type;
}

export function describeValue(field: Field): string {
  return field.isDay === true ? `a day such as 2026-01-31, or ${relativeWords}` : wanted[valueType(field)];
}

/** Names the likely mistake in a refused text of a query string, to end a message with; empty if none is likely. */
export function hintFor(field: Field, text: string): string {
  const type = valueType(field);
  if (type === 'timestamp' || field.isDay === true) {
    const timeZone = unknownZoneIn(text);
    if (timeZone !== undefined) return `; the IANA database has no time zone ${quote(timeZone)}`;
    return spacedPlus.test(text) ? '; write "+" as %2B in a URL' : '';
  }
  const isNumber = type === 'integer' || type === 'number';
  return isNumber && wholeNumber.test(text) ? '; a double cannot keep it exactly' : '';
}

type Compared = Pick<Field, 'type' | 'item' | 'isDay'>;

/** Reads text from a query string; undefined if it is not a value of the field. A time relative to the present stays its text. */
export function readText(field: Compared, text: string): Value | undefined {
  switch (valueType(field)) {
    case 'string':
      if (field.isDay === true && unknownZoneIn(text) !== undefined) return undefined;
      return isStorable(text) ? text : undefined;
    case 'number':
      return readNumber(text);
    case 'integer': {
      const number = readNumber(text);
      return Number.isInteger(number) ? number : undefined;
    }
    case 'boolean':
      if (text === 'true') return true;
      return text === 'false' ? false : undefined;
    case 'timestamp':
      if (isRelativeTime(text)) return unknownZoneIn(text) === undefined ? text : undefined;
      return keptInstant(dayGrammar.test(text) ? `${text}T00:00:00Z` : text);
  }
}

/** Reads a JSON value or an SQL literal; undefined if it is not a value of the field. */
export function readValue(field: Compared, value: unknown): Value | undefined {
  const type = valueType(field);
  switch (typeof value) {
    case 'string':
      return type === 'string' || type === 'timestamp' ? readText(field, value) : undefined;
    case 'number':
      if (!Number.isFinite(value)) return undefined;
      // Adding 0 turns -0 into 0.
      return type === 'number' || (type === 'integer' && Number.isInteger(value)) ? value + 0 : undefined;
    case 'boolean':
      return type === 'boolean' ? value : undefined;
    default:
      return undefined;
  }
}

/** Reads a non-negative integer of at most fifteen digits, as in `limit=20`. */
export function readCount(text: string): number | undefined {
  if (text.length === 0 || text.length > 15) return undefined;
  let count = 0;
  for (let at = 0; at < text.length; at += 1) {
    const digit = text.charCodeAt(at) - 0x30;
    if (digit < 0 || digit > 9) return undefined;
    count = count * 10 + digit;
  }
  return count;
}

function isStorable(text: string): boolean {
  return !text.includes('\0') && text.isWellFormed();
}

function readNumber(text: string): number | undefined {
  return text.length > 0 && checkNumber(text, 0) === text.length ? Number(text) + 0 : undefined;
}

// Fields beyond references in queries (§4.17). They can be compared, and neither sorted by nor selected. What the caller may not read
// counts as absent, so that a hidden resource cannot be distinguished from a missing one.

/** Those of a filter alone. */
export type FilterLimits = Pick<
  QueryLimits,
  'filterDepthMax' | 'filterNodesMax' | 'filterReferenceDepthMax' | 'filterReferencesMax' | 'inValuesMax'
>;

export type Finding<Limits = QueryLimits> = {
  readonly target: Target;
  readonly limits: Limits;
  readonly faults: FaultList;
};

/** Finds a field to compare; reports an unknown one. */
export function findCompared(
  name: string,
  { target, limits, faults }: Finding<FilterLimits>,
  place?: Place,
): Field | undefined {
  const found = target.fields.get(name) ?? distantField(name, target);
  if (found === undefined) faults.unprocessable(unknownCompared(name, target), place);
  else if (isDistant(found) && found.steps.length > limits.filterReferenceDepthMax) {
    const message = `${quote(name)} leads through more than ${limits.filterReferenceDepthMax} references`;
    faults.unprocessable(message, place);
    return undefined;
  }
  return found;
}

/** Reports more conditions through references than a query may have. */
export function checkRelated(
  filter: Filter,
  { limits, faults }: Omit<Finding<FilterLimits>, 'target'>,
): Filter {
  const { filterReferencesMax } = limits;
  if (relatedCount(filter) > filterReferencesMax)
    faults.unprocessable(
      `a query takes at most ${filterReferencesMax} references on the paths of its filters`,
    );
  return filter;
}

function unknownCompared(name: string, target: Reach): string {
  const { at } = endOfPath(name, target);
  if (at === target) return unknownField(name, target.fields);
  return `unknown field ${quote(name)}; fields of ${cap(at.table)}: ${listed(at.fields.keys())}`;
}

// Compiles `q`: words, prefixes and phrases of an index, or parts of words that must all occur in the folded search text of a resource.

/** The cost of a substring search is the length of the term times that of the text. */
const searchTermCharactersMax = 200;

const whiteSpace = /\s+/u;

type Into = { readonly limits: QueryLimits; readonly faults: FaultList; readonly place: Place };

/** Folds the text before splitting it, because folding turns other white space into plain spaces. */
export function compileSearch(text: string, target: Target, into: Into): Filter {
  const { limits, faults, place } = into;
  if (!target.searched) {
    faults.unprocessable(`${target.table} has no text to search with q`, place);
    return always;
  }
  if (!isStorable(text)) {
    faults.unprocessable('q takes a string without U+0000', place);
    return always;
  }
  if (target.searchIndex !== undefined) return compileWords(text, target.searchIndex, into);
  const terms = new Set(foldText(text).split(whiteSpace));
  terms.delete('');
  if (terms.size > limits.searchTermsMax) {
    faults.unprocessable(`q takes at most ${limits.searchTermsMax} words, not ${terms.size}`, place);
    return always;
  }
  for (const term of terms) {
    if (term.length <= searchTermCharactersMax) continue;
    faults.unprocessable(
      `a word of q must have at most ${searchTermCharactersMax} characters; ${quote(term)} is longer`,
      place,
    );
    return always;
  }
  return terms.size === 0 ? always : { op: 'search', terms: [...terms] };
}

/** A text without any word finds nothing, and a blank one searches for nothing. */
function compileWords(text: string, index: SearchIndex, { limits, faults, place }: Into): Filter {
  const termsMax = limits.searchTermsMax;
  const { terms, tooLong } = parseSearch(index, text, {
    termsMax,
    termCharactersMax: searchTermCharactersMax,
  });
  if (tooLong !== undefined) {
    faults.unprocessable(
      `a word or phrase of q must have at most ${searchTermCharactersMax} characters; ${quote(tooLong)} is longer`,
      place,
    );
    return always;
  }
  if (terms.length > termsMax) {
    faults.unprocessable(`q takes at most ${termsMax} words, prefixes and phrases`, place);
    return always;
  }
  if (terms.length === 0) return text.trim() === '' ? always : never;
  return { op: 'search', terms, mark: index.mark };
}
