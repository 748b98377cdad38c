/** `/deliveries`: the log of deliveries (§3, §6), a read-only collection, their attempts, resends, and the requests that they send. */

import { Type } from 'typebox';
import { actionResource, type Done } from '../../kernel/action.ts';
import { type CollectionOperation, type Item, named, representationOf } from '../../kernel/documentation.ts';
import type { Resource } from '../../kernel/resource.ts';
import { withoutCause } from '../../model/actor.ts';
import { type Delivery, deliveryDocument } from '../../model/delivery.ts';
import { readEndpoint } from '../../model/endpoint.ts';
import { type MemberStanding, onMember } from '../../resources/collection/member.ts';
import { timeAfter } from '../../resources/collection/row.ts';
import { type ServedCollection, serveCollection } from '../../resources/collection/serve-collection.ts';
import type { Served, Serving } from '../../resources/collection/served-collection.ts';
import { tryCommit } from '../../store/lines.ts';
import { eventsTable, keptRow, Overtaken, type Row, type Store } from '../../store/store.ts';
import { type AttemptsDocumentation, attemptsResource } from '../routes/attempt-routes.ts';
import { signedFields } from '../sent-headers.ts';
import type { KnownEndpoint } from './known-endpoint.ts';
import { shapeOf, type ViewOf } from './send-delivery.ts';
import type { SendingParts } from './sending-parts.ts';
import { attemptsTable, deliveriesCollection, endpointsCollection } from './sending-tables.ts';
import { createStandardMessages, isExpunged, type SentEvent } from './sent-event.ts';

const operations: ReadonlySet<CollectionOperation> = new Set(['list', 'query', 'read']);

export function deliveryResources(parts: SendingParts, serving: Serving): ServedCollection {
  const plain = serveCollection(serving, deliveriesCollection, {
    announced: false,
    operations,
    documentation: {
      names: { singular: 'Delivery', plural: 'Deliveries', one: 'a delivery', many: 'deliveries' },
      audience: 'operator',
      idPrefix: 'dlv_',
    },
  });
  return {
    ...plain,
    resources: [
      ...plain.resources,
      attemptsResource(plain.served, attemptsTable, serving.settings.listLimitMax, attemptsDocumentation),
      resendResource(parts, plain.served),
      sentRequestResource(parts, plain.served),
    ],
  };
}

const ms = (description: string): Item => ({ type: ['number', 'null'], description });
const textOrNull: Item = { type: ['string', 'null'] };

/* The resource `/deliveries/{id}/attempts`: the attempts of a delivery, oldest first. */
const attemptSchema: Item = {
  description: 'One attempt to send a delivery.',
  type: 'object',
  properties: {
    number: { type: 'integer', minimum: 1 },
    statusCode: { type: ['integer', 'null'], description: 'Status of the response; null if there was none.' },
    error: {
      ...textOrNull,
      description:
        'Kind of the failure if there was no response: `refused` by the egress guard, `dns`, `connect`, `tls`, `timeout`, `reset`, `protocol`.',
    },
    message: { ...textOrNull, description: 'Message for people.' },
    latencyMs: {
      type: 'integer',
      description: 'Milliseconds until the header section of the response, or until the failure.',
    },
    responseSnippet: { type: 'string', description: 'The beginning of the response content.' },
    trigger: { enum: ['automatic', 'manual'] },
    at: { type: 'string', format: 'date-time' },
    timing: {
      type: 'object',
      description:
        'Milliseconds of each phase; null for a phase that did not happen, such as `connectMs` on a reused connection.',
      properties: {
        dnsMs: ms('Resolution of the name.'),
        connectMs: ms('Opening of the connection.'),
        tlsMs: ms('TLS handshake.'),
        firstByteMs: ms('From the request to the first octet of the response.'),
        totalMs: { type: 'number' },
      },
    },
    responseHeaders: {
      type: 'array',
      description: 'The first response fields, as pairs of name and value.',
      items: { type: 'array', items: { type: 'string' }, minItems: 2, maxItems: 2 },
    },
    protocol: { ...textOrNull, description: '`http/1.1` or `h2`.' },
    reused: { type: ['boolean', 'null'], description: '`true`: the attempt reused an open connection.' },
    cut: {
      enum: ['long', 'slow', 'broken', null],
      description: 'Why Comity did not read the content to its end.',
    },
  },
  required: ['number', 'statusCode', 'error', 'latencyMs', 'responseSnippet', 'trigger', 'at'],
};

const attemptExample: Item = {
  number: 1,
  statusCode: 204,
  error: null,
  message: null,
  latencyMs: 38,
  responseSnippet: '',
  trigger: 'automatic',
  at: '2026-08-01T09:30:00.000Z',
  timing: { dnsMs: 2.1, connectMs: 9.4, tlsMs: 17.2, firstByteMs: 8.8, totalMs: 37.9 },
  responseHeaders: [['content-length', '0']],
  protocol: 'http/1.1',
  reused: false,
  cut: null,
};

