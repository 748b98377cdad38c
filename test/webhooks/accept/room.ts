/**
 * Paths of senders in this process, without sockets: requests go through the walk as values. Signatures are made here by node:crypto alone,
 * so that what verifies is not judged by itself.
 */
import assert from 'node:assert/strict';
import { createHmac, randomInt } from 'node:crypto';
import type { DeclaredSender } from '../../../src/config/senders.ts';
import type { ReceivedContent, Request } from '../../../src/http/message.ts';
import { readRequestFields } from '../../../src/http/request-fields.ts';
import { createHttpDateCache } from '../../../src/http/syntax/http-date.ts';
import { always, byId } from '../../../src/model/filter.ts';
import { createIdSource } from '../../../src/model/id.ts';
import type { Received } from '../../../src/model/received.ts';
import type { ReceivedObservation } from '../../../src/observe/observation.ts';
import { corsPolicy } from '../../../src/resources/answer/cors.ts';
import { createIdempotency } from '../../../src/resources/idempotency.ts';
import { createOperations } from '../../../src/resources/operations/operations.ts';
import type { Room } from '../../../src/resources/room.ts';
import { createRouter } from '../../../src/resources/router.ts';
import { Walk } from '../../../src/resources/walk.ts';
import { receiveResources } from '../../../src/resources/webhooks/receive/resources.ts';
import type { Store } from '../../../src/store/store.ts';
import { type AcceptOptions, createAccept } from '../../../src/webhooks/inbound/accept/accept.ts';
import { receivedCollection } from '../../../src/webhooks/inbound/collections.ts';
import type { SenderSecret } from '../../../src/webhooks/inbound/sender-secrets.ts';
import {
  contentId,
  type ReceivedContent as KeptContent,
  receivedContentsTable,
} from '../../../src/webhooks/inbound/tables.ts';
import { type PresetName, presets } from '../../../src/webhooks/presets/presets.ts';

export const secret = 'whsec_c2VjcmV0IG9mIGEgc2VuZGVy';
export const receivedBytesMax = 2 * 1024 * 1024;

export type Answered = {
  readonly status: number;
  readonly fields: readonly string[];
  readonly field: (name: string) => string | undefined;
  readonly content: string | undefined;
};

export type Posting = {
  readonly method?: string;
  readonly body?: string | Uint8Array;
  /** Besides Host and framing: name, value, name, value ... */
  readonly fields?: readonly string[];
  /** Sent without Content-Length. */
  readonly chunked?: boolean;
  readonly query?: string;
};

export type ReceiveRoom = {
  readonly observed: ReceivedObservation[];
  clock(): number;
  moveClock(seconds: number): void;
  /** Undefined: the sender has none. */
  setSecrets(sender: string, secrets: readonly SenderSecret[]): void;
  post(sender: string, posting?: Posting): Promise<Answered>;
  /** All messages that stand of a sender, by the order of their ids. */
  received(sender: string): Promise<readonly Received[]>;
  content(sender: string, dedupeKey: string): Promise<KeptContent>;
};

export type RoomOptions = Partial<Pick<AcceptOptions, 'publicUrl' | 'fetchKeys'>> & {
  readonly senders?: readonly DeclaredSender[];
};

/** A sender as an inspected configuration has it. */
export function declared(
  name: string,
  preset: PresetName,
  given: Partial<DeclaredSender> = {},
): DeclaredSender {
  return {
    name,
    description: '',
    preset,
    rule: presets[preset],
    secretVariable: `${name.toUpperCase()}_WEBHOOK_SECRET`,
    publicKeys: [],
    keysUrl: undefined,
    handOn: { kind: 'handler' },
    schedule: [5],
    inFlightMax: undefined,
    ...given,
  };
}

export const shopSenders: readonly DeclaredSender[] = [
  declared('billing', 'timestamped'),
  declared('forge', 'plain'),
  declared('partner', 'standard'),
];

