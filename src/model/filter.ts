/**
 * The common form of query strings, the three QUERY media types (§4.9) and access rules. Each store compiles it to its
 * own SQL; `matches` evaluates it on one resource.
 *
 * The logic is two-valued. A comparison with an absent or null value is false, except that `eq null` holds for it and
 * `ne` holds wherever `eq` does not; so `not` is plain negation. Strings compare by code point. A timestamp value has
 * the kept spelling of instants, and compares by its key (timestamp.ts).
 */
import { type Field, type Fields, idField, type Scalar } from './field.ts';
import { foldCase } from './fold-case.ts';
import { isRelativeTime, relativeTimeAt } from './period.ts';

export type Comparison = 'eq' | 'ne' | 'gt' | 'gte' | 'lt' | 'lte';

export type Filter =
  | { readonly op: 'always' }
  | { readonly op: 'never' }
  | { readonly op: 'and' | 'or'; readonly filters: readonly Filter[] }
  | { readonly op: 'not'; readonly filter: Filter }
  | { readonly op: Comparison; readonly field: Field; readonly value: Scalar }
  | { readonly op: 'in'; readonly field: Field; readonly values: readonly Scalar[] }
  /** The array field holds the value as an element. */
  | { readonly op: 'has'; readonly field: Field; readonly value: Scalar }
  /** Case-sensitive; `%` any run, `_` any one character, `\` escapes; string fields only. */
  | { readonly op: 'like'; readonly field: Field; readonly pattern: string }
  /** Every term is a substring of the resource's search text (`searchText` in collection.ts). */
  | {
      readonly op: 'search';
      readonly terms: readonly string[];
      /**
       * Set for a collection with an index of words: how the texts begin that have their words from its declaration, which alone can match.
       * The terms then end at word boundaries (src/model/search).
       */
      readonly mark?: string;
    }
  /** The string field names a row of the table that exists, is not softly deleted, and passes the filter. */
  | { readonly op: 'related'; readonly field: Field; readonly table: string; readonly filter: Filter };

export type Sort = { readonly field: Field; readonly direction: 'asc' | 'desc' };

/** @param value as in documents: its case does not matter if that of the field does not */
export function equals(field: Field, value: Scalar): Filter {
  return {
    op: 'eq',
    field,
    value: field.folded === true && typeof value === 'string' ? foldCase(value) : value,
  };
}

/** The order of creation: ids begin with their time. */
export const byId: readonly Sort[] = [{ field: idField, direction: 'asc' }];

export const always: Filter = { op: 'always' };
export const never: Filter = { op: 'never' };

/** Conjunction that keeps the tree small: drops `always`, collapses on `never`. */
export function allOf(filters: readonly Filter[]): Filter {
  const kept: Filter[] = [];
  for (const filter of filters) {
    if (filter.op === 'never') return never;
    if (filter.op === 'and') kept.push(...filter.filters);
    else if (filter.op !== 'always') kept.push(filter);
  }
  const [first] = kept;
  if (first === undefined) return always;
  return kept.length === 1 ? first : { op: 'and', filters: kept };
}

/** Disjunction that keeps the tree small: drops `never`, collapses on `always`. */
export function anyOf(filters: readonly Filter[]): Filter {
  const kept: Filter[] = [];
  for (const filter of filters) {
    if (filter.op === 'always') return always;
    if (filter.op === 'or') kept.push(...filter.filters);
    else if (filter.op !== 'never') kept.push(filter);
  }
  const [first] = kept;
  if (first === undefined) return never;
  return kept.length === 1 ? first : { op: 'or', filters: kept };
}

/** The opposite, without double negation. */
export function negated(filter: Filter): Filter {
  if (filter.op === 'always') return never;
  if (filter.op === 'never') return always;
  return filter.op === 'not' ? filter.filter : { op: 'not', filter };
}

/** The tables whose rows decide, besides its own, which rows pass the filter; each once. */
export function tablesOf(filter: Filter): readonly string[] {
  return isRelated(filter) ? [...new Set(relatedTables(filter))] : noTables;
}

const noTables: readonly string[] = [];

function relatedTables(filter: Filter): readonly string[] {
  if ('filters' in filter) return filter.filters.flatMap(relatedTables);
  if (!('filter' in filter)) return noTables;
  const within = relatedTables(filter.filter);
  return filter.op === 'related' ? [filter.table, ...within] : within;
}

/** True if the filter looks at rows of other tables. */
export function isRelated(filter: Filter): boolean {
  if ('filters' in filter) return filter.filters.some(isRelated);
  return filter.op === 'related' || (filter.op === 'not' && isRelated(filter.filter));
}