const attemptsDocumentation: AttemptsDocumentation = {
  name: 'Attempt',
  of: 'Id of the delivery.',
  summary: 'List the attempts of a delivery',
  pageDescription: 'A page of attempts.',
  schema: attemptSchema,
  example: attemptExample,
};

/*
 * POST to `/deliveries/{id}/resend` (§6): makes the delivery due at once, whatever its state. Its schedule is
 * unchanged, so a failed resend costs no attempt. The response, 202, comes before the attempt.
 */

const resendInput = Type.Object({
  via: Type.Optional(
    Type.Literal('command-line', {
      description: 'Permits older deliveries (`COMITY_RESEND_COMMAND_LINE_SECONDS`).',
    }),
  ),
});

function resendResource(parts: SendingParts, served: Served): Resource {
  const { resendSeconds, resendCommandLineSeconds } = parts.settings;
  return actionResource(
    {
      ...onMember(served, 'resend', 'update', 'Id of the delivery.'),
      id: 'resendDelivery',
      summary: 'Resend a delivery',
      description:
        'Sends it immediately, regardless of its status. Scheduled retries stay scheduled. 409 if the delivery is too old, or if its event or its endpoint no longer exists.',
      input: { name: 'Resend', schema: resendInput, example: {}, optional: true },
      output: { schema: representationOf(served.collection) },
      answers: 'queued',
      codes: ['endpoint_unavailable', 'event_unavailable', 'resend_window_over'],
      changes: ({ captures }) => ({ table: served.collection.name, id: captures[0] ?? '' }),
      handler: (_ask, { via }, standing) =>
        resend(parts, served, standing, via === undefined ? resendSeconds : resendCommandLineSeconds),
    },
    parts.settings,
  );
}

async function resend(
  { wakes, directory }: SendingParts,
  served: Served,
  { row, id }: MemberStanding,
  windowSeconds: number,
): Promise<Done> {
  const { store, clock, collection, path } = served;
  if (row === undefined) throw new Error('a resend requires the row of its delivery');
  const current = JSON.parse(row.doc) as Delivery;
  const at = timeAfter(clock, row.updatedAt);
  const refused = await resendRefusal(store, directory, current, row, at, windowSeconds);
  if (refused !== undefined) return refused;
  const asked = dueAtOnce(current, at);
  const { endpointId } = asked;
  const next = keptRow(deliveryDocument(asked), row.owner, row.createdAt, at);
  const change = { table: collection.name, id, expect: { rev: row.rev }, next };
  const commit = await tryCommit(store, {
    changes: [change, ...wakes.changesFor(endpointId, id)],
    events: [],
  });
  if (commit instanceof Overtaken) return commit;
  wakes.announce([endpointId], id);
  return { content: asked, queued: `${path}/${id}` };
}

/**
 * An attempt is by schedule if `dueAt` equals `nextAttemptAt` (model/delivery.ts), so a request at that time is due one
 * millisecond earlier.
 */
function dueAtOnce(current: Delivery, at: number): Delivery {
  const now = new Date(at).toISOString();
  const dueAt = now === current.nextAttemptAt ? new Date(at - 1).toISOString() : now;
  return { ...current, status: 'pending', dueAt, updatedAt: now };
}

async function resendRefusal(
  store: Store,
  directory: SendingParts['directory'],
  { endpointId, eventId, eventType: type }: Delivery,
  { createdAt }: Row,
  at: number,
  windowSeconds: number,
): Promise<Done | undefined> {
  if (at - createdAt > windowSeconds * 1000) return { refused: { code: 'resend_window_over' } };
  const endpoint = await store.read(endpointsCollection.name, endpointId);
  const status = endpoint === undefined ? 'gone' : readEndpoint(endpoint.doc).status;
  if (status !== 'enabled') {
    return { refused: { code: 'endpoint_unavailable', message: `the endpoint is ${status}` } };
  }
  const event = await store.read(eventsTable, eventId);
  if (event === undefined) return { refused: { code: 'event_unavailable' } };
  const mayReceive = await directory.mayReceive(endpointId, { ...event, id: eventId, type });
  const isOwned = directory.get(endpointId)?.principal !== undefined;
  if (mayReceive && isOwned) return undefined;
  const message = isOwned
    ? 'the owner of the endpoint may no longer read this event'
    : 'the owner of the endpoint was deleted or disabled';
  return { refused: { code: 'endpoint_unavailable', message } };
}

/*
 * GET `/deliveries/{id}/request` (§6.8): the request of a delivery as its next attempt sends it, made from the event as the owner of the
 * endpoint may see it now. Signatures, which are new for each attempt, and the values of the endpoint's own header fields are not shown.
 */

