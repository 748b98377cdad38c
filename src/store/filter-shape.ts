/**
 * The shape of a filter: all that the SQL text may depend on, without the values. A store compiles shapes, so a value cannot become SQL
 * text, and caches compiled statements by shape, so queries that differ only in values share one plan and one prepared statement. A list of
 * values counts as one value.
 *
 * Null, and values that no value of the field can equal, are part of the shape, because SQL treats them differently.
 */
import { memoryBounds } from '../memory/bounds.ts';
import { OctetCache, octetsOfText, octetsOfValue } from '../memory/octet-cache.ts';
import type { Field, Scalar } from '../model/field.ts';
import type { Comparison, Filter, Sort } from '../model/filter.ts';
import { instantKey } from '../model/timestamp.ts';
import { fieldKey, kindOf, type SqlValue, toParameter } from './field-value.ts';
import type { ListQuery } from './store.ts';

/** `at` is the index of the value, or of its first value, among the values of the filter. */
export type Shape =
  | { readonly op: 'always' | 'never' }
  | { readonly op: 'and' | 'or'; readonly parts: readonly Shape[] }
  | { readonly op: 'not'; readonly part: Shape }
  | { readonly op: 'absent' | 'present'; readonly field: Field }
  | { readonly op: Comparison | 'in'; readonly field: Field; readonly whole: boolean; readonly at: number }
  | { readonly op: 'has'; readonly field: Field; readonly element: Element; readonly at: number }
  /** The values of the pattern start at `at`; the engine decides their number. */
  | { readonly op: 'like'; readonly field: Field; readonly at: number }
  /** The index of each term's first value. `words`: an index of words finds them by the query at `at`, in texts that begin with the mark. */
  | { readonly op: 'search'; readonly terms: readonly number[]; readonly words?: WordsShape }
  | RelatedShape;

export type RelatedShape = {
  readonly op: 'related';
  readonly field: Field;
  readonly table: string;
  readonly part: Shape;
  /** Set if the field is known to have this value in every row (serve.ts). */
  readonly named?: ValueSlot;
};

export type WordsShape = { readonly mark: string; readonly at: number };

/** @see Shape for the terms */
type WordsSearch = WordsShape & { readonly terms: readonly number[] };

/** The element that an array is searched for: a value that SQL may have to write as a literal, or the type of another value. */
export type Element = 'null' | 'true' | 'false' | 'string' | 'number' | 'instant';

/** How an engine encodes values that are not plain parameters. */
export type ValueEncoding<Value> = {
  readonly list: (values: readonly (string | number)[]) => Value;
  readonly pattern: (pattern: string) => readonly (Value | SqlValue)[];
  readonly term: (term: string) => readonly (Value | SqlValue)[];
  /** The query of an index of words for terms that end at word boundaries (src/model/search). */
  readonly words: (terms: readonly string[]) => Value;
  readonly element: (value: Scalar) => Value;
};

export type ShapedFilter<Value> = {
  readonly shape: Shape;
  /** Equal for equal shapes only. */
  readonly key: string;
  readonly values: readonly (Value | SqlValue)[];
};

/** The place of a value in the parameters of a compiled statement. */
export type ValueSlot = { readonly value: number };

export const always: Shape = { op: 'always' };
const never: Shape = { op: 'never' };

/** @throws RangeError for an invalid time: callers reject those first */
export function shapeFilter<Value>(filter: Filter, encoding: ValueEncoding<Value>): ShapedFilter<Value> {
  const values: (Value | SqlValue)[] = [];
  const shape = shapeOf(filter, encoding, values);
  return { shape, key: keyOf(shape), values };
}

