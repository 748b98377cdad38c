/**
 * The inbox and the senders in this process, without sockets: requests go through the walk as values. `root` is an administrator, `ada` has
 * every scope that is not.
 */
import assert from 'node:assert/strict';
import { hash, randomInt } from 'node:crypto';
import { loadSettings } from '../../../src/config/load-settings.ts';
import type { DeclaredSender, HandOnTo } from '../../../src/config/senders.ts';
import type { Settings } from '../../../src/config/settings.ts';
import type { Request, Response } from '../../../src/http/message.ts';
import { readRequestFields } from '../../../src/http/request-fields.ts';
import { createHttpDateCache } from '../../../src/http/syntax/http-date.ts';
import { createIdSource } from '../../../src/model/id.ts';
import { anonymous, authenticated, operatorId } from '../../../src/model/principal.ts';
import { type Received, receivedDocument } from '../../../src/model/received.ts';
import { corsPolicy } from '../../../src/resources/answer/cors.ts';
import { createIdempotency } from '../../../src/resources/idempotency.ts';
import { createOperations } from '../../../src/resources/operations/operations.ts';
import { principalOf } from '../../../src/resources/operations/stored-request.ts';
import { createRateLimiter } from '../../../src/resources/rate-limit/rate-limiter.ts';
import type { Room } from '../../../src/resources/room.ts';
import { createRouter } from '../../../src/resources/router.ts';
import { createRoutes } from '../../../src/resources/routes.ts';
import { Walk } from '../../../src/resources/walk.ts';
import { receivedResources } from '../../../src/resources/webhooks/received/resources.ts';
import type { SenderResourcesOptions } from '../../../src/resources/webhooks/senders/options.ts';
import { senderResources } from '../../../src/resources/webhooks/senders/resources.ts';
import { keptRow } from '../../../src/store/kept-row.ts';
import type { Store } from '../../../src/store/store.ts';
import {
  contentId,
  type ReceivedAttempt,
  type ReceivedContent,
  receivedAttemptsTable,
  receivedContentsTable,
} from '../../../src/webhooks/inbound/tables.ts';
import type { HmacRule, TokenRule } from '../../../src/webhooks/signature/signature-rule.ts';
import { knownAs } from '../../resources/known.ts';

export type Answered = {
  readonly status: number;
  readonly field: (name: string) => string | undefined;
  readonly content: Buffer;
  // biome-ignore lint/suspicious/noExplicitAny: what a test expects of it, it says itself.
  readonly json: any;
};

type Asking = { readonly json?: unknown; readonly headers?: Readonly<Record<string, string>> };

export type InboxRoom = {
  readonly store: Store;
  clock(): number;
  moveClock(ms: number): void;
  ask(who: string | undefined, method: string, path: string, asking?: Asking): Promise<Answered>;
  respond(request: Request): Promise<Response>;
  /** A message as it is when it was accepted, changed as given. */
  put(given?: Partial<Received>, content?: Partial<ReceivedContent>): Promise<Received>;
  stored(id: string): Promise<Received>;
};

const people = {
  root: authenticated({ id: operatorId, scopes: ['read', 'write', 'webhooks', 'admin'] }),
  ada: authenticated({ id: 'usr_ada', scopes: ['read', 'write', 'webhooks', 'tunnel'] }),
};
const base = '/api/v1';

export const timestamped: HmacRule = {
  kind: 'hmac',
  header: 'service-signature',
  hash: 'sha256',
  encoding: 'hex',
  prefix: 'v1=',
  separator: ',',
  signed: '{timestamp}.{body}',
  timestamp: { prefix: 't=' },
  key: 'text',
  toleranceSeconds: 300,
};

export function senderOf(
  name: string,
  handOn: HandOnTo = { kind: 'handler' },
  signature: HmacRule | TokenRule = timestamped,
): DeclaredSender {
  return {
    name,
    description: '',
    preset: null,
    rule: { signature, dedupe: [{ json: '/id' }], type: [[{ json: '/type' }]], keep: [] },
    secretVariable: `${name.toUpperCase()}_WEBHOOK_SECRET`,
    publicKeys: [],
    keysUrl: undefined,
    handOn,
    schedule: [5, 30],
    inFlightMax: undefined,
  };
}

