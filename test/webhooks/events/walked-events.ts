/**
 * The resources of deliveries, events and types of events behind the walk. Events that their units append are kept, as the fan-out would
 * see them.
 */
import assert from 'node:assert/strict';
import { resolveConfiguration } from '../../../src/config/configuration.ts';
import type { ConfigurationDeclaration } from '../../../src/config/define.ts';
import type { Settings } from '../../../src/config/settings.ts';
import { type Delivery, deliveryDocument } from '../../../src/model/delivery.ts';
import { authenticated } from '../../../src/model/principal.ts';
import { type EventEntry, keptRow, type Store } from '../../../src/store/store.ts';
import { deliveryResources } from '../../../src/webhooks/sending/delivery-routes.ts';
import { eventTypeResources, eventTypesOf } from '../../../src/webhooks/sending/event-types/event-types.ts';
import type { KnownEndpoint } from '../../../src/webhooks/sending/known-endpoint.ts';
import { postedEvents } from '../../../src/webhooks/sending/sending.ts';
import type { SendingParts } from '../../../src/webhooks/sending/sending-parts.ts';
import { servicesOver } from '../../harness/services-over.ts';
import {
  type AskAs,
  askerOf,
  base,
  roomOf,
  routed,
  type Surroundings,
  surround,
} from '../../harness/walked-resources.ts';

export type WalkedEvents = Surroundings & {
  /** Events that were committed through the store of the rooms, hence fanned out, in order. */
  readonly fannedOut: EventEntry[];
  /** Endpoints that were announced to have something due. */
  readonly woken: string[];
  readonly ask: AskAs;
};

export function walkEvents(
  store: Store,
  declaration: ConfigurationDeclaration = { collections: {} },
  given: Partial<Settings> = {},
): WalkedEvents {
  const { collections, ...others } = resolveConfiguration(declaration);
  const eventTypes = eventTypesOf({ collections, ...others });
  const fannedOut: EventEntry[] = [];
  const woken: string[] = [];
  const wrapped: Store = {
    ...store,
    commit: async (unit) => {
      const commit = await store.commit(unit);
      if (commit.outcome === 'committed') fannedOut.push(...unit.events);
      return commit;
    },
  };
  const surroundings = surround(wrapped, given);
  const { settings } = surroundings;
  const directory = {
    get: () => ({ principal: authenticated({ id: 'usr_ada', scopes: [] }) }) as unknown as KnownEndpoint,
    mayReceive: async () => true,
  };
  const wakes = { changesFor: () => [], announce: (ids: Iterable<string>) => void woken.push(...ids) };
  const { clock, newId } = surroundings;
  const parts = {
    ...servicesOver(wrapped, { clock, newId, settings }),
    ...{ wakes, directory, eventTypes, view: () => undefined, forget: () => undefined },
  } as unknown as SendingParts;
  const resources = routed(surroundings, {
    collections,
    builtIn: (serving) => [deliveryResources(parts, serving)],
    postedEvents: (serving) => postedEvents(parts, serving, undefined),
  });
  const types = eventTypeResources(eventTypes, `${base}/event-types`, settings);
  const ask = askerOf(roomOf(surroundings, [...resources, ...types]));
  return { ...surroundings, store, fannedOut, woken, ask };
}

/** Puts a delivery as the fan-out would have, changed as given. */
export async function putDelivery(
  events: WalkedEvents,
  owner: string,
  given: Partial<Delivery> & Pick<Delivery, 'eventId'>,
): Promise<Delivery> {
  const at = given.createdAt === undefined ? events.clock() : Date.parse(given.createdAt);
  const time = new Date(at).toISOString();
  const delivery: Delivery = {
    id: `dlv_${events.newId()}`,
    eventType: 'invoice.paid',
    endpointId: 'ep_one',
    status: 'pending',
    attemptCount: 0,
    scheduledAttemptCount: 0,
    nextAttemptAt: time,
    dueAt: time,
    lastStatusCode: null,
    lastError: null,
    createdAt: time,
    updatedAt: time,
    ...given,
  };
  await put(events, 'deliveries', delivery.id, keptRow(deliveryDocument(delivery), owner, at, at));
  return delivery;
}

/** Puts an endpoint that says no more than what deliveries are asked about. */
export async function putEndpoint(
  events: WalkedEvents,
  id: string,
  status: 'enabled' | 'disabled' = 'enabled',
): Promise<void> {
  const at = events.clock();
  await put(events, 'endpoints', id, keptRow(JSON.stringify({ id, status }), 'usr_ada', at, at));
}

/** Puts a row, whatever stood there. */
export async function put(
  { store }: WalkedEvents,
  table: string,
  id: string,
  next: ReturnType<typeof keptRow> | null,
): Promise<void> {
  const stood = await store.read(table, id);
  const expect = stood === undefined ? ({ absent: true } as const) : { rev: stood.rev };
  const commit = await store.commit({ changes: [{ table, id, expect, next }], events: [] });
  assert.equal(commit.outcome, 'committed');
}
