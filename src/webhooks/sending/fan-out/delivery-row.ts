/** The rows of new deliveries: pending, and due at the time of the event (conclude-delivery.ts has their states). */
import { deliveryDocument } from '../../../model/delivery.ts';
import { type Change, type EventEntry, keptRow } from '../../../store/store.ts';
import type { KnownEndpoint } from '../known-endpoint.ts';
import { deliveriesCollection } from '../sending-tables.ts';

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