type RoomOptions = {
  readonly senders?: readonly DeclaredSender[];
  readonly secrets?: SenderResourcesOptions['secrets'];
  readonly rotate?: SenderResourcesOptions['rotate'];
  readonly settings?: Partial<Settings>;
};

const noSecrets: SenderResourcesOptions['secrets'] = {
  of: () => [],
  source: () => 'store',
  refresh: async () => undefined,
};

export function openInbox(store: Store, options: RoomOptions = {}): InboxRoom {
  const settings: Settings = { ...loadSettings({}, {}, {}).settings, ...options.settings };
  let ahead = 0;
  const clock = () => Date.now() + ahead;
  const newId = createIdSource(clock, () => randomInt(32));
  const room = roomOf(store, settings, { clock, newId }, options);
  return {
    store,
    clock,
    moveClock: (ms) => {
      ahead += ms;
    },
    ask: (who, method, path, asking) => answer(room, who, method, path, asking),
    respond: async (request) => new Walk(room, request).run(),
    async put(given = {}, content = {}) {
      const received = receivedOf(`rec_${newId()}`, clock(), given);
      await putMessage(store, received, { ...contentOf(received), ...content });
      return received;
    },
    async stored(id) {
      const row = await store.read('received', id);
      assert(row);
      return JSON.parse(row.doc) as Received;
    },
  };
}

function receivedOf(id: string, at: number, given: Partial<Received>): Received {
  const time = given.receivedAt ?? new Date(at).toISOString();
  return {
    id,
    sender: 'billing',
    dedupeKey: `msg-${id}`,
    type: 'invoice.paid',
    receivedAt: time,
    status: 'pending',
    attempts: 0,
    scheduledAttempts: 0,
    dueAt: time,
    lastError: null,
    contentType: 'application/json',
    contentLength: 2,
    createdAt: time,
    updatedAt: time,
    ...given,
  };
}

function contentOf({ id, contentType }: Received): ReceivedContent {
  return { id, contentType, contentEncoding: null, headers: {}, body: Buffer.from('{}').toString('base64') };
}

async function putMessage(store: Store, received: Received, content: ReceivedContent): Promise<void> {
  const at = Date.parse(received.createdAt);
  const expect = { absent: true } as const;
  const changes = [
    {
      table: receivedContentsTable,
      id: contentId(received.sender, received.dedupeKey),
      expect,
      next: keptRow(JSON.stringify(content), null, at, at),
    },
    {
      table: 'received',
      id: received.id,
      expect,
      next: keptRow(receivedDocument(received), null, at, Date.parse(received.updatedAt)),
    },
  ];
  assert.equal((await store.commit({ changes, events: [] })).outcome, 'committed');
}

/** The body leaves by age, as retention takes it. */
export async function dropContent({ store }: InboxRoom, { sender, dedupeKey }: Received): Promise<void> {
  const id = contentId(sender, dedupeKey);
  const row = await store.read(receivedContentsTable, id);
  assert(row);
  const change = { table: receivedContentsTable, id, expect: { rev: row.rev }, next: null };
  assert.equal((await store.commit({ changes: [change], events: [] })).outcome, 'committed');
}

export async function logAttempts({ store, clock }: InboxRoom, id: string, count: number): Promise<void> {
  const at = clock();
  const changes = Array.from({ length: count }, (_, index) => {
    const attempt: ReceivedAttempt = {
      number: index + 1,
      outcome: 'failed',
      error: 'thrown',
      message: `fault ${index + 1}`,
      statusCode: null,
      trigger: 'automatic',
      at: new Date(at).toISOString(),
      durationMs: 3,
    };
    return {
      table: receivedAttemptsTable,
      id: `${id}/${String(index + 1).padStart(6, '0')}`,
      expect: { absent: true } as const,
      next: keptRow(JSON.stringify(attempt), null, at, at),
    };
  });
  assert.equal((await store.commit({ changes, events: [] })).outcome, 'committed');
}

