/**
 * Resources behind the walk in the process of the test: a request is a value, and so is its response; `serve` puts a socket before them.
 * `Authorization: Bearer NAME` is one of the people. Rates are not limited, and the clock moves forward when a test says so.
 */
import assert from 'node:assert/strict';
import { hash, randomInt } from 'node:crypto';
import { loadSettings } from '../../src/config/load-settings.ts';
import type { Settings } from '../../src/config/settings.ts';
import type { Handler, Response } from '../../src/http/message.ts';
import { readRequestFields } from '../../src/http/request-fields.ts';
import { createHttpDateCache } from '../../src/http/syntax/http-date.ts';
import { corsPolicy } from '../../src/kernel/answer/cors.ts';
import { decodeContent } from '../../src/kernel/content/decode-content.ts';
import { createIdempotency } from '../../src/kernel/idempotency.ts';
import { createOperations } from '../../src/kernel/operations/operations.ts';
import { principalOf } from '../../src/kernel/operations/stored-request.ts';
import { createRateLimiter } from '../../src/kernel/rate-limit/rate-limiter.ts';
import type { Resource } from '../../src/kernel/resource.ts';
import { createRouter } from '../../src/kernel/router.ts';
import { Walk } from '../../src/kernel/walk.ts';
import type { WalkContext } from '../../src/kernel/walk-context.ts';
import { createIdSource } from '../../src/model/id.ts';
import { type Authenticated, anonymous, authenticated, operatorId } from '../../src/model/principal.ts';
import { LoopTurns } from '../../src/observe/event-loop.ts';
import type { Observe } from '../../src/observe/observation.ts';
import { createOpenConnections } from '../../src/observe/open-connections.ts';
import { createRoutes, type RoutesOptions } from '../../src/resources/routes.ts';
import { createListener } from '../../src/server/listener.ts';
import type { Store } from '../../src/store/store.ts';
import { knownAs } from '../resources/known.ts';

export const base = '/api/v1';

const people: Readonly<Record<string, Authenticated>> = {
  root: authenticated({ id: operatorId, scopes: ['read', 'write', 'webhooks', 'admin'] }),
  ada: authenticated({ id: 'usr_ada', scopes: ['read', 'write', 'webhooks'] }),
  /** A credential of ada's that may do less. */
  adasHook: authenticated({ id: 'usr_ada', scopes: ['webhooks'] }),
  bob: authenticated({ id: 'usr_bob', scopes: ['read', 'write', 'webhooks'] }),
  hook: authenticated({ id: 'usr_hook', scopes: ['webhooks'] }),
  nora: authenticated({ id: 'usr_nora', scopes: ['read', 'webhooks'], tenant: 'north' }),
  nils: authenticated({ id: 'usr_nils', scopes: ['read', 'webhooks'], tenant: 'north' }),
  sam: authenticated({ id: 'usr_sam', scopes: ['read', 'webhooks'], tenant: 'south' }),
  writer: authenticated({ id: 'usr_writer', scopes: ['read', 'write'] }),
};

/** What resources are made of besides their own options. */
export type Surroundings = {
  readonly store: Store;
  readonly settings: Settings;
  readonly newId: () => string;
  readonly clock: () => number;
  moveClock(seconds: number): void;
};

/** @param nowMs where the clock stands still until it is moved; it goes with that of the machine unless given */
export function surround(store: Store, given: Partial<Settings> = {}, nowMs?: number): Surroundings {
  let ahead = 0;
  const clock = () => (nowMs ?? Date.now()) + ahead;
  return {
    store,
    settings: { ...loadSettings({}, {}, {}).settings, rateLimitReads: 0, rateLimitWrites: 0, ...given },
    newId: createIdSource(clock, () => randomInt(32)),
    clock,
    moveClock(seconds) {
      ahead += seconds * 1000;
    },
  };
}

/** The resources that collections and the store make, and those of the options. */
export function routed(surroundings: Surroundings, options: Partial<RoutesOptions>): readonly Resource[] {
  const { settings, store, newId, clock } = surroundings;
  return createRoutes({
    settings,
    store,
    base,
    collections: new Map(),
    newId,
    clock,
    turns: new LoopTurns(),
    mac: (text) => hash('sha256', text, 'base64url').slice(0, 22),
    addressOf: ({ peer }) => peer,
    connections: createOpenConnections(clock),
    ...options,
  });
}

export type RoomOptions = Partial<WalkContext> & {
  readonly observe?: Observe;
  /** Besides those above, or in their place. */
  readonly others?: Readonly<Record<string, Authenticated>>;
};

