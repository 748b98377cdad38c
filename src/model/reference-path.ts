/**
 * Paths over references: `customerId.organisationId` is the field `organisationId` of the resource that `customerId` names. Queries compare
 * such fields (§4.17), and so do access rules (§5.9). Where the reference names nothing, the field is absent.
 */
import type { Field, Fields } from './field.ts';
import type { Filter } from './filter.ts';

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
export type DistantField = Field & { readonly steps: readonly Step[]; readonly end: Field };

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
