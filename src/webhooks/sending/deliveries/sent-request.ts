/**
 * GET `/deliveries/{id}/request` (§6.8): the request of a delivery as its next attempt sends it, made from the event as the owner of the
 * endpoint may see it now. Signatures, which are new for each attempt, and the values of the endpoint's own header fields are not shown.
 */
import { actionResource, type Done } from '../../../kernel/action.ts';
import { type Item, named } from '../../../kernel/documentation.ts';
import type { Resource } from '../../../kernel/resource.ts';
import { withoutCause } from '../../../model/actor.ts';
import type { Delivery } from '../../../model/delivery.ts';
import type { Served } from '../../../resources/collection/served.ts';
import { type MemberStanding, onMember } from '../../../resources/collection/standing.ts';
import { eventsTable } from '../../../store/store.ts';
import { messageId, plainFields, standardFields, timestampedFields } from '../../sent-headers.ts';
import type { KnownEndpoint } from '../known-endpoint.ts';
import type { ViewOf } from '../send-delivery.ts';
import type { SendingParts } from '../sending-parts.ts';
import { createStandardMessages, isExpunged, type SentEvent } from '../sent-event.ts';

export function sentRequestResource(parts: SendingParts, served: Served): Resource {
  return actionResource(
    {
      ...onMember(served, 'request', 'read', 'Id of the delivery.'),
      method: 'GET',
      name: 'SentRequest',
      noun: 'the request of a delivery',
      id: 'readSentRequest',
      summary: 'Read the request of a delivery',
      description:
        'As the next attempt sends it. Signatures and times are new for each attempt; they and the values of the header fields of the endpoint are shown as `********`. 409 if the event or the endpoint no longer exists, or if the owner of the endpoint may no longer read the event.',
      output: { schema, example },
      mayBeMissing: true,
      codes: ['endpoint_unavailable', 'event_unavailable'],
      handler: (_ask, _input, standing) => requestOf(parts, served, standing),
    },
    parts.settings,
  );
}

const pair: Item = { type: 'array', items: { type: 'string' }, minItems: 2, maxItems: 2 };
const schema = named('SentRequest', {
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
const example = {
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
  if (made === undefined) {
    const message = 'the owner of the endpoint may no longer read this event';
    return { refused: { code: 'endpoint_unavailable', message } };
  }
  return { content: made };
}

type Made = {
  readonly method: string;
  readonly url: string;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly content: string;
};

/** Signs with no key at all. */
const unsigned = createStandardMessages({ sign: async () => [] });

function madeRequest(
  view: ViewOf,
  delivery: Delivery,
  event: SentEvent,
  { endpoint, principal, headers, url }: KnownEndpoint,
): Made | undefined {
  if (principal === undefined) return undefined;
  const doc = view(principal)?.(delivery.eventType, event.doc, event.owner) ?? event.doc;
  const { scheme } = endpoint;
  const body = scheme === 'standard' ? unsigned(event, delivery.eventType, doc)?.body : Buffer.from(doc);
  if (body === undefined) return undefined;
  const signed = { delivery, body, keys: [], timestamp: 0 };
  const fields =
    scheme === 'standard'
      ? standardFields(signed, messageId(delivery.eventId), [])
      : scheme === 'plain'
        ? plainFields(signed)
        : timestampedFields(signed);
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
