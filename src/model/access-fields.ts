/**
 * A rule's filter over other fields than those of its collection: an event holds the resource as a part of it (§6).
 */
import type { Field } from './field.ts';
import type { Filter } from './filter.ts';

/** The same filter over other fields: of the resource inside an event, for one. */
export function withFields(filter: Filter, replace: (field: Field) => Field): Filter {
  switch (filter.op) {
    case 'always':
    case 'never':
    case 'search':
      return filter;
    case 'and':
    case 'or':
      return { op: filter.op, filters: filter.filters.map((part) => withFields(part, replace)) };
    case 'not':
      return { op: 'not', filter: withFields(filter.filter, replace) };
    default:
      return { ...filter, field: replace(filter.field) };
  }
}
