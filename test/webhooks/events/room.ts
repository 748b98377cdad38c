/**
 * The resources of deliveries, events and types of events in this process, without sockets: requests go through the walk as values.
 * `Authorization: Bearer NAME` is one of the people below. Units that append events are kept, as the fan-out would see them.
 */
import assert from 'node:assert/strict';
import { hash, randomInt } from 'node:crypto';
import { type Configuration, resolveConfiguration } from '../../../src/config/configuration.ts';
import type { ConfigurationDeclaration } from '../../../src/config/define.ts';
import { loadSettings } from '../../../src/config/load-settings.ts';
import type { Settings } from '../../../src/config/settings.ts';
import type { Request } from '../../../src/http/message.ts';
import { readRequestFields } from '../../../src/http/request-fields.ts';
import { createHttpDateCache } from '../../../src/http/syntax/http-date.ts';
import { type Delivery, deliveryDocument } from '../../../src/model/delivery.ts';
import { createIdSource } from '../../../src/model/id.ts';
import { type Authenticated, anonymous, authenticated, operatorId } from '../../../src/model/principal.ts';
import { corsPolicy } from '../../../src/resources/answer/cors.ts';
import { createIdempotency } from '../../../src/resources/idempotency.ts';
import { createOperations } from '../../../src/resources/operations/operations.ts';
import { principalOf } from '../../../src/resources/operations/stored-request.ts';
import { createRateLimiter } from '../../../src/resources/rate-limit/rate-limiter.ts';
import type { Room } from '../../../src/resources/room.ts';
import { createRouter } from '../../../src/resources/router.ts';
import { createRoutes } from '../../../src/resources/routes.ts';
import { Walk } from '../../../src/resources/walk.ts';
import { deliveryResources } from '../../../src/resources/webhooks/deliveries/resources.ts';
import { eventTypeResources } from '../../../src/resources/webhooks/event-types/resources.ts';
import { postedEvents } from '../../../src/resources/webhooks/events/resources.ts';
import { keptRow } from '../../../src/store/kept-row.ts';
import type { EventEntry, Store } from '../../../src/store/store.ts';
import { eventTypesOf } from '../../../src/webhooks/outbound/event-types/event-types.ts';
import type { KnownEndpoint } from '../../../src/webhooks/outbound/known-endpoint.ts';
import { knownAs } from '../../resources/known.ts';

export type Answered = {
  readonly status: number;
  readonly field: (name: string) => string | undefined;
  // biome-ignore lint/suspicious/noExplicitAny: what a test expects of it, it says itself.
  readonly json: any;
};

type Asking = { readonly json?: unknown; readonly headers?: Readonly<Record<string, string>> };

export type EventRoom = {
  readonly store: Store;
  /** Events that were committed through the store of the rooms, hence fanned out, in order. */
  readonly fannedOut: EventEntry[];
  /** Endpoints that were announced to have something due. */
  readonly woken: string[];
  newId(): string;
  clock(): number;
  moveClock(seconds: number): void;
  ask(who: string | undefined, method: string, path: string, asking?: Asking): Promise<Answered>;
};

const people: Readonly<Record<string, Authenticated>> = {
  root: authenticated({ id: operatorId, scopes: ['read', 'write', 'webhooks', 'admin'] }),
  ada: authenticated({ id: 'usr_ada', scopes: ['read', 'write', 'webhooks'] }),
  bob: authenticated({ id: 'usr_bob', scopes: ['read', 'write', 'webhooks'] }),
  hook: authenticated({ id: 'usr_hook', scopes: ['webhooks'] }),
  nora: authenticated({ id: 'usr_nora', scopes: ['read', 'webhooks'], tenant: 'north' }),
  nils: authenticated({ id: 'usr_nils', scopes: ['read', 'webhooks'], tenant: 'north' }),
  sam: authenticated({ id: 'usr_sam', scopes: ['read', 'webhooks'], tenant: 'south' }),
  writer: authenticated({ id: 'usr_writer', scopes: ['read', 'write'] }),
};

const base = '/api/v1';

export function openEventRoom(
  store: Store,
  declaration: ConfigurationDeclaration = { collections: {} },
  given: Partial<Settings> = {},
): EventRoom {
  const configuration = resolveConfiguration(declaration);
  const settings: Settings = { ...loadSettings({}, {}, {}).settings, ...given };
  let ahead = 0;
  const clock = () => Date.now() + ahead;
  const newId = createIdSource(clock, () => randomInt(32));
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
  const room = roomOf(configuration, settings, { store: wrapped, clock, newId, woken });
  return {
    store,
    fannedOut,
    woken,
    newId,
    clock,
    moveClock: (seconds) => {
      ahead += seconds * 1000;
    },
    ask: (who, method, path, asking) => answer(room, who, method, path, asking),
  };
}

type Surroundings = {
  readonly store: Store;
  readonly clock: () => number;
  readonly newId: () => string;
  readonly woken: string[];
};