function shapeOf<Value>(filter: Filter, encoding: ValueEncoding<Value>, values: (Value | SqlValue)[]): Shape {
  const take = (value: Value | SqlValue): number => values.push(value) - 1;
  const takeAll = (several: readonly (Value | SqlValue)[]): number =>
    values.push(...several) - several.length;
  switch (filter.op) {
    case 'always':
    case 'never':
      return { op: filter.op };
    case 'and':
    case 'or': {
      const parts = filter.filters.map((part) => shapeOf(part, encoding, values));
      if (parts.length === 0) return filter.op === 'and' ? always : never;
      return { op: filter.op, parts };
    }
    case 'not':
      return { op: 'not', part: shapeOf(filter.filter, encoding, values) };
    case 'in':
      return shapeOfList(filter.field, filter.values, (list) => take(encoding.list(list)));
    case 'has': {
      const { field, value } = filter;
      if (field.column !== undefined) return never;
      if (field.item === 'timestamp' && typeof value === 'string') {
        return { op: 'has', field, element: 'instant', at: take(instantKey(value)) };
      }
      const element =
        typeof value === 'string' ? 'string' : typeof value === 'number' ? 'number' : (`${value}` as const);
      return { op: 'has', field, element, at: take(encoding.element(value)) };
    }
    case 'like': {
      const { field, pattern } = filter;
      if (field.type !== 'string' || kindOf(field) !== 'text') return never;
      return { op: 'like', field, at: takeAll(encoding.pattern(pattern)) };
    }
    case 'search': {
      const terms = filter.terms.map((term) => takeAll(encoding.term(term)));
      if (terms.length === 0) return always;
      if (filter.mark === undefined) return { op: 'search', terms };
      return {
        op: 'search',
        terms,
        words: { mark: filter.mark, at: take(encoding.words(filter.terms)) },
      };
    }
    case 'related': {
      const { field, table } = filter;
      if (kindOf(field) !== 'text') return never;
      const part = shapeOf(filter.filter, encoding, values);
      return part.op === 'never' ? never : { op: 'related', field, table, part };
    }
    default:
      return shapeOfComparison(filter.op, filter.field, filter.value, take);
  }
}

function shapeOfComparison(
  op: Comparison,
  field: Field,
  value: Scalar,
  take: (value: SqlValue) => number,
): Shape {
  if (value === null) {
    if (op === 'eq') return { op: 'absent', field };
    return op === 'ne' ? { op: 'present', field } : never;
  }
  const parameter = toParameter(field, value);
  if (parameter === undefined) return op === 'ne' ? always : never;
  if (kindOf(field) === 'time' && typeof parameter === 'number' && !Number.isInteger(parameter)) {
    // No column holds it: the whole milliseconds beside it decide, as integers, which an index serves.
    if (op === 'eq' || op === 'ne') return op === 'ne' ? always : never;
    const beside = op === 'gt' || op === 'gte' ? 'gt' : 'lte';
    return { op: beside, field, whole: true, at: take(Math.floor(parameter)) };
  }
  return { op, field, whole: isWhole(field, parameter), at: take(parameter) };
}

function shapeOfList(
  field: Field,
  values: readonly Scalar[],
  take: (list: readonly (string | number)[]) => number,
): Shape {
  const list: (string | number)[] = [];
  const kind = kindOf(field);
  let orAbsent = false;
  for (const value of values) {
    const parameter = toParameter(field, value);
    if (parameter === null) orAbsent = true;
    else if (typeof parameter === 'number' && kind === 'time' && !Number.isInteger(parameter)) continue;
    else if (parameter !== undefined) list.push(parameter);
  }
  const absent: Shape = orAbsent ? { op: 'absent', field } : never;
  if (list.length === 0) return absent;
  const whole = list.every((value) => isWhole(field, value));
  const among: Shape = { op: 'in', field, whole, at: take(list) };
  return orAbsent ? { op: 'or', parts: [among, absent] } : among;
}

/** False for numbers that an integer column cannot hold, which an engine may have to compare as another type. */
function isWhole(field: Field, value: SqlValue): boolean {
  return field.column === undefined || typeof value !== 'number' || Number.isSafeInteger(value);
}

function keyOf(shape: Shape): string {
  switch (shape.op) {
    case 'always':
    case 'never':
      return shape.op;
    case 'and':
    case 'or': {
      let key = `${shape.op}(`;
      for (const part of shape.parts) key += `${keyOf(part)} `;
      return `${key})`;
    }
    case 'not':
      return `not(${keyOf(shape.part)})`;
    case 'search':
      return `search${shape.terms.length}${shape.words?.mark ?? ''}`;
    case 'related':
      return `related ${keyOfField(shape.field)} ${JSON.stringify(shape.table)}(${keyOf(shape.part)})`;
    case 'has':
      return `has ${shape.element} ${keyOfField(shape.field)}`;
    case 'absent':
    case 'present':
    case 'like':
      return `${shape.op} ${keyOfField(shape.field)}`;
    default:
      return `${shape.op}${shape.whole ? '' : '~'} ${keyOfField(shape.field)}`;
  }
}

