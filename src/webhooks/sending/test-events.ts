/**
 * Events that try out one endpoint: sent to it alone, whatever its patterns, and to no other by a recovery. Their ids say so, to receivers
 * as well.
 */
import type { EventEntry, Unit } from '../../store/store.ts';
import { deliveryChange } from './fan-out/delivery-row.ts';
import type { KnownEndpoint } from './known-endpoint.ts';
import type { Wakes } from './wakes.ts';

const prefix = 'evt_test_';

/** @param newId without a prefix */
export function testEventId(newId: () => string): string {
  return `${prefix}${newId()}`;
}

/** A posted event may have taken such an id, but then it says that it is a test. */
export function isTestEvent({ id }: Pick<EventEntry, 'id'>): boolean {
  return id.startsWith(prefix);
}

/* An event for one endpoint alone, such as a test: what its unit consists of. It is committed through the store without fan-out. */

/** After the commit, `wakes.announce` is still to be called. @param newId without a prefix */
export function targeted(
  event: EventEntry,
  known: Pick<KnownEndpoint, 'endpoint' | 'owner'>,
  { wakes, newId }: { readonly wakes: Pick<Wakes, 'changesFor'>; readonly newId: () => string },
): Unit {
  const delivery = deliveryChange(event, known, event.createdAt, newId);
  return { changes: [delivery, ...wakes.changesFor(known.endpoint.id, delivery.id)], events: [event] };
}