/** What the walk needs to serve the resources. Operations that fail end the test unless they are observed. */
export function roomOf(
  { store, settings, newId, clock }: Surroundings,
  resources: readonly Resource[],
  options: RoomOptions = {},
): WalkContext {
  const { observe = ({ kind }) => assert.notEqual(kind, 'operation-failed'), others, ...given } = options;
  const known = { ...people, ...others };
  const operations = createOperations(
    { store, path: `${base}/operations`, newId, clock, random: () => 0, observe },
    (request, stored, companions) => {
      const identify = () => ({ principal: principalOf(stored) });
      return Promise.resolve(new Walk(room, request, { identify, companions }).run());
    },
  );
  const room: WalkContext = {
    router: createRouter(resources),
    limits: { ...settings, traceEnabled: false },
    clock,
    authenticate: ({ fields }) => {
      const person = known[fields.authorization?.slice('Bearer '.length) ?? ''];
      return person === undefined ? { principal: anonymous } : knownAs(person);
    },
    rates: createRateLimiter(settings, store, (error) => assert.fail(String(error))),
    decodeContent: (bytes, codings) => decodeContent(bytes, codings, { bytesMax: settings.decodedBytesMax }),
    lines: store.lines,
    idempotency: createIdempotency({ store, clock, newId }, settings.idempotencySeconds),
    operations,
    cors: corsPolicy({}),
    challengesFor: () => ['Bearer realm="test"'],
    development: false,
    formatDate: createHttpDateCache(64),
    newBoundary: () => 'between-parts',
    loop: { begin: () => 0, end: () => undefined },
    ...given,
  };
  return room;
}

export type Served = { readonly port: number; stop(): Promise<unknown> };

/** The room behind a listener of the server on the loopback address. */
export async function serve(room: WalkContext, observe: Observe = () => undefined): Promise<Served> {
  const handler: Handler = (request) => new Walk(room, request).run();
  const listener = createListener({ handler, observe, apiVersion: '1' });
  const { port } = await listener.listen('127.0.0.1', 0);
  return { port, stop: () => listener.drain(0) };
}

export type Message = {
  readonly method: string;
  readonly target: string;
  /** Besides Host and the length of the body: name, value, name, value ... */
  readonly fields?: readonly string[];
  readonly body?: string | Uint8Array | undefined;
  /** The body is sent without Content-Length. */
  readonly chunked?: boolean;
  /** The client has left. */
  readonly isGone?: boolean;
};

export type Answered = {
  readonly status: number;
  readonly fields: readonly string[];
  /** The last field of the name. */
  readonly field: (name: string) => string | undefined;
  readonly content: Buffer;
  /** Undefined where the content is no JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: what a test expects of it, it says itself.
  readonly json: any;
};

/** One request through the walk. */
export async function exchange(room: WalkContext, message: Message): Promise<Answered> {
  const { method, target, fields = [], chunked = false, isGone = false } = message;
  const body = message.body === undefined ? undefined : Buffer.from(message.body as string);
  const framing = chunked ? ['Transfer-Encoding', 'chunked'] : ['Content-Length', String(body?.length)];
  const rawFields = ['Host', 'shop.example', ...fields, ...(body === undefined ? [] : framing)];
  const bytes = body ?? Buffer.alloc(0);
  const response = await new Walk(room, {
    method,
    target,
    version: '1.1',
    fields: readRequestFields(rawFields),
    rawFields,
    readContent: async (bytesMax) =>
      bytes.length > bytesMax ? { ok: false, code: 'content_too_large' } : { ok: true, bytes },
    peer: '192.0.2.1',
    id: 'test',
    isGone,
  }).run();
  return answeredOf(response);
}

function answeredOf({ status, fields, content: sent }: Response): Answered {
  assert(sent === null || typeof sent === 'string' || sent instanceof Uint8Array);
  const content = Buffer.from((sent as string | null) ?? '');
  const field = (name: string) => {
    const wanted = name.toLowerCase();
    const at = fields.findLastIndex((text, index) => index % 2 === 0 && text.toLowerCase() === wanted);
    return at < 0 ? undefined : fields[at + 1];
  };
  const isJson = field('content-type')?.endsWith('json') === true && content.length > 0;
  return { status, fields, field, content, json: isJson ? JSON.parse(content.toString()) : undefined };
}

export type Asking = {
  readonly json?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
};

/** A request of one of the people, or of none, to a path below `/api/v1/`. */
export type AskAs = (
  who: string | undefined,
  method: string,
  path: string,
  asking?: Asking,
) => Promise<Answered>;

export function askerOf(room: WalkContext): AskAs {
  return (who, method, path, { json, headers = {} } = {}) => {
    const given = new Set(Object.keys(headers).map((name) => name.toLowerCase()));
    const isTyped = json === undefined || given.has('content-type');
    const fields = [
      ...(who === undefined ? [] : ['Authorization', `Bearer ${who}`]),
      ...(isTyped ? [] : ['Content-Type', 'application/json']),
      ...Object.entries(headers).flat(),
    ];
    const body = json === undefined ? undefined : JSON.stringify(json);
    return exchange(room, { method, target: `${base}/${path}`, fields, body });
  };
}