function keyOfField(field: Field): string {
  return `${field.type} ${fieldKey(field)}`;
}

/** Equal for sorts with the same SQL only. */
function keyOfSort(sort: readonly Sort[]): string {
  let key = '';
  for (const { field, direction } of sort) key += `${direction} ${keyOfField(field)} `;
  return key;
}

/** Octets of values per place in the queue of long reads. */
const octetsPerPlace = 64 * 1024;

/** Places that a read with these values takes in the queue, which bounds the queue in octets as well. */
export function placesOf(values: readonly unknown[], placesMax: number): number {
  return Math.min(placesMax, 1 + Math.floor(octetsOfValue(values) / octetsPerPlace));
}

/** The search that an index of words serves, if the filter requires one. */
export function searchIn(shape: Shape): WordsSearch | undefined {
  for (const part of conjuncts(shape)) {
    if (part.op === 'search' && part.words !== undefined) return { ...part.words, terms: part.terms };
  }
  return undefined;
}

/** True for a sort by the rank of what a search finds. */
export function isRanked(sort: readonly Sort[]): boolean {
  return sort.some(({ field }) => field.column === 'rank');
}

/** The terms of a conjunction, flattened; empty for `always`. */
export function conjuncts(shape: Shape): readonly Shape[] {
  if (shape.op === 'always') return [];
  return shape.op === 'and' ? shape.parts.flatMap(conjuncts) : [shape];
}

const levelPrefix = 'comity_level_';

/** The name that a statement gives the table of a `related` within the level: no table may have it. */
export function levelWithin(outer: string): string {
  const depth = outer.startsWith(levelPrefix) ? Number(outer.slice(levelPrefix.length)) : 0;
  return `${levelPrefix}${depth + 1}`;
}

/*
 * Compiled list queries, cached by their shape, which queries that differ only in values share: the ways to read pages, and the statements
 * of each way and kind of position.
 */

/** Kinds of positions (which values of the key are null) whose statements one shape caches. */
const positionsMax = 64;

const statementOctets = 256;

type Statement = { readonly sql: string; readonly parameters: readonly unknown[] };

/** @template S a statement, or several that are read in turn */
type Compiled<S> = { readonly key: string; readonly statements: ReadonlyMap<string, S> };

export function createCompiledShapes<C extends Compiled<Statement | readonly Statement[]>>(): OctetCache<C> {
  return new OctetCache<C>({ octetsMax: memoryBounds.listShapes.octets, octetsOf: octetsOfShape });
}

/** @param of what the shape depends on besides the sort @throws RangeError for a query without a sort */
export function compiledShape<C extends {}>(
  shapes: OctetCache<C>,
  { sort, heads = false }: Pick<ListQuery, 'sort' | 'heads'>,
  of: string,
  compile: (key: string) => C,
): C {
  if (sort.length === 0) throw new RangeError('a list needs a sort that ends with the id');
  const key = `${heads ? 'heads ' : ''}${keyOfSort(sort)}${of}`;
  let shape = shapes.get(key);
  if (shape === undefined) {
    shape = compile(key);
    shapes.set(key, shape);
  }
  return shape;
}

/** @returns the statement of this kind, compiled when it is first used */
export function compiledStatement<S, C extends Compiled<S> & { readonly statements: Map<string, S> }>(
  shapes: OctetCache<C>,
  shape: C,
  kind: string,
  compile: () => S,
): S {
  const kept = shape.statements.get(kind);
  if (kept !== undefined) return kept;
  if (shape.statements.size >= positionsMax) shape.statements.clear();
  const compiled = compile();
  shape.statements.set(kind, compiled);
  // Set again, because its size has grown.
  shapes.set(shape.key, shape);
  return compiled;
}

function octetsOfShape({ key, statements }: Compiled<Statement | readonly Statement[]>): number {
  let octets = 1024 + 4 * octetsOfText(key);
  for (const { sql, parameters } of [...statements.values()].flat()) {
    octets += statementOctets + octetsOfText(sql) + 32 * parameters.length;
  }
  return octets;
}
