/**
 * The member `webhooks` of the document (OpenAPI 3.1 and later): the requests that receivers get, one entry for each
 * type of event. The body has one of two shapes, by the endpoint's scheme (§2.6, §2.7); §5.6 has the signature fields.
 */

import type { CollectionNames, Item } from '../kernel/documentation.ts';
import { type Components, ref } from './components.ts';

/** A type of event that the program knows, from the list that it also serves. */
export type DescribedEventType = {
  readonly type: string;
  readonly description: string;
  /** The collection whose writes cause these events. */
  readonly collection: { readonly name: string } | undefined;
  /** Schema of `data.object`; undefined: any object. */
  readonly schema: Item | undefined;
  /** An example of `data.object`. */
  readonly sample: Item | undefined;
};

export function sentEvents(
  eventTypes: readonly DescribedEventType[],
  names: ReadonlyMap<string, CollectionNames>,
  components: Components,
): Item {
  const parameters = signatureFields.map((field) => components.add('parameters', field.name, field));
  return Object.fromEntries(
    eventTypes.map((eventType) => [
      eventType.type,
      { post: operation(eventType, objectSchema(eventType, names), parameters) },
    ]),
  );
}

/** Schemas of resources are references to the components. */
function objectSchema(
  { collection, schema }: DescribedEventType,
  names: ReadonlyMap<string, CollectionNames>,
): Item {
  const named = collection === undefined ? undefined : names.get(collection.name);
  return named === undefined ? (schema ?? { type: 'object' }) : ref('schemas', named.singular);
}

function operation(
  { type, description, sample }: DescribedEventType,
  object: Item,
  parameters: readonly Item[],
): Item {
  return {
    summary: type,
    ...(description === '' ? {} : { description }),
    tags: ['events'],
    parameters,
    requestBody: {
      required: true,
      content: {
        'application/json': {
          schema: { oneOf: [envelope(type, object), standardMessage(type, object)] },
          ...(sample === undefined ? {} : { example: exampleOf(type, sample) }),
        },
      },
    },
    responses: {
      '2XX': { description: 'Received. Comity ignores the content of the response.' },
      default: { description: 'Not received: Comity retries by the schedule of the endpoint.' },
    },
    // The receiver authenticates a delivery by its signature; the request has no credential.
    security: [],
  };
}

function envelope(type: string, object: Item): Item {
  return {
    title: 'Schemes timestamped and plain',
    type: 'object',
    properties: {
      id: { type: 'string' },
      object: { const: 'event' },
      type: { const: type },
      created: { type: 'integer', description: 'Unix time in seconds.' },
      tenant: { type: 'string' },
      data: { type: 'object', properties: { object }, required: ['object'] },
    },
    required: ['id', 'object', 'type', 'created', 'data'],
  };
}

function standardMessage(type: string, object: Item): Item {
  return {
    title: 'Scheme standard',
    type: 'object',
    properties: {
      type: { const: type },
      timestamp: { type: 'string', format: 'date-time', description: 'Time of the event.' },
      data: object,
    },
    required: ['type', 'timestamp', 'data'],
  };
}

function exampleOf(type: string, sample: Item): Item {
  return {
    id: 'evt_01k1jx7v2mh5s8b4c9d0e6f3ga',
    object: 'event',
    type,
    created: 1_785_576_600,
    data: { object: sample },
  };
}

const text: Item = { type: 'string' };
const field = (name: string, description: string) =>
  ({ name, in: 'header', description, schema: text }) as const;

const signatureFields = [
  field(
    'Service-Signature',
    'Scheme timestamped: `t=<Unix seconds>,v1=<hex>`, one `v1` for each active secret.',
  ),
  field('X-Hub-Signature-256', 'Scheme plain: `sha256=<hex>`.'),
  field('X-Hub-Signature-256-Previous', 'Scheme plain: the same for secrets that are being replaced.'),
  field('X-Service-Event', 'Scheme plain: the type of the event.'),
  field('X-Service-Delivery', 'Scheme plain: the id of the delivery, the same for every attempt.'),
  field('webhook-id', 'Scheme standard: the id of the event, the same for every attempt.'),
  field('webhook-timestamp', 'Scheme standard: Unix time of the attempt in seconds.'),
  field(
    'webhook-signature',
    'Scheme standard: `v1,<base64>` (HMAC-SHA256) for each active secret, and `v1a,<base64>` (Ed25519, keys at `/.well-known/jwks.json`) unless `signatures` of the endpoint lacks it.',
  ),
] as const;