function roomOf(
  store: Store,
  settings: Settings,
  { clock, newId }: { readonly clock: () => number; readonly newId: () => string },
  { senders = [senderOf('billing')], secrets = noSecrets, rotate = neverRotated }: RoomOptions,
): Room {
  const byName = new Map(senders.map((sender) => [sender.name, sender]));
  const routes = createRoutes({
    ...settings,
    store,
    base,
    collections: new Map(),
    newId,
    clock,
    mac: (text) => hash('sha256', text, 'base64url').slice(0, 22),
    addressOf: ({ peer }) => peer,
    queryLimits: { ...settings, json: { depthMax: 32, keysMax: 1000 } },
    contentLimits: settings,
    streamLimits: { batchBytesMax: 262_144, heartbeatMs: settings.streamHeartbeatMs },
    builtIn: (serving) => [receivedResources({ ...settings, senders: byName }, serving)],
  });
  const own = senderResources({
    ...settings,
    base,
    senders: byName,
    secrets,
    rotate,
    clock,
    limits: settings,
    listLimits: settings,
  });
  const room: Room = {
    router: createRouter([...routes, ...own]),
    limits: { ...settings, traceEnabled: false },
    clock,
    authenticate: ({ fields }) => {
      const name = fields.authorization?.slice('Bearer '.length);
      const person = name === 'root' || name === 'ada' ? people[name] : undefined;
      return person === undefined ? { principal: anonymous } : knownAs(person);
    },
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
    operations: createOperations(
      { store, path: `${base}/operations`, newId, clock, random: () => 0, observe: () => undefined },
      async (request, stored, companions) =>
        new Walk(room, request, {
          identify: () => ({ principal: principalOf(stored) }),
          companions,
        }).run(),
    ),
    cors: corsPolicy('', 0),
    challengesFor: () => 'Bearer realm="test"',
    development: false,
    formatDate: createHttpDateCache(64),

    loop: { begin: () => 0, end: () => undefined },
  };
  return room;
}

async function neverRotated(): Promise<never> {
  throw new Error('no secret was to be rotated here');
}

async function answer(
  room: Room,
  who: string | undefined,
  method: string,
  path: string,
  { json, headers = {} }: Asking = {},
): Promise<Answered> {
  const content = json === undefined ? undefined : Buffer.from(JSON.stringify(json));
  const given = new Set(Object.keys(headers).map((name) => name.toLowerCase()));
  const rawFields = [
    ...['Host', 'localhost'],
    ...(who === undefined ? [] : ['Authorization', `Bearer ${who}`]),
    ...(content === undefined || given.has('content-type') ? [] : ['Content-Type', 'application/json']),
    ...(content === undefined ? [] : ['Content-Length', String(content.length)]),
    ...Object.entries(headers).flat(),
  ];
  const {
    status,
    fields,
    content: sent,
  } = await new Walk(room, {
    method,
    target: `${base}/${path}`,
    version: '1.1',
    fields: readRequestFields(rawFields),
    rawFields,
    readContent: async () => ({ ok: true, bytes: content ?? new Uint8Array() }),
    peer: '192.0.2.1',
    id: 'test',
  }).run();
  const octets =
    typeof sent === 'string' || sent instanceof Uint8Array ? Buffer.from(sent as string) : Buffer.alloc(0);
  const field = (name: string) => {
    const at = fields.findIndex(
      (value, index) => index % 2 === 0 && value.toLowerCase() === name.toLowerCase(),
    );
    return at < 0 ? undefined : fields[at + 1];
  };
  const isJson = field('content-type')?.endsWith('json') === true && typeof sent === 'string';
  return { status, field, content: octets, json: isJson ? JSON.parse(octets.toString()) : undefined };
}