function sentRequestResource(parts: SendingParts, served: Served): Resource {
  return actionResource(
    {
      ...onMember(served, 'request', 'read', 'Id of the delivery.'),
      method: 'GET',
      name: 'SentRequest',
      id: 'readSentRequest',
      summary: 'Read the request of a delivery',
      description:
        'As the next attempt sends it. Signatures and times are new for each attempt; they and the values of the header fields of the endpoint are shown as `********`. 409 if the event or the endpoint no longer exists, or if the owner of the endpoint may no longer read the event.',
      output: { schema: requestSchema, example: requestExample },
      mayBeMissing: true,
      codes: ['endpoint_unavailable', 'event_unavailable'],
      handler: (_ask, _input, standing) => requestOf(parts, served, standing),
    },
    parts.settings,
  );
}

const pair: Item = { type: 'array', items: { type: 'string' }, minItems: 2, maxItems: 2 };
const requestSchema = named('SentRequest', {
  description: 'The request of a delivery.',
  type: 'object',
  properties: {
    method: { enum: ['POST'] },
    url: { type: 'string' },
    headers: { type: 'array', description: 'Header fields, as pairs of name and value.', items: pair },
    content: { type: 'string', description: 'The content, letter by letter.' },
  },
  required: ['method', 'url', 'headers', 'content'],
});

const hidden = '********';
const requestExample = {
  method: 'POST',
  url: 'https://shop.example/hooks',
  headers: [
    ['Content-Type', 'application/json'],
    ['webhook-id', 'evt_01k1jx7v2mh5s8b4c9d0e6f3ga'],
    ['webhook-timestamp', hidden],
    ['webhook-signature', hidden],
  ],
  content: '{"type":"products.created","timestamp":"2026-08-01T09:30:00.000Z","data":{}}',
};

async function requestOf(
  { directory, view }: SendingParts,
  { store }: Served,
  { row }: MemberStanding,
): Promise<Done> {
  if (row === undefined) throw new Error('the request of a delivery requires its row');
  const delivery = JSON.parse(row.doc) as Delivery;
  const found = await store.read(eventsTable, delivery.eventId);
  if (found === undefined || isExpunged(found.doc)) return { refused: { code: 'event_unavailable' } };
  const known = directory.get(delivery.endpointId);
  if (known === undefined)
    return { refused: { code: 'endpoint_unavailable', message: 'the endpoint is gone' } };
  const event = { doc: withoutCause(found.doc), owner: found.owner, createdAt: found.createdAt };
  const mayReceive = await directory.mayReceive(known.endpoint.id, {
    ...{ id: delivery.eventId, type: delivery.eventType, doc: event.doc, owner: event.owner },
  });
  const made = mayReceive ? madeRequest(view, delivery, event, known) : undefined;
  if (made === undefined || typeof made === 'string') {
    const message = made ?? 'the owner of the endpoint may no longer read this event';
    return { refused: { code: 'endpoint_unavailable', message } };
  }
  return { content: made };
}

type MadeRequest = {
  readonly method: string;
  readonly url: string;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly content: string;
};

/** Signs with no key at all. */
const unsigned = createStandardMessages({ sign: async () => [] });

/** @returns a text: why there is none; undefined: the owner may no longer read the event */
function madeRequest(
  view: ViewOf,
  delivery: Delivery,
  event: SentEvent,
  { endpoint, principal, headers, url }: KnownEndpoint,
): MadeRequest | string | undefined {
  if (principal === undefined) return undefined;
  const seen = view(principal)?.(delivery.eventType, event.doc, event.owner) ?? event.doc;
  const shape = shapeOf(endpoint);
  const shaped = shape === undefined ? { doc: seen } : shape(seen);
  if (shaped === undefined) return 'the template of the endpoint makes too large a body';
  const { scheme } = endpoint;
  const body =
    scheme === 'standard'
      ? unsigned(event, delivery.eventType, shaped)?.body
      : Buffer.from(shaped.text ?? shaped.doc);
  if (body === undefined) return undefined;
  const signed = { delivery, body, keys: [], timestamp: 0 };
  const fields = signedFields[scheme](signed, delivery.eventId);
  return {
    method: 'POST',
    url: String(url),
    headers: [
      ['Content-Type', 'application/json'],
      ...pairsOf(fields).map(([name, value]) => [name, changing.test(name) ? hidden : value] as const),
      ...Object.keys(headers ?? {}).map((name) => [name, hidden] as const),
    ],
    content: body.toString(),
  };
}

/** The names of fields that differ between attempts. */
const changing = /signature|timestamp/i;

function pairsOf(fields: readonly string[]): readonly (readonly [name: string, value: string])[] {
  return Array.from({ length: fields.length / 2 }, (_, at) => [
    fields[2 * at] ?? '',
    fields[2 * at + 1] ?? '',
  ]);
}
