/**
 * Lets a list under a condition on rows that references name (`related`) avoid a look for each row of its own table.
 *
 * `settle`: where the filter says which row the reference names, the condition is the same for all rows of the list, and one look decides it.
 * `driveOf`: where indexes lead from a value to the rows of the other table, and from them to those that refer to them, a read can begin
 * there. Whether it should depends on how many they are, which each engine finds out.
 */
import type { Field } from '../model/field.ts';
import { fieldKey } from './field-value.ts';
import { always, conjuncts, type RelatedShape, type Shape, type ValueSlot } from './filter-shape.ts';
import { type Indexed, looksInside } from './serve.ts';

export type Settled = {
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
