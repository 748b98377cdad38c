/**
 * Fields beyond references in queries (§4.17). They can be compared, and neither sorted by nor selected. What the caller may not read counts
 * as absent, so that a hidden resource cannot be distinguished from a missing one.
 */
import type { Field } from '../../model/field.ts';
import { type Filter, relatedCount } from '../../model/filter.ts';
import { distantField, endOfPath, isDistant, type Reach } from '../../model/reference-path.ts';
import type { QueryLimits, Target } from './list-query.ts';
import { cap, type FaultList, listed, type Place, quote, unknownField } from './query-faults.ts';

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

function unknownCompared(name: string, target: Reach): string {
  const { at } = endOfPath(name, target);
  if (at === target) return unknownField(name, target.fields);
  return `unknown field ${quote(name)}; fields of ${cap(at.table)}: ${listed(at.fields.keys())}`;
}
