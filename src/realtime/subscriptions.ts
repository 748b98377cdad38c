/**
 * The subscriptions of one socket. Each pattern has a position in the log: the socket gets the events after it.
 * `unplaced` is the position while the event of `after` has not been looked up.
 */
import { matchesEventPattern } from '../model/event-pattern.ts';
import type { Field } from '../model/field.ts';
import { always, anyOf, type Filter } from '../model/filter.ts';
import { eventFields } from '../resources/events/visibility.ts';
import { isAfter } from '../store/follow-log.ts';
import type { LogPosition } from '../store/store.ts';

export type Subscription = { readonly pattern: string; since: LogPosition };

/** After every event. */
export const unplaced: LogPosition = { rev: Number.POSITIVE_INFINITY, id: '' };

/** True if one of the subscriptions includes the event with this type and position. */
export function covers(subscriptions: Iterable<Subscription>, type: string, position: LogPosition): boolean {
  for (const { pattern, since } of subscriptions) {
    if (isAfter(position, since) && matchesEventPattern(pattern, type)) return true;
  }
  return false;
}

/** True if one of the patterns includes the type. */
export function matchesAny(subscriptions: Iterable<Subscription>, type: string): boolean {
  for (const { pattern } of subscriptions) if (matchesEventPattern(pattern, type)) return true;
  return false;
}

/** Selects events of the patterns, for the store. */
export function ofTypes(subscriptions: Iterable<Subscription>): Filter {
  const exact: string[] = [];
  const filters: Filter[] = [];
  for (const { pattern } of subscriptions) {
    if (pattern === '*') return always;
    if (!pattern.endsWith('.*')) exact.push(pattern);
    else {
      const prefix = pattern.slice(0, -1).replaceAll('_', '\\_');
      filters.push({ op: 'like', field: typeField, pattern: `${prefix}_%` });
    }
  }
  if (exact.length > 0) filters.push({ op: 'in', field: typeField, values: exact });
  return anyOf(filters);
}

const typeField: Field = eventFields.get('type') ?? {
  name: 'type',
  path: ['type'],
  type: 'string',
  column: 'type',
};
