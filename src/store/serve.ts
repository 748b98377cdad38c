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
import {
  always,
  conjuncts,
  isRanked,
  type RelatedShape,
  type Shape,
  type ValueSlot,
} from './filter-shape.ts';
import type { OrderKey } from './page-of-rows.ts';
import type { Table } from './store.ts';
import type { Way } from './store-report.ts';

/** SQLite's planner takes time quadratic in the conditions: a longer conjunction is scanned instead. */
const conjunctsMax = 32;

type Indexed = {
  readonly indexes: readonly {
    readonly name: string;
    /** Field keys in order; every index but a unique one ends with `id`. */
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
  const single = singleRow(layout, parts);
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

/** The index by which the filter names all values of a row. */
function singleRow(layout: Indexed, parts: readonly Shape[]): string | undefined {
  const named = new Set<string>();
  for (const part of parts) if (part.op === 'eq') named.add(fieldKey(part.field));
  if (named.has('id')) return layout.primaryKey;
  return layout.indexes.find((index) => index.unique && index.keys.every((key) => named.has(key)))?.name;
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

/*
 * The way in which an engine will read the pages of a list, for people who ask why it is fast or slow: by which index, or by a look at every row. The same
 * in both engines as far as what a page costs is the same; the plan that the engine's own planner makes of a scan is not part of it.
 */

type Read = {
  readonly layout: Indexed & { readonly table: Table };
  readonly filter: Shape;
  readonly sort: readonly Sort[];
  /** Set if the engine walks an index. */
  readonly service: Service | 'never' | undefined;
  /** Set if the engine begins with the rows that a reference names. */
  readonly drive: Begun | undefined;
};

type Begun = {
  readonly field: Field;
  readonly source: { readonly layout: { readonly table: Pick<Table, 'name'> } };
};

export function wayOf(read: Read): Way {
  const { layout, filter, service, drive } = read;
  const { table } = layout;
  if (service === 'never') return { by: 'nothing' };
  if (service !== undefined) {
    const keys =
      service.index === layout.primaryKey
        ? ['id']
        : (layout.indexes.find(({ name }) => name === service.index)?.keys ?? []);
    const fields = keys.length > 1 && keys.at(-1) === 'id' ? keys.slice(0, -1) : keys;
    return { by: service.oneRow ? 'one' : 'index', fields: fields.map((key) => nameOf(table, key)) };
  }
  const isSearched = conjuncts(filter).some((part) => part.op === 'search' && part.words !== undefined);
  if (isSearched && table.words !== undefined) return { by: 'words', fields: table.words.fields };
  if (drive !== undefined) {
    return { by: 'references', field: drive.field.name, table: drive.source.layout.table.name };
  }
  const wanted = wantedIndex(read);
  return { by: 'scan', ...(wanted === undefined ? {} : { wanted: wanted.map(({ name }) => name) }) };
}

function nameOf({ fields }: Table, key: string): string {
  const plain = key.startsWith('~') ? key.slice(1) : key;
  return fields.find((field) => fieldKey(field) === plain)?.name ?? key;
}

/** The fields that the filter fixes, then those of the sort: `serve` says if an index over them would do. */
function wantedIndex({ layout, filter, sort }: Read): readonly Field[] | undefined {
  if (isRanked(sort)) return undefined;
  const fields: Field[] = [];
  const add = (field: Field): void => {
    const isKnown = field.column === 'id' || fields.some((known) => fieldKey(known) === fieldKey(field));
    if (!isKnown) fields.push(field);
  };
  for (const part of conjuncts(filter)) if (part.op === 'eq' || part.op === 'absent') add(part.field);
  for (const { field } of sort) add(field);
  if (fields.length === 0) return undefined;
  const keys = [...fields.map(fieldKey), 'id'];
  const served = serve({ ...layout, indexes: [{ name: '', keys, unique: false }] }, filter, sort);
  return typeof served === 'object' && served.index === '' ? fields : undefined;
}

/*
 * Lets a list under a condition on rows that references name (`related`) avoid a look for each row of its own table.
 *
 * `settle`: where the filter says which row the reference names, the condition is the same for all rows of the list, and one look decides it.
 * `driveOf`: where indexes lead from a value to the rows of the other table, and from them to those that refer to them, a read can begin
 * there. Whether it should depends on how many they are, which each engine finds out.
 */

type Settled = {
  /** The conditions that rows may differ in. */
  readonly rest: Shape;
  /** Those that hold for all rows or for none; `always` if there are none. */
  readonly gate: Shape;
};

export function settle(filter: Shape): Settled {
  const parts = conjuncts(filter);
  if (!parts.some(isRelatedShape)) return { rest: filter, gate: always };
  const fixed = new Map<string, ValueSlot>();
  for (const part of parts)
    if (part.op === 'eq' && !fixed.has(fieldKey(part.field)))
      fixed.set(fieldKey(part.field), { value: part.at });
  const gate: Shape[] = [];
  const rest: Shape[] = [];
  for (const part of parts) {
    const settled = looksInside(part) ? undefined : withFixed(part, fixed);
    if (settled === undefined) rest.push(part);
    else gate.push(settled);
  }
  return gate.length === 0 ? { rest: filter, gate: always } : { rest: joined(rest), gate: joined(gate) };
}

/** The condition with the ids that its references are known to have; undefined if it depends on anything else of a row. */
function withFixed(part: Shape, fixed: ReadonlyMap<string, ValueSlot>): Shape | undefined {
  switch (part.op) {
    case 'related': {
      const named = fixed.get(fieldKey(part.field));
      return named === undefined ? undefined : { ...part, named };
    }
    case 'not': {
      const within = withFixed(part.part, fixed);
      return within === undefined ? undefined : { op: 'not', part: within };
    }
    case 'and':
    case 'or': {
      const parts = part.parts.map((each) => withFixed(each, fixed));
      const all = parts.filter((each) => each !== undefined);
      return all.length === parts.length ? { op: part.op, parts: all } : undefined;
    }
    default:
      return undefined;
  }
}

/** @template L what the engine knows of a table */
export type Drive<L extends Indexed> = {
  /** The reference. */
  readonly field: Field;
  /** The index of the list's table that begins with it. */
  readonly index: string;
  readonly source: Source<L>;
  /** The other conditions on rows of the list's table. */
  readonly rest: readonly Shape[];
};

/** The rows of another table whose field has a value, or names one of the rows of a third table. */
export type Source<L extends Indexed> = {
  readonly layout: L;
  /** Begins with the field. */
  readonly index: string;
  readonly field: Field;
  readonly by: ValueSlot | { readonly source: Source<L> };
  /** Further conditions on these rows. */
  readonly rest: readonly Shape[];
};

/** @returns undefined if no indexes lead to the rows of the list */
export function driveOf<L extends Indexed>(
  layout: L,
  layoutOf: (table: string) => L,
  filter: Shape,
): Drive<L> | undefined {
  const parts = merged(conjuncts(filter));
  for (const [at, part] of parts.entries()) {
    if (part.op !== 'related') continue;
    const index = indexOn(layout, part.field);
    const source = index === undefined ? undefined : sourceOf(layoutOf, part);
    if (index !== undefined && source !== undefined)
      return { field: part.field, index, source, rest: parts.toSpliced(at, 1) };
  }
  return undefined;
}

function sourceOf<L extends Indexed>(
  layoutOf: (table: string) => L,
  { table, part: condition }: RelatedShape,
): Source<L> | undefined {
  const layout = layoutOf(table);
  const parts = merged(conjuncts(condition));
  for (const [at, part] of parts.entries()) {
    if (part.op !== 'eq') continue;
    const { field } = part;
    const index = indexOn(layout, field);
    if (index !== undefined)
      return { layout, index, field, by: { value: part.at }, rest: parts.toSpliced(at, 1) };
  }
  const drive = driveOf(layout, layoutOf, { op: 'and', parts });
  if (drive === undefined) return undefined;
  const { index, field, source, rest } = drive;
  return { layout, index, field, by: { source }, rest };
}

/** Conditions on the one row that a reference names are one condition. */
function merged(parts: readonly Shape[]): readonly Shape[] {
  const all: Shape[] = [];
  for (const part of parts) {
    const at =
      part.op === 'related'
        ? all.findIndex((each) => each.op === 'related' && isSameReference(each, part))
        : -1;
    const known = all[at];
    if (part.op === 'related' && known?.op === 'related')
      all[at] = { ...known, part: { op: 'and', parts: [known.part, part.part] } };
    else all.push(part);
  }
  return all;
}

function isSameReference(one: RelatedShape, other: RelatedShape): boolean {
  return one.table === other.table && fieldKey(one.field) === fieldKey(other.field);
}

function indexOn(layout: Indexed, field: Field): string | undefined {
  if (field.column === 'id') return layout.primaryKey;
  return layout.indexes.find(({ keys: [first] }) => first === fieldKey(field))?.name;
}

function isRelatedShape(part: Shape): boolean {
  if (part.op === 'not') return isRelatedShape(part.part);
  return part.op === 'related' || ('parts' in part && part.parts.some(isRelatedShape));
}

function joined(parts: readonly Shape[]): Shape {
  const [first] = parts;
  if (first === undefined) return always;
  return parts.length === 1 ? first : { op: 'and', parts };
}
