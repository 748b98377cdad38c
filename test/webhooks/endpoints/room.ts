/**
 * The webhook resources in this process, without sockets: requests go through the walk as values. `Authorization: Bearer NAME` is one of
 * the people below.
 */
import assert from 'node:assert/strict';
import { randomBytes, randomInt } from 'node:crypto';
import { after } from 'node:test';
import { loadSettings } from '../../../src/config/load-settings.ts';
import type { Settings } from '../../../src/config/settings.ts';
import { createEgressPolicy } from '../../../src/egress/policy.ts';
import type { Request } from '../../../src/http/message.ts';
import { readRequestFields } from '../../../src/http/request-fields.ts';
import { createHttpDateCache } from '../../../src/http/syntax/http-date.ts';
import { createIdSource } from '../../../src/model/id.ts';
import { type Authenticated, anonymous, authenticated, operatorId } from '../../../src/model/principal.ts';
import { corsPolicy } from '../../../src/resources/answer/cors.ts';
import { createIdempotency } from '../../../src/resources/idempotency.ts';
import { createOperations } from '../../../src/resources/operations/operations.ts';
import { principalOf } from '../../../src/resources/operations/stored-request.ts';
import { createRateLimiter } from '../../../src/resources/rate-limit/rate-limiter.ts';
import type { Resource } from '../../../src/resources/resource.ts';
import type { Room } from '../../../src/resources/room.ts';
import { createRouter } from '../../../src/resources/router.ts';
import { createRoutes } from '../../../src/resources/routes.ts';
import { Walk } from '../../../src/resources/walk.ts';
import type { EndpointResourcesOptions } from '../../../src/resources/webhooks/endpoints/options.ts';
import { endpointResources } from '../../../src/resources/webhooks/endpoints/resources.ts';
import { recoveryResources } from '../../../src/resources/webhooks/recoveries/resources.ts';
import type { Store } from '../../../src/store/store.ts';
import type { EndpointDirectory } from '../../../src/webhooks/outbound/known-endpoint.ts';
import { knownAs } from '../../resources/known.ts';
import { openDirectory } from './directory.ts';

export type Answered = {
  readonly status: number;
  /** The last field of the name. */
  readonly field: (name: string) => string | undefined;
  // biome-ignore lint/suspicious/noExplicitAny: what a test expects of it, it says itself.
  readonly json: any;
};

export type Asking = {
  readonly json?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
};

export type WebhookRoom = {
  readonly store: Store;
  readonly directory: EndpointDirectory;
  /** Endpoints that were announced to have something due, in order. */
  readonly woken: string[];
  readonly newId: () => string;
  clock(): number;
  moveClock(ms: number): void;
  ask(who: string | undefined, method: string, path: string, asking?: Asking): Promise<Answered>;
  /** An endpoint of this person. */
  make(who: string, fields?: object): Promise<Answered['json']>;
};

const people: Readonly<Record<string, Authenticated>> = {
  root: authenticated({ id: operatorId, scopes: ['read', 'write', 'webhooks', 'admin'] }),
  ada: authenticated({ id: 'usr_ada', scopes: ['read', 'write', 'webhooks'] }),
  /** A credential of ada's that may do less. */
  adasHook: authenticated({ id: 'usr_ada', scopes: ['webhooks'] }),
  bob: authenticated({ id: 'usr_bob', scopes: ['read', 'write', 'webhooks'] }),
  nora: authenticated({ id: 'usr_nora', scopes: ['read', 'webhooks'], tenant: 'north' }),
  writer: authenticated({ id: 'usr_writer', scopes: ['read', 'write'] }),
};

const base = '/api/v1';
export const goodUrl = 'https://shop.example/hooks';

