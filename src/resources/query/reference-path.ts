/**
 * Names of fields beyond references (§4.17): `customerId.organisationId` is the field `organisationId` of the resource that `customerId`
 * names. Such a field can be compared, and neither sorted by nor selected. Where the caller sees no such resource the field is absent, so
 * that nothing tells a hidden resource from a missing one.
 */
import type { Field } from '../../model/field.ts';
import { type Filter, relatedCount } from '../../model/filter.ts';
import type { QueryLimits, Reach, Target } from './list-query.ts';
import { cap, type FaultList, listed, type Place, quote, unknownField } from './query-faults.ts';

type Step = { readonly field: Field; readonly table: string };

/** A field of a resource that references lead to. Only queries have it: filters have `end` within `related`. */
export type DistantField = Field & { readonly steps: readonly Step[]; readonly end: Field };

export type Finding = {
  readonly target: Target;
  readonly limits: QueryLimits;
  readonly faults: FaultList;
};

/** Finds a field to compare; reports an unknown one. */
export function findCompared(
  name: string,
  { target, limits, faults }: Finding,
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
export function checkRelated(filter: Filter, { limits, faults }: Omit<Finding, 'target'>): Filter {
  const { filterReferencesMax } = limits;
  if (relatedCount(filter) > filterReferencesMax)
    faults.unprocessable(
      `a query takes at most ${filterReferencesMax} references on the paths of its filters`,
    );
  return filter;
}

/** Names of paths are longer than those of fields, and each name costs a look. */
const pathNamesMax = 16;

/** The field that the path leads to; undefined if there is none. */
export function distantField(name: string, target: Reach): DistantField | undefined {
  if (target.through === undefined || !name.includes('.')) return undefined;
  const names = name.split('.', pathNamesMax);
  const steps: Step[] = [];
  let at: Reach = target;
  for (;;) {
    const [first = '', ...rest] = names.splice(0);
    const field = at.fields.get(first);
    const next = field === undefined ? undefined : at.through?.(first);
    if (field === undefined || next === undefined) return undefined;
    steps.push({ field, table: next.table });
    at = next;
    const end = at.fields.get(rest.join('.'));
    if (end !== undefined) return { ...withoutColumn(end), name, steps, end };
    names.push(...rest);
  }
}

function withoutColumn({ column: _column, ...field }: Field): Field {
  return field;
}

export function isDistant(field: Field): field is DistantField {
  return 'steps' in field;
}

/** The condition on the resource at the end of the path, as one on the resource at its beginning. */
export function along({ steps }: DistantField, condition: Filter): Filter {
  return steps.reduceRight(
    (filter: Filter, { field, table }) => ({ op: 'related', field, table, filter }),
    condition,
  );
}

/** Says where a path ends that leads nowhere. */
function unknownCompared(name: string, target: Reach): string {
  let at = target;
  let rest = name;
  for (;;) {
    const dot = rest.indexOf('.');
    const next = dot === -1 ? undefined : at.through?.(rest.slice(0, dot));
    if (next === undefined) break;
    at = next;
    rest = rest.slice(dot + 1);
  }
  if (at === target) return unknownField(name, target.fields);
  return `unknown field ${quote(name)}; fields of ${cap(at.table)}: ${listed(at.fields.keys())}`;
}
