/**
 * Test events: sent to one endpoint regardless of its patterns, and to no other by a recovery. Receivers can recognise
 * them by their ids.
 */
import type { EventEntry, Unit } from '../../store/store.ts';
import { deliveryChange } from './fan-out/delivery-row.ts';
import type { KnownEndpoint } from './known-endpoint.ts';
import type { Wakes } from './wakes.ts';

const prefix = 'evt_test_';

/** @param newId returns an id without a prefix */
export function testEventId(newId: () => string): string {
  return `${prefix}${newId()}`;
}

/** A posted event may have such an id too; it then counts as a test. */
export function isTestEvent({ id }: Pick<EventEntry, 'id'>): boolean {
  return id.startsWith(prefix);
}

/**
 * Returns the unit of an event for one endpoint alone, such as a test. The caller commits it through the store without
 * fan-out, then calls `wakes.announce`. @param newId returns an id without a prefix
 */
export function targeted(
  event: EventEntry,
  known: Pick<KnownEndpoint, 'endpoint' | 'owner'>,
  { wakes, newId }: { readonly wakes: Pick<Wakes, 'changesFor'>; readonly newId: () => string },
): Unit {
  const delivery = deliveryChange(event, known, event.createdAt, newId);
  return { changes: [delivery, ...wakes.changesFor(known.endpoint.id, delivery.id)], events: [event] };
}
