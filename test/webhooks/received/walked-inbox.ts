/** The inbox and the senders behind the walk. */
import assert from 'node:assert/strict';
import type { DeclaredSender, HandOnTo } from '../../../src/config/senders.ts';
import type { Settings } from '../../../src/config/settings.ts';
import type { Request, Response } from '../../../src/http/message.ts';
import { Walk } from '../../../src/kernel/walk.ts';
import { authenticated } from '../../../src/model/principal.ts';
import { type Received, receivedDocument } from '../../../src/model/received.ts';
import { keptRow, type Store } from '../../../src/store/store.ts';
import { receivedResources } from '../../../src/webhooks/receiving/received/received-routes.ts';
import {
  contentId,
  type ReceivedAttempt,
  type ReceivedContent,
  receivedAttemptsTable,
  receivedContentsTable,
} from '../../../src/webhooks/receiving/received-tables.ts';
import { type KnownSecrets, senderResources } from '../../../src/webhooks/receiving/sender-routes.ts';
import type { HmacRule, TokenRule } from '../../../src/webhooks/signature/signature-rule.ts';
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

/** Has every scope that is not the administrator's. */
const ada = authenticated({ id: 'usr_ada', scopes: ['read', 'write', 'webhooks', 'tunnel'] });

export type InboxRoom = Surroundings & {
  readonly ask: AskAs;
  respond(request: Request): Promise<Response>;
  /** A message as it is when it was accepted, changed as given. */
  put(given?: Partial<Received>, content?: Partial<ReceivedContent>): Promise<Received>;
  stored(id: string): Promise<Received>;
};

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
  readonly secrets?: KnownSecrets;
  readonly settings?: Partial<Settings>;
};

const noSecrets: KnownSecrets = {
  of: () => [],
  source: () => 'store',
  refresh: async () => undefined,
  rotate: async () => assert.fail('no secret was to be rotated here'),
};

export function openInbox(store: Store, options: RoomOptions = {}): InboxRoom {
  const surroundings = surround(store, options.settings);
  const { settings, newId, clock } = surroundings;
  const { senders: declared = [senderOf('billing')], secrets = noSecrets } = options;
  const senders = new Map(declared.map((sender) => [sender.name, sender]));
  const inbox = routed(surroundings, {
    builtIn: (serving) => [receivedResources({ settings }, senders, serving)],
  });
  const own = senderResources(servicesOver(store, { clock, settings }), { base, senders }, secrets);
  const room = roomOf(surroundings, [...inbox, ...own], { others: { ada } });
  return {
    ...surroundings,
    ask: askerOf(room),
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
