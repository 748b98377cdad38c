/**
 * SQL's logic has three values and that of filter.ts has two. So a condition is two filters: the rows where it is true and the
 * rows where it is false; on all others it is unknown. NOT swaps them, AND and OR combine them (De Morgan), and what
 * WHERE keeps is the first. Both grow with the text of the condition, not faster.
 */
import type { Field } from '../../model/field.ts';
import { allOf, always, anyOf, type Filter, never } from '../../model/filter.ts';
import { isNull } from './comparison.ts';

export type Truth = { readonly holds: Filter; readonly fails: Filter };

export const unknown: Truth = { holds: never, fails: never };
export const truth: Truth = { holds: always, fails: never };

export function both(one: Truth, other: Truth): Truth {
  return { holds: allOf([one.holds, other.holds]), fails: anyOf([one.fails, other.fails]) };
}

export function either(one: Truth, other: Truth): Truth {
  return { holds: anyOf([one.holds, other.holds]), fails: allOf([one.fails, other.fails]) };
}

export function negated({ holds, fails }: Truth): Truth {
  return { holds: fails, fails: holds };
}

export function negatedIf(condition: boolean, value: Truth): Truth {
  return condition ? negated(value) : value;
}

/** A condition that is never unknown: what IS TRUE makes of another. */
export function decided(filter: Filter): Truth {
  return { holds: filter, fails: negate(filter) };
}

/** Every row that the filter leaves out, those without the field included. */
export function negate(filter: Filter): Filter {
  switch (filter.op) {
    case 'always':
      return never;
    case 'never':
      return always;
    case 'not':
      return filter.filter;
    default:
      return { op: 'not', filter };
  }
}

/** The filter on rows that have the field: `ne` and `not` alone hold where it is absent. */
export function present(field: Field, filter: Filter): Filter {
  return allOf([filter, isNull(field, false)]);
}
