/**
 * Paths of senders behind the walk. Signatures are made here by node:crypto alone, so that what verifies is not judged by itself.
 */
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import type { DeclaredSender } from '../../../src/config/senders.ts';
import { corsPolicy } from '../../../src/kernel/answer/cors.ts';
import type { WalkContext } from '../../../src/kernel/walk-context.ts';
import { always, byId } from '../../../src/model/filter.ts';
import type { Received } from '../../../src/model/received.ts';
import type { ReceivedObservation } from '../../../src/observe/observation.ts';
import type { Store } from '../../../src/store/store.ts';
import { type PresetName, presets } from '../../../src/webhooks/presets.ts';
import { type AcceptHooks, createAccept } from '../../../src/webhooks/receiving/accept-message.ts';
import {
  contentId,
  type ReceivedContent as KeptContent,
  receivedCollection,
  receivedContentsTable,
} from '../../../src/webhooks/receiving/received-tables.ts';
import { receiveResources } from '../../../src/webhooks/receiving/receiving.ts';
import type { SenderSecret, SenderSecrets } from '../../../src/webhooks/receiving/sender-secrets.ts';
import { servicesOver } from '../../harness/services-over.ts';
import {
  type Answered,
  base,
  exchange,
  type Message,
  roomOf,
  surround,
} from '../../harness/walked-resources.ts';

export const secret = 'whsec_c2VjcmV0IG9mIGEgc2VuZGVy';
export const receivedBytesMax = 2 * 1024 * 1024;

export type Posting = Partial<Omit<Message, 'target'>> & { readonly query?: string };

export type WalkedSenders = {
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

export type SenderOptions = Pick<AcceptHooks, 'fetchKeys'> & {
  readonly publicUrl?: string;
  readonly senders?: readonly DeclaredSender[];
  /** Default: each sender has the one secret of this file. */
  readonly secrets?: Pick<SenderSecrets, 'of' | 'adopt' | 'tokensOf'>;
  /** Tokens of challenges by sender; default: its secrets. */
  readonly tokens?: Readonly<Record<string, readonly string[]>>;
  /** The memory budget. Default: without bound. */
  readonly memoryBytes?: number;
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

export function walkSenders(store: Store, options: SenderOptions = {}): WalkedSenders {
  const senders = new Map((options.senders ?? shopSenders).map((sender) => [sender.name, sender]));
  const surroundings = surround(store, { bodyBytesMax: 1000, actionBytesMax: 1000 });
  const observed: ReceivedObservation[] = [];
  const kept = new Map<string, readonly SenderSecret[]>();
  const usual = [{ secret, until: null }];
  const { memoryBytes = Number.MAX_SAFE_INTEGER, publicUrl, fetchKeys } = options;
  const services = servicesOver(store, {
    ...{ clock: surroundings.clock, newId: surroundings.newId },
    observe: (fact) => void observed.push(fact as ReceivedObservation),
    settings: { receivedBytesMax, publicUrl, memoryBytesMax: memoryBytes },
  });
  const secretsOf = ({ sender }: { readonly sender: string }) => kept.get(sender) ?? usual;
  const secrets = options.secrets ?? {
    of: secretsOf,
    tokensOf: (sender: string) =>
      options.tokens?.[sender] ?? secretsOf({ sender }).map(({ secret: each }) => each),
    adopt: () => assert.fail('a secret was adopted'),
  };
  const accept = createAccept(services, { base: '/api/v1', senders }, secrets, { fetchKeys });
  const resources = receiveResources(services, { base, senders }, accept, secrets);
  const room = roomOf(surroundings, resources, unused);
  const plan = store.plan({
    table: receivedCollection.name,
    filter: always,
    sort: byId,
    limit: 1000,
  });
  return {
    observed,
    clock: surroundings.clock,
    moveClock: surroundings.moveClock,
    setSecrets: (sender, secrets) => void kept.set(sender, secrets),
    post: (sender, { method = 'POST', query = '', ...message } = {}) =>
      exchange(room, { method, target: `${base}/webhooks/${sender}${query}`, ...message }),
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

/** Parts of the walk that a webhook must not reach, and a policy for pages that must not apply to it. */
const unused: Partial<WalkContext> = {
  authenticate: () => assert.fail('a credential was looked at'),
  rates: {
    admit: () => assert.fail('a webhook was counted'),
    partyOf: () => '',
  } as unknown as WalkContext['rates'],
  decodeContent: () => assert.fail('a content coding was undone'),
  cors: corsPolicy({ corsOrigins: 'https://page.example', corsMaxAgeSeconds: 600 }),
};

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