/** How many looks at rows of other tables the filter has. */
export function relatedCount(filter: Filter): number {
  if ('filters' in filter) return filter.filters.reduce((sum, part) => sum + relatedCount(part), 0);
  return 'filter' in filter ? Number(filter.op === 'related') + relatedCount(filter.filter) : 0;
}

// Values relative to the present (period.ts), which a filter holds as their texts until a request resolves them: a cursor is bound to the
// texts, and goes on at a later time.

/** The filter compares with times relative to the present. */
export function isRelative(filter: Filter): boolean {
  if ('filters' in filter) return filter.filters.some(isRelative);
  if ('filter' in filter) return isRelative(filter.filter);
  if ('values' in filter) return filter.values.some((value) => isRelativeValue(filter.field, value));
  return 'value' in filter && isRelativeValue(filter.field, filter.value);
}

/** The filter with the values that its relative times have at the moment. */
export function atMoment(filter: Filter, nowMs: number): Filter {
  if ('filters' in filter) return { ...filter, filters: filter.filters.map((part) => atMoment(part, nowMs)) };
  if ('filter' in filter) return { ...filter, filter: atMoment(filter.filter, nowMs) };
  const resolved = (field: Field, value: Scalar): Scalar => {
    if (!isRelativeValue(field, value)) return value;
    const { instant, day } = relativeTimeAt(value, nowMs);
    return field.isDay === true ? day : instant;
  };
  if ('values' in filter)
    return { ...filter, values: filter.values.map((value) => resolved(filter.field, value)) };
  return 'value' in filter ? { ...filter, value: resolved(filter.field, filter.value) } : filter;
}

/** True for a value that is a time relative to the present in a comparison with the field. */
export function isRelativeValue({ type, item, isDay }: Field, value: unknown): value is string {
  const hasTimes = isDay === true || type === 'timestamp' || item === 'timestamp';
  return hasTimes && typeof value === 'string' && isRelativeTime(value);
}

// Paths over references: `customerId.organisationId` is the field `organisationId` of the resource that `customerId` names. Queries
// compare such fields (§4.17), and so do access rules (§5.9). Where the reference names nothing, the field is absent.

/** What paths may name of one collection. */
export type Reach = {
  readonly table: string;
  readonly fields: Fields;
  /** The collection that a reference field names; undefined for any other name. Absent: no field is a reference. */
  readonly through?: Through | undefined;
};

export type Through = (name: string) => Reach | undefined;

export type Step = { readonly field: Field; readonly table: string };

/** A field of a resource that references lead to. Filters have `end` within `related`. */
type DistantField = Field & { readonly steps: readonly Step[]; readonly end: Field };

/** Names of paths are longer than those of fields, and each name costs a look. */
const pathNamesMax = 16;

/** The field that the path leads to; undefined if there is none. */
export function distantField(name: string, from: Reach): DistantField | undefined {
  if (from.through === undefined || !name.includes('.')) return undefined;
  let [first = '', ...rest] = name.split('.', pathNamesMax);
  const steps: Step[] = [];
  let at: Reach = from;
  while (rest.length > 0) {
    const field = at.fields.get(first);
    const next = field === undefined ? undefined : at.through?.(first);
    if (field === undefined || next === undefined) return undefined;
    steps.push({ field, table: next.table });
    at = next;
    const end = at.fields.get(rest.join('.'));
    if (end !== undefined) return { ...withoutColumn(end), name, steps, end };
    [first = '', ...rest] = rest;
  }
  return undefined;
}

function withoutColumn({ column: _column, ...field }: Field): Field {
  return field;
}

export function isDistant(field: Field): field is DistantField {
  return 'steps' in field;
}

/** The condition on the resource at the end of the path, as one on the resource at its beginning. */
export function along(steps: readonly Step[], condition: Filter): Filter {
  return steps.reduceRight(
    (filter: Filter, { field, table }) => ({ op: 'related', field, table, filter }),
    condition,
  );
}

/** Where a path that leads nowhere ends: the last collection that it reaches, and the rest of its names. */
export function endOfPath(name: string, from: Reach): { readonly at: Reach; readonly rest: string } {
  let at = from;
  let rest = name;
  for (;;) {
    const dot = rest.indexOf('.');
    const next = dot === -1 ? undefined : at.through?.(rest.slice(0, dot));
    if (next === undefined) return { at, rest };
    at = next;
    rest = rest.slice(dot + 1);
  }
}
