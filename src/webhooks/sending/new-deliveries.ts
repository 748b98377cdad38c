/**
 * The rows of new deliveries: pending, and due at the time of the event (conclude-delivery.ts has their states). A test
 * event is sent to one endpoint regardless of its patterns, and to no other by a recovery; receivers can recognise it by
 * its id.
 */
import { deliveryDocument } from '../../model/delivery.ts';
import { type Change, type EventEntry, keptRow, type Unit } from '../../store/store.ts';
import type { KnownEndpoint } from './known-endpoint.ts';
import { deliveriesCollection } from './sending-tables.ts';
import type { Wakes } from './wakes.ts';

/**
 * Returns the change that creates a delivery, owned by the owner of the endpoint.
 * @param at when it is due, in milliseconds since the epoch
 * @param newId returns an id without a prefix
 */
export function deliveryChange(
  event: Pick<EventEntry, 'id' | 'type'>,
  { endpoint, owner }: Pick<KnownEndpoint, 'endpoint' | 'owner'>,
  at: number,
  newId: () => string,
): Change {
  const id = `dlv_${newId()}`;
  const time = new Date(at).toISOString();
  const doc = deliveryDocument({
    id,
    eventId: event.id,
    eventType: event.type,
    endpointId: endpoint.id,
    status: 'pending',
    attemptCount: 0,
    scheduledAttemptCount: 0,
    nextAttemptAt: time,
    dueAt: time,
    lastStatusCode: null,
    lastError: null,
    createdAt: time,
    updatedAt: time,
  });
  return {
    table: deliveriesCollection.name,
    id,
    expect: { absent: true },
    next: keptRow(doc, owner, at, at),
  };
}

const testPrefix = 'evt_test_';

/** @param newId returns an id without a prefix */
export function testEventId(newId: () => string): string {
  return `${testPrefix}${newId()}`;
}

/** A posted event may have such an id too; it then counts as a test. */
export function isTestEvent({ id }: Pick<EventEntry, 'id'>): boolean {
  return id.startsWith(testPrefix);
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
