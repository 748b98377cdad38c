/**
 * Stores endpoints, events and deliveries in a database of Comity before the program starts on it: through its own store, so that
 * indexes and counters are those that it makes itself.
 */
import { resolveConfiguration } from '../../src/config/configuration.ts';
import type { Endpoint } from '../../src/model/endpoint.ts';
import { createIdSource } from '../../src/model/id.ts';
import { operatorId, scopes } from '../../src/model/principal.ts';
import { openPostgresStore } from '../../src/store/postgres/postgres-store.ts';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { type Change, type EventEntry, keptRow, type Store, type Unit } from '../../src/store/store.ts';
import { storeTables } from '../../src/store-tables.ts';
import { deliveryChanges } from '../../src/webhooks/sending/new-deliveries.ts';
import {
  deliveriesCollection,
  type EndpointSecrets,
  endpointSecretsTable,
  endpointsCollection,
} from '../../src/webhooks/sending/sending-tables.ts';
import { config } from '../comity.config.ts';
import type { Place } from '../engine.ts';
import { eventId, eventText, secret, seededType } from './sent-events.ts';

export type SeededEndpoint = Pick<Endpoint, 'id' | 'url' | 'events' | 'scheme' | 'status'> &
  Partial<Pick<Endpoint, 'maxInFlight' | 'signatures'>>;

/** Deliveries of the events from one index to before another, in turn to these endpoints. */
export type SeededDeliveries = {
  readonly endpoints: readonly string[];
  readonly from: number;
  readonly to: number;
  /** Default: now, which is due. Milliseconds since the epoch. */
  readonly dueAt?: number;
  /** Every delivery is of this event, instead of one of its own. */
  readonly ofEvent?: number;
};

export type Seeding = {
  readonly endpoints: readonly SeededEndpoint[];
  /** From 0 to before this. */
  readonly events: number;
  readonly deliveries: readonly SeededDeliveries[];
};

const changesPerUnit = 500;
const unitsAtOnce = 8;

/** @returns how many deliveries were stored */
export async function seedWebhooks(place: Place, seeding: Seeding): Promise<number> {
  const store = await openStore(place);
  try {
    const random = (): number => Math.floor(Math.random() * 32);
    const newId = createIdSource(Date.now, random);
    const at = Date.now();
    await commitAll(store, [
      { changes: seeding.endpoints.flatMap((each) => endpointChanges(each, at)), events: [] },
    ]);
    await commitAll(store, eventUnits(seeding.events, at));
    let stored = 0;
    for (const some of seeding.deliveries) {
      await commitAll(store, deliveryUnits(some, at, newId));
      stored += some.to - some.from;
    }
    return stored;
  } finally {
    await store.close();
  }
}

/** How many deliveries have a status, once the program is stopped. */
export async function countDeliveries(place: Place, status: string): Promise<number> {
  const store = await openStore(place);
  try {
    const field = deliveriesCollection.fields.get('status');
    if (field === undefined) throw new Error('deliveries have no status');
    return await store.count(deliveriesCollection.name, { op: 'eq', field, value: status });
  } finally {
    await store.close();
  }
}

async function openStore(place: Place): Promise<Store> {
  const tables = storeTables(resolveConfiguration(config));
  if (place.store === 'sqlite') return await openSqliteStore({ folder: place.folder, tables });
  return await openPostgresStore({ url: place.url, schema: place.schema, tables });
}

function endpointChanges(seeded: SeededEndpoint, at: number): readonly Change[] {
  const time = new Date(at).toISOString();
  const { id } = seeded;
  const expect = { absent: true } as const;
  const doc = JSON.stringify({ ...seeded, createdAt: time, updatedAt: time });
  const secrets: EndpointSecrets = { secrets: [{ secret, until: null }], scopes };
  const next = { ...keptRow(doc, operatorId, at, at), search: `${seeded.url}\n` };
  return [
    { table: endpointsCollection.name, id, expect, next },
    { table: endpointSecretsTable, id, expect, next: keptRow(JSON.stringify(secrets), operatorId, at, at) },
  ];
}

function* eventUnits(count: number, at: number): Generator<Unit> {
  for (let first = 0; first < count; first += changesPerUnit) {
    const events: EventEntry[] = [];
    for (let index = first; index < Math.min(count, first + changesPerUnit); index += 1) {
      const doc = eventText(index);
      events.push({
        id: eventId(index),
        type: seededType,
        collection: '',
        owner: operatorId,
        doc,
        createdAt: at,
      });
    }
    yield { changes: [], events };
  }
}

function* deliveryUnits(some: SeededDeliveries, at: number, newId: () => string): Generator<Unit> {
  const { endpoints, from, to, dueAt = at, ofEvent } = some;
  for (let first = from; first < to; first += changesPerUnit) {
    const changes: Change[] = [];
    for (let index = first; index < Math.min(to, first + changesPerUnit); index += 1) {
      const id = endpoints[index % endpoints.length];
      if (id === undefined) throw new RangeError('deliveries without an endpoint');
      const event = { id: eventId(ofEvent ?? index), type: seededType };
      // All that a delivery says of its endpoint is its id.
      const known = { endpoint: { id } as Endpoint, owner: operatorId };
      changes.push(...deliveryChanges({ event, at: dueAt }, known, newId));
    }
    yield { changes, events: [] };
  }
}

async function commitAll(store: Store, units: Iterable<Unit>): Promise<void> {
  const waiting: Promise<void>[] = [];
  for (const unit of units) {
    waiting.push(
      store.commit(unit).then(({ outcome }) => {
        if (outcome !== 'committed') throw new Error(`a unit of the benchmark was not stored: ${outcome}`);
      }),
    );
    if (waiting.length >= unitsAtOnce) await Promise.all(waiting.splice(0));
  }
  await Promise.all(waiting);
}