export function openReceiveRoom(store: Store, options: RoomOptions = {}): ReceiveRoom {
  const senders = new Map((options.senders ?? shopSenders).map((sender) => [sender.name, sender]));
  let ahead = 0;
  const clock = () => Date.now() + ahead;
  const newId = createIdSource(clock, () => randomInt(32));
  const observed: ReceivedObservation[] = [];
  const kept = new Map<string, readonly SenderSecret[]>();
  const usual = [{ secret, until: null }];
  const accept = createAccept({
    ...options,
    senders,
    secrets: { of: ({ sender }) => kept.get(sender) ?? usual },
    store,
    clock,
    newId,
    observe: (fact) => void observed.push(fact as ReceivedObservation),
    publicUrl: options.publicUrl,
  });
  const resources = receiveResources({ senders, base: '/api/v1', accept, receivedBytesMax });
  const room = roomOf(store, clock, newId, createRouter(resources));
  const plan = store.plan({
    table: receivedCollection.name,
    filter: always,
    sort: byId,
    limit: 1000,
  });
  return {
    observed,
    clock,
    moveClock: (seconds) => {
      ahead += seconds * 1000;
    },
    setSecrets: (sender, secrets) => void kept.set(sender, secrets),
    post: (sender, posting) => answer(room, sender, posting),
    async received(sender) {
      const rows = await plan.rows({ from: 'start' });
      return rows.map(({ doc }) => JSON.parse(doc) as Received).filter((one) => one.sender === sender);
    },
    async content(sender, dedupeKey) {
      const row = await store.read(receivedContentsTable, contentId(sender, dedupeKey));
      assert(row !== undefined, 'the body is kept');
      return JSON.parse(row.doc) as KeptContent;
    },
  };
}

function roomOf(store: Store, clock: () => number, newId: () => string, router: Room['router']): Room {
  const operations = createOperations(
    { store, path: '/api/v1/operations', newId, clock, random: () => 0, observe: () => undefined },
    () => Promise.reject(new Error('nothing is kept for later')),
  );
  return {
    router,
    limits: {
      targetBytesMax: 8000,
      bodyBytesMax: 1000,
      actionBytesMax: 1000,
      traceEnabled: false,
      compressionBytesMin: 1000,
    },
    clock,
    authenticate: () => assert.fail('a credential was looked at'),
    rates: {
      admit: () => assert.fail('a webhook was counted'),
      partyOf: () => '',
    } as unknown as Room['rates'],
    decodeContent: () => assert.fail('a content coding was undone'),
    lines: store.lines,
    idempotency: createIdempotency({ store, clock, newId, lifetimeSeconds: 60 }),
    operations,
    cors: corsPolicy('https://page.example', 600),
    challengesFor: () => 'Bearer',
    development: false,
    formatDate: createHttpDateCache(64),

    loop: { begin: () => 0, end: () => undefined },
  };
}

async function answer(room: Room, sender: string, posting: Posting = {}): Promise<Answered> {
  const { method = 'POST', body, fields = [], chunked = false, query = '' } = posting;
  const bytes = body === undefined ? undefined : Buffer.from(body as string);
  const framing = chunked ? ['Transfer-Encoding', 'chunked'] : ['Content-Length', String(bytes?.length)];
  const rawFields = ['Host', 'shop.example', ...fields, ...(bytes === undefined ? [] : framing)];
  const readContent = async (bytesMax: number): Promise<ReceivedContent> =>
    (bytes?.length ?? 0) > bytesMax
      ? { ok: false, code: 'content_too_large' }
      : { ok: true, bytes: bytes ?? new Uint8Array() };
  const request: Request = {
    method,
    target: `/api/v1/webhooks/${sender}${query}`,
    version: '1.1',
    fields: readRequestFields(rawFields),
    rawFields,
    readContent,
    peer: '192.0.2.1',
    id: 'test',
  };
  const response = await new Walk(room, request).run();
  const { content } = response;
  assert(content === null || typeof content === 'string');
  return {
    status: response.status,
    fields: response.fields,
    field: (name) => fieldOf(response.fields, name),
    content: content ?? undefined,
  };
}

function fieldOf(fields: readonly string[], name: string): string | undefined {
  const at = fields.findLastIndex(
    (field, index) => index % 2 === 0 && field.toLowerCase() === name.toLowerCase(),
  );
  return at < 0 ? undefined : fields[at + 1];
}

/** The field of a timestamped sender (§5.6). @param at milliseconds since the epoch */
export function timestampedField(body: string | Uint8Array, at: number, key = secret): readonly string[] {
  const seconds = Math.floor(at / 1000);
  const signature = createHmac('sha256', key).update(`${seconds}.`).update(body).digest('hex');
  return ['Service-Signature', `t=${seconds},v1=${signature}`];
}

/** The fields of a plain sender (§5.6). */
export function plainFields(body: string | Uint8Array, delivery: string, key = secret): readonly string[] {
  const signature = createHmac('sha256', key).update(body).digest('hex');
  return ['X-Hub-Signature-256', `sha256=${signature}`, 'X-Service-Delivery', delivery];
}

/** The fields of Standard Webhooks (§5.6). */
export function standardFields(body: string | Uint8Array, id: string, at: number): readonly string[] {
  const seconds = Math.floor(at / 1000);
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64');
  const signature = createHmac('sha256', key).update(`${id}.${seconds}.`).update(body).digest('base64');
  return ['webhook-id', id, 'webhook-timestamp', String(seconds), 'webhook-signature', `v1,${signature}`];
}
