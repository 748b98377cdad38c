/**
 * The rows of new deliveries: pending, and due at the time of the event (conclude-delivery.ts has their states). A test
 * event is sent to one endpoint regardless of its patterns, and to no other by a recovery; receivers can recognise it by
 * its id.
 */
import { type Delivery, deliveryDocument } from '../../model/delivery.ts';
import { type Change, type EventEntry, keptRow, type Unit } from '../../store/store.ts';
import { placeChange } from './delivery-order.ts';
import type { KnownEndpoint } from './known-endpoint.ts';
import { deliveriesCollection } from './sending-tables.ts';
import type { Wakes } from './wakes.ts';

/** The order of a delivery. */
export type DeliveryOrder = {
  readonly key: string;
  /** The revision of the unit of the event, if the delivery is created in a later one. */
  readonly rev?: number;
};

/** What a delivery is of. */
type Occasion = {
  readonly event: Pick<EventEntry, 'id' | 'type'>;
  /** When it is due, in milliseconds since the epoch. */
  readonly at: number;
  /** Undefined: it needs none. */
  readonly order?: DeliveryOrder | undefined;
};

/**
 * Returns the changes that create a delivery, owned by the owner of the endpoint: first its row.
 * @param newId returns an id without a prefix
 */
export function deliveryChanges(
  { event, at, order }: Occasion,
  { endpoint, owner }: Pick<KnownEndpoint, 'endpoint' | 'owner'>,
  newId: () => string,
): readonly [Change, ...Change[]] {
  const id = `dlv_${newId()}`;
  const time = new Date(at).toISOString();
  const delivery: Delivery = {
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
    ...(order === undefined ? {} : { orderKey: order.key }),
    createdAt: time,
    updatedAt: time,
  };
  const created: Change = {
    table: deliveriesCollection.name,
    id,
    expect: { absent: true },
    next: keptRow(deliveryDocument(delivery), owner, at, at),
  };
  if (order === undefined) return [created];
  return [created, placeChange(delivery, `${endpoint.id}/${order.key}`, order.rev)];
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
  const [delivery] = deliveryChanges({ event, at: event.createdAt }, known, newId);
  return { changes: [delivery, ...wakes.changesFor(known.endpoint.id, delivery.id)], events: [event] };
}
