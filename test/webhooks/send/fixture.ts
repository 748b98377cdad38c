/**
 * A sender over a real store, with the least exchange that there can be: what the house's own does is tested where it is.
 */
import { request } from 'node:http';
import { after } from 'node:test';
import type { Exchange, ExchangeCall, ExchangeOutcome } from '../../../src/egress/exchange.ts';
import { MemoryBudget } from '../../../src/memory/budget.ts';
import type { Endpoint, EndpointSecret } from '../../../src/model/endpoint.ts';
import { eventDocument } from '../../../src/model/event.ts';
import { type Authenticated, authenticated } from '../../../src/model/principal.ts';
import type { Store } from '../../../src/store/store.ts';
import type { Attempted, Claim, Send } from '../../../src/webhooks/sending/conclude-delivery.ts';
import { createSend, type SendOptions } from '../../../src/webhooks/sending/send-delivery.ts';
import { createEventSource } from '../../../src/webhooks/sending/sent-event.ts';
import { createWebhookKeys, type WebhookKeys } from '../../../src/webhooks/sending/webhook-keys.ts';
import { noStarts } from '../../harness/due-work.ts';
import { servicesOver } from '../../harness/services-over.ts';

export const [current, previous] = [7, 8].map(
  (octet) => `whsec_${Buffer.alloc(24, octet).toString('base64')}`,
) as [string, string];

const timing = { dnsMs: null, connectMs: null, tlsMs: null, firstByteMs: null, totalMs: 0 };

/** Posts what it is given as it is given: node:http itself refuses a field that would end early. */
export const exchange: Exchange = ({ url, method, fields, body }: ExchangeCall, done) => {
  const length = Buffer.byteLength(body);
  const headers = ['Host', url.host, 'Content-Length', String(length), ...fields];
  const outgoing = request(url, { method, headers }, (answer) => {
    answer.resume();
    const outcome: ExchangeOutcome = {
      ...{ kind: 'answered', status: answer.statusCode ?? 0, fields: [], snippet: '', cut: null },
      ...{ protocol: 'http/1.1', reused: false, address: null, timing },
    };
    answer.on('end', () => done(outcome));
  });
  outgoing.end(body);
};

/** Sends as the engine does. */
export function sendBy(send: Send, claim: Claim, signal: AbortSignal): Promise<Attempted> {
  return new Promise((attempted, failed) => send(claim, signal, { attempted, failed }));
}

export type Sender = {
  readonly clock: { now: number };
  readonly keys: WebhookKeys;
  /** Puts an event into the store. */
  post(
    object: string,
    more?: Partial<{ id: string; type: string; doc: string; owner: string }>,
  ): Promise<string>;
  send(claim: Claim): Promise<Attempted>;
};

export async function startSender(store: Store, more: Partial<SendOptions> = {}): Promise<Sender> {
  // The judges look at the clock of the machine.
  const clock = { now: Date.now() };
  const now = () => clock.now;
  const settings = { signingKeySeconds: 86_400 };
  const services = servicesOver(store, { clock: now, settings });
  const keys = await createWebhookKeys(services);
  after(() => keys.close());
  const send = createSend({
    ...{
      events: createEventSource(services),
      exchange,
      keys,
      clock: now,
      view: () => undefined,
      starts: noStarts,
      directory: { get: () => undefined, mayReceive: async () => true },
      memory: new MemoryBudget({ bytesMax: 64 * 1024 * 1024, sharePercent: 100 }),
    },
    ...{ version: '1.2.3', webhookTimeoutMs: 5000 },
    ...more,
  });
  return {
    clock,
    keys,
    async post(
      object,
      { id = `evt_${services.newId()}`, type = 'products.created', doc, owner = null } = {},
    ) {
      const text = doc ?? eventDocument(id, type, clock.now, object);
      const entry = { id, type, collection: 'products', owner, doc: text, createdAt: clock.now };
      const { outcome } = await store.commit({ changes: [], events: [entry] });
      if (outcome !== 'committed') throw new Error(outcome);
      return id;
    },
    send: (claim) => sendBy(send, claim, new AbortController().signal),
  };
}

const owner = authenticated({ id: 'usr_1', scopes: ['read', 'webhooks'] });

export type Given = {
  readonly scheme: Endpoint['scheme'];
  readonly signatures?: NonNullable<Endpoint['signatures']>;
  readonly url: URL;
  readonly eventId: string;
  readonly eventType?: string;
  readonly secrets?: readonly EndpointSecret[];
  readonly headers?: Readonly<Record<string, string>>;
  readonly principal?: Authenticated | undefined;
  /** Other members of the endpoint. */
  readonly more?: Partial<Endpoint>;
};

/** A claim of one delivery to an endpoint that is made for it. */
export function claimOf(given: Given): Claim {
  const { scheme, signatures, url, eventId, eventType = 'products.created', headers } = given;
  const { secrets = [{ secret: current, until: null }] } = given;
  const time = '2030-01-01T00:00:00.000Z';
  const endpoint: Endpoint = {
    ...{
      id: 'ep_1',
      url: url.href,
      events: ['*'],
      scheme,
      status: 'enabled',
      createdAt: time,
      updatedAt: time,
    },
    ...(signatures === undefined ? {} : { signatures }),
    ...given.more,
  };
  return {
    delivery: {
      ...{ id: 'dlv_1', eventId, eventType, endpointId: 'ep_1', status: 'pending', attemptCount: 0 },
      ...{
        scheduledAttemptCount: 0,
        nextAttemptAt: time,
        dueAt: time,
        lastStatusCode: null,
        lastError: null,
      },
      ...{ createdAt: time, updatedAt: time },
    },
    ...{ rev: 1, owner: 'usr_1', trigger: 'automatic' },
    endpoint: {
      endpoint,
      headers,
      rev: 1,
      owner: 'usr_1',
      url,
      secrets,
      principal: 'principal' in given ? given.principal : owner,
    },
  };
}
