/**
 * Chooses the index that serves a list query so that a page costs what it returns: one whose leading keys the filter fixes and whose next
 * keys are the sort. Queries without such an index are scanned, apart from other reads.
 *
 * Not served on purpose: patterns, search and membership, even beside the id, since one row of 1 MB can take seconds; `in` over an index
 * (its values would have to be merged in sort order); sorts of mixed direction (an index has one direction; the id that ends a sort should
 * take that of the last key).
 */
import type { Field } from '../model/field.ts';
import type { Sort } from '../model/filter.ts';
import { fieldKey, kindOf } from './field-value.ts';
import { conjuncts, type Shape } from './filter-shape.ts';
import type { OrderKey } from './keyset.ts';

/** SQLite's planner takes time quadratic in the conditions: a longer conjunction is scanned instead. */
const conjunctsMax = 32;

export type Indexed = {
  readonly indexes: readonly {
    readonly name: string;
    /** Field keys in order; a unique index has one, every other ends with `id`. */
    readonly keys: readonly string[];
    readonly unique: boolean;
  }[];
  readonly primaryKey: string;
};

export type Service = {
  readonly index: string;
  /** The index finds at most one row, whatever else the filter says. */
  readonly oneRow: boolean;
  /** The sort without the keys that the filter fixes. */
  readonly order: readonly OrderKey[];
};

/** @returns `never` if no row can match; undefined if no index serves the query */
export function serve(layout: Indexed, filter: Shape, sort: readonly Sort[]): Service | 'never' | undefined {
  const parts = conjuncts(filter);
  if (parts.some(({ op }) => op === 'never')) return 'never';
  if (parts.length > conjunctsMax || parts.some(looksInside)) return undefined;
  const single = parts.map((part) => singleRow(layout, part)).find((index) => index !== undefined);
  if (single !== undefined) return { index: single, oneRow: true, order: effectiveOrder(sort, new Set()) };

  const fixed = new Set<string>();
  const ranged = new Set<string>();
  const sides = new Set<string>();
  for (const part of parts) {
    if (part.op === 'eq' || part.op === 'absent') {
      if (kindOf(part.field) === 'none' || fixed.has(fieldKey(part.field))) return undefined;
      fixed.add(fieldKey(part.field));
    } else if (part.op === 'gt' || part.op === 'gte' || part.op === 'lt' || part.op === 'lte') {
      // With two bounds on one side SQLite may start at either.
      const side = part.op.slice(0, 2);
      if (sides.has(side)) return undefined;
      sides.add(side);
      ranged.add(fieldKey(part.field));
    } else return undefined;
  }
  const order = effectiveOrder(sort, fixed);
  const first = order[0];
  if (order.some((key) => key.direction !== first?.direction)) return undefined;
  const keys = order.map((key) => fieldKey(key.field));
  for (const key of ranged) if (key !== keys[0]) return undefined;
  for (const index of layout.indexes) {
    if (!index.unique && fits(index.keys, fixed, keys)) {
      return { index: index.name, oneRow: false, order };
    }
  }
  if (fits(['id'], fixed, keys)) return { index: layout.primaryKey, oneRow: false, order };
  return undefined;
}

function singleRow(layout: Indexed, part: Shape): string | undefined {
  if (part.op !== 'eq') return undefined;
  if (part.field.column === 'id') return layout.primaryKey;
  const key = fieldKey(part.field);
  return layout.indexes.find((index) => index.unique && index.keys[0] === key)?.name;
}

/** True if the cost of one row grows with its content: then even one row is a scan. */
export function looksInside(shape: Shape): boolean {
  if (shape.op === 'like' || shape.op === 'search' || shape.op === 'has') return true;
  if (shape.op === 'not' || shape.op === 'related') return looksInside(shape.part);
  return 'parts' in shape && shape.parts.some(looksInside);
}

/** Drops the keys that the filter fixes and those after the id, which order nothing. */
function effectiveOrder(sort: readonly Sort[], fixed: ReadonlySet<string>): readonly OrderKey[] {
  const order: OrderKey[] = [];
  for (const [slot, key] of sort.entries()) {
    if (!fixed.has(fieldKey(key.field))) order.push({ ...key, slot });
    if (isId(key.field)) break;
  }
  return order;
}

function fits(index: readonly string[], fixed: ReadonlySet<string>, sort: readonly string[]): boolean {
  for (let at = 0; at < fixed.size; at += 1) if (!fixed.has(index[at] ?? '')) return false;
  return sort.every((key, at) => index[fixed.size + at] === key);
}

function isId(field: Field): boolean {
  return field.column === 'id';
}