export async function openRoom(
  store: Store,
  context: { after(close: () => Promise<void>): void } = { after },
  bounds: { readonly endpointsMax?: number; readonly endpointsPerOwnerMax?: number } = {},
): Promise<WebhookRoom> {
  const settings = { ...loadSettings({}, {}, {}).settings, ...bounds };
  let ahead = 0;
  const clock = () => Date.now() + ahead;
  const newId = createIdSource(clock, () => randomInt(32));
  const directory = await openDirectory(store, clock);
  context.after(() => directory.close());
  const woken: string[] = [];
  const policy = createEgressPolicy({ ...settings, ownListeners: () => [] });
  const endpoints: EndpointResourcesOptions = {
    ...settings,
    plainStore: store,
    directory,
    wakes: { changesFor: () => [], announce: (ids: Iterable<string>) => void woken.push(...ids) },
    random: randomBytes,
    refuseUrl: (url: string) => {
      const verdict = policy.checkUrl(url);
      return verdict.ok ? undefined : verdict.why;
    },
    sampleOf: (type: string) => (type === 'orders.paid' ? { id: 'o1', total: 3 } : undefined),
  };
  const room = roomOf({ settings, store, clock, newId, endpoints });
  const ask: WebhookRoom['ask'] = (who, method, path, asking) => answer(room, who, method, path, asking);
  return {
    store,
    directory,
    woken,
    newId,
    clock,
    moveClock: (ms) => {
      ahead += ms;
    },
    ask,
    async make(who, fields = {}) {
      const json = { url: goodUrl, events: ['*'], ...fields };
      const made = await ask(who, 'POST', '/endpoints', { json });
      assert.equal(made.status, 201, JSON.stringify(made.json));
      return made.json;
    },
  };
}

type RoomParts = Pick<WebhookRoom, 'store' | 'clock' | 'newId'> & {
  readonly settings: Settings;
  readonly endpoints: EndpointResourcesOptions;
};

function roomOf({ settings, store, clock, newId, endpoints }: RoomParts): Room {
  const operations = createOperations(
    { store, path: `${base}/operations`, newId, clock, random: () => 0, observe: () => undefined },
    async (request, stored, companions) =>
      new Walk(room, request, {
        identify: () => ({ principal: principalOf(stored) }),
        companions,
      }).run(),
  );
  const unlimited = { ...settings, rateLimitReads: 0, rateLimitWrites: 0 };
  const room: Room = {
    router: createRouter(routesOf({ settings, store, clock, newId, endpoints })),
    limits: { ...settings, traceEnabled: false },
    clock,
    authenticate: ({ fields }) => identify(fields.authorization),
    rates: createRateLimiter({ ...unlimited, store, onFailure: () => undefined }),
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

function routesOf({ settings, store, clock, newId, endpoints }: RoomParts): readonly Resource[] {
  return createRoutes({
    ...settings,
    store,
    base,
    collections: new Map(),
    newId,
    clock,
    mac: (text) => text.slice(0, 22),
    addressOf: ({ peer }) => peer,
    queryLimits: { ...settings, json: { depthMax: 32, keysMax: 1000 } },
    contentLimits: settings,
    streamLimits: { batchBytesMax: 262_144, heartbeatMs: settings.streamHeartbeatMs },
    builtIn: (serving) => [endpointResources(endpoints, serving), recoveryResources(serving)],
  });
}

function identify(authorization: string | undefined) {
  const person = people[authorization?.slice('Bearer '.length) ?? ''];
  return person === undefined ? { principal: anonymous } : knownAs(person);
}

async function answer(
  room: Room,
  who: string | undefined,
  method: string,
  path: string,
  { json, headers = {} }: Asking = {},
): Promise<Answered> {
  const body = json === undefined ? undefined : Buffer.from(JSON.stringify(json));
  const fields = { Host: 'localhost', ...(who === undefined ? {} : { Authorization: `Bearer ${who}` }) };
  const content = { 'Content-Type': 'application/json', 'Content-Length': String(body?.length) };
  const all = { ...fields, ...(body === undefined ? {} : content), ...headers };
  const rawFields = Object.entries(all).flat();
  const request: Request = {
    method,
    target: `${base}${path}`,
    version: '1.1',
    fields: readRequestFields(rawFields),
    rawFields,
    readContent: async () => ({ ok: true, bytes: body ?? new Uint8Array() }),
    peer: '192.0.2.1',
    id: 'test',
  };
  const response = await new Walk(room, request).run();
  const { content: sent } = response;
  return {
    status: response.status,
    field: (name) => fieldOf(response.fields, name),
    json: typeof sent === 'string' ? JSON.parse(sent) : undefined,
  };
}

function fieldOf(fields: readonly string[], name: string): string | undefined {
  const at = fields.findLastIndex((field, index) => index % 2 === 0 && field.toLowerCase() === name);
  return at < 0 ? undefined : fields[at + 1];
}