function roomOf(configuration: Configuration, settings: Settings, surroundings: Surroundings): Room {
  const { store, clock, newId, woken } = surroundings;
  const eventTypes = eventTypesOf(configuration);
  const directory = {
    get: () => ({ principal: authenticated({ id: 'usr_ada', scopes: [] }) }) as unknown as KnownEndpoint,
    mayReceive: async () => true,
  };
  const wakes = { changesFor: () => [], announce: (ids: Iterable<string>) => void woken.push(...ids) };
  const operations = createOperations(
    { store, path: `${base}/operations`, newId, clock, random: () => 0, observe: () => undefined },
    async (request, stored, companions) =>
      new Walk(room, request, {
        identify: () => ({ principal: principalOf(stored) }),
        companions,
      }).run(),
  );
  const routes = createRoutes({
    ...settings,
    store,
    base,
    collections: configuration.collections,
    newId,
    clock,
    mac: (text) => hash('sha256', text, 'base64url').slice(0, 22),
    addressOf: ({ peer }) => peer,
    queryLimits: { ...settings, json: { depthMax: 32, keysMax: 1000 } },
    contentLimits: settings,
    streamLimits: { batchBytesMax: 262_144, heartbeatMs: settings.streamHeartbeatMs },
    builtIn: (serving) => [deliveryResources({ ...settings, wakes, directory }, serving)],
    postedEvents: (serving) => postedEvents({ ...settings, eventTypes }, serving),
  });
  const room: Room = {
    router: createRouter([...routes, ...eventTypeResources(eventTypes, `${base}/event-types`, settings)]),
    limits: { ...settings, traceEnabled: false },
    clock,
    authenticate: ({ fields }) => identify(fields.authorization),
    rates: createRateLimiter({
      ...settings,
      rateLimitReads: 0,
      rateLimitWrites: 0,
      store,
      onFailure: (error) => assert.fail(String(error)),
    }),
    decodeContent: (bytes) => ({ ok: true, bytes }),
    lines: store.lines,
    idempotency: createIdempotency({ store, clock, newId, lifetimeSeconds: 60 }),
    operations,
    cors: corsPolicy('', 0),
    challengesFor: () => 'Bearer realm="test"',
    development: false,
    formatDate: createHttpDateCache(64),

    loop: { begin: () => 0, end: () => undefined },
  };
  return room;
}

function identify(authorization: string | undefined): ReturnType<Room['authenticate']> {
  const principal = people[authorization?.slice('Bearer '.length) ?? ''];
  return principal === undefined ? { principal: anonymous } : knownAs(principal);
}

async function answer(
  room: Room,
  who: string | undefined,
  method: string,
  path: string,
  { json, headers = {} }: Asking = {},
): Promise<Answered> {
  const content = json === undefined ? undefined : Buffer.from(JSON.stringify(json));
  const rawFields = [
    ...['Host', 'localhost'],
    ...(who === undefined ? [] : ['Authorization', `Bearer ${who}`]),
    ...(content === undefined
      ? []
      : ['Content-Type', 'application/json', 'Content-Length', String(content.length)]),
    ...Object.entries(headers).flat(),
  ];
  const request: Request = {
    method,
    target: path.startsWith('/') ? path : `${base}/${path}`,
    version: '1.1',
    fields: readRequestFields(rawFields),
    rawFields,
    readContent: async () => ({ ok: true, bytes: content ?? new Uint8Array() }),
    peer: '',
    id: 'test',
  };
  const response = await new Walk(room, request).run();
  const { fields } = response;
  const text =
    'content' in response && response.content !== null ? Buffer.from(response.content as string) : '';
  return {
    status: response.status,
    field: (name) => {
      const at = fields.findIndex(
        (value, index) => index % 2 === 0 && value.toLowerCase() === name.toLowerCase(),
      );
      return at < 0 ? undefined : fields[at + 1];
    },
    json: text.length === 0 ? undefined : JSON.parse(text.toString()),
  };
}

/** Puts a delivery as the fan-out would have, changed as given. */
export async function putDelivery(
  room: EventRoom,
  owner: string,
  given: Partial<Delivery> & Pick<Delivery, 'eventId'>,
): Promise<Delivery> {
  const at = given.createdAt === undefined ? room.clock() : Date.parse(given.createdAt);
  const time = new Date(at).toISOString();
  const delivery: Delivery = {
    id: `dlv_${room.newId()}`,
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
  await put(room, 'deliveries', delivery.id, keptRow(deliveryDocument(delivery), owner, at, at));
  return delivery;
}

/** Puts an endpoint that says no more than what deliveries are asked about. */
export async function putEndpoint(
  room: EventRoom,
  id: string,
  status: 'enabled' | 'disabled' = 'enabled',
): Promise<void> {
  const at = room.clock();
  await put(room, 'endpoints', id, keptRow(JSON.stringify({ id, status }), 'usr_ada', at, at));
}

/** Puts a row, whatever stood there. */
export async function put(
  { store }: EventRoom,
  table: string,
  id: string,
  next: ReturnType<typeof keptRow> | null,
): Promise<void> {
  const stood = await store.read(table, id);
  const expect = stood === undefined ? ({ absent: true } as const) : { rev: stood.rev };
  const commit = await store.commit({ changes: [{ table, id, expect, next }], events: [] });
  assert.equal(commit.outcome, 'committed');
}
