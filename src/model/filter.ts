/**
 * The common form of query strings, the three QUERY media types (§4.9) and access rules. Each store compiles it to its
 * own SQL; `matches` evaluates it on one resource.
 *
 * The logic is two-valued. A comparison with an absent or null value is false, except that `eq null` holds for it and
 * `ne` holds wherever `eq` does not; so `not` is plain negation. Strings compare by code point. A timestamp value is an
 * ISO 8601 UTC string with milliseconds.
 */
import { type Field, idField, type Scalar } from './field.ts';

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
  | { readonly op: 'search'; readonly terms: readonly string[] };

export type Sort = { readonly field: Field; readonly direction: 'asc' | 'desc' };

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
