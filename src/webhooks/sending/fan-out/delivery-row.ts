/** The rows of new deliveries: pending, and due with the event itself (webhooks/sending/conclude-delivery.ts says how they go on). */
import { deliveryDocument } from '../../../model/delivery.ts';
import { keptRow } from '../../../store/kept-row.ts';
import type { Change, EventEntry } from '../../../store/store.ts';
import type { KnownEndpoint } from '../known-endpoint.ts';
import { deliveriesCollection } from '../sending-tables.ts';

/**
 * Puts one delivery, which belongs to the owner of the endpoint.
 * @param at when it is due, in milliseconds since the epoch
 * @param newId without a prefix
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
