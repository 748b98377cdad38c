/**
 * Evaluates a filter on one resource, as a store does in SQL; test/contract compares both. A field's value is the one
 * at its path if it has the field's type, and null otherwise; strings compare by code point, instants by their keys.
 */
import type { Field, Scalar, ScalarType } from './field.ts';
import type { Comparison, Filter } from './filter.ts';
import { foldCase } from './fold-case.ts';
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

/** Null before every value, false before true, texts by code point: as stores order them. */
export function compareScalars(one: Scalar, other: Scalar): number {
  if (one === null || other === null) return Number(one !== null) - Number(other !== null);
  if (typeof one === 'string' && typeof other === 'string') return compareText(one, other);
  return Number(one) - Number(other);
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
  if (typeof value !== typeNames[field.type]) return null;
  return field.folded === true ? foldCase(String(value)) : value;
}

const other = Symbol('neither a scalar nor null');

// Matches a text against a `like` pattern: `%` any run, `_` any one character, `\` escapes the next character. Characters are code
// points, as in both stores. The pattern is split at `%` into segments, each searched after the one before it: the leftmost match
// suffices, since the next `%` covers the rest. The cost is at most the product of both lengths; `check` is called often enough for a
// caller to stop the search by throwing.

export type LikeMatcher = (text: string) => boolean;

/** A literal text, or one character of any kind. */
type Step = string | typeof anyOne;
type Segment = readonly Step[];

const anyOne = Symbol('any one character');

/** Characters searched between two calls of `check`. */
const windowCharacters = 16_384;
const noCheck = (): void => undefined;

export function createLikeMatcher(pattern: string, check: () => void = noCheck): LikeMatcher {
  const segments = segmentsOf(pattern);
  const first = segments[0] ?? [];
  if (segments.length === 1) return (text) => endOf(text, 0, first) === text.length;
  const last = segments.at(-1) ?? [];
  const between = segments.slice(1, -1).filter((segment) => segment.length > 0);
  return (text) => {
    let at = endOf(text, 0, first);
    for (const segment of between) {
      if (at === -1) return false;
      at = find(text, at, segment, check);
    }
    if (at === -1) return false;
    const start = startOf(text, last);
    return start >= at && endOf(text, start, last) === text.length;
  };
}

/** True if the text contains the term; calls `check` in between. */
export function holds(text: string, term: string, check: () => void): boolean {
  return indexOf(text, term, 0, check) !== -1;
}

/** One segment more than there are `%`. */
function segmentsOf(pattern: string): readonly Segment[] {
  const segments: Step[][] = [];
  let steps: Step[] = [];
  let literal = '';
  const endLiteral = (): void => {
    if (literal !== '') steps.push(literal);
    literal = '';
  };
  for (let index = 0; index < pattern.length; index += 1) {
    const character = pattern.charAt(index);
    if (character === '%' || character === '_') endLiteral();
    if (character === '%') {
      segments.push(steps);
      steps = [];
    } else if (character === '_') steps.push(anyOne);
    else if (character === '\\' && index + 1 < pattern.length) {
      index += 1;
      literal += pattern.charAt(index);
    } else literal += character;
  }
  endLiteral();
  segments.push(steps);
  return segments;
}

/** The end of the segment that begins at `at`; -1 if it does not match there. */
function endOf(text: string, at: number, segment: Segment): number {
  let end = at;
  for (const step of segment) {
    if (step === anyOne) {
      if (end >= text.length) return -1;
      end += isPair(text, end) ? 2 : 1;
    } else {
      if (!text.startsWith(step, end)) return -1;
      end += step.length;
    }
  }
  return end;
}

/** The start of a segment that ends the text; -1 if the text is too short. */
function startOf(text: string, segment: Segment): number {
  let start = text.length;
  for (let index = segment.length - 1; index >= 0; index -= 1) {
    const step = segment[index] ?? anyOne;
    if (step !== anyOne) start -= step.length;
    else start -= start >= 2 && isPair(text, start - 2) ? 2 : 1;
    if (start < 0) return -1;
  }
  return start;
}

/** The end of the leftmost match of the segment at or after `from`; -1 without a match. */
function find(text: string, from: number, segment: Segment, check: () => void): number {
  const [first] = segment;
  let untilCheck = windowCharacters;
  for (let at = from; at <= text.length; ) {
    if (typeof first === 'string') {
      at = indexOf(text, first, at, check);
      if (at === -1) return -1;
    }
    const end = endOf(text, at, segment);
    if (end !== -1) return end;
    at += isPair(text, at) ? 2 : 1;
    untilCheck -= segment.length;
    if (untilCheck > 0) continue;
    untilCheck = windowCharacters;
    check();
  }
  return -1;
}

/** `text.indexOf`, in windows: its worst case is the product of both lengths, and nothing interrupts it. */
function indexOf(text: string, term: string, from: number, check: () => void): number {
  const windowSize = windowCharacters + term.length;
  if (text.length - from <= windowSize) return text.indexOf(term, from);
  for (let start = from; start + term.length <= text.length; start += windowCharacters + 1) {
    const found = text.slice(start, start + windowSize).indexOf(term);
    if (found !== -1) return start + found;
    check();
  }
  return -1;
}

function isPair(text: string, at: number): boolean {
  const high = text.charCodeAt(at);
  if (high < 0xd800 || high > 0xdbff) return false;
  const low = text.charCodeAt(at + 1);
  return low >= 0xdc00 && low <= 0xdfff;
}
