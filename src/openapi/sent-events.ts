/**
 * The member `webhooks` of the document (OpenAPI 3.1 and later): the requests that receivers get, one entry for each
 * type of event. The body has one of two shapes, by the endpoint's scheme (§2.6, §2.7). The signature fields (§5.6), the same
 * for all, are once under `x-webhook-headers`.
 */
import { type CollectionNames, type Item, pascalCase } from '../kernel/documentation.ts';
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
  /** See `Tag`. */
  readonly audience?: 'operator';
};

export function sentEvents(
  eventTypes: readonly DescribedEventType[],
  names: ReadonlyMap<string, CollectionNames>,
  components: Components,
): Item {
  const envelopes = {
    event: components.add('schemas', 'EventEnvelope', eventEnvelope),
    message: components.add('schemas', 'StandardMessage', standardMessage),
  };
  const responses = {
    '2XX': components.add('responses', 'Received', {
      description: 'Received. Comity ignores the content of the response.',
    }),
    default: components.add('responses', 'NotReceived', {
      description: 'Not received: Comity retries by the schedule of the endpoint.',
    }),
  };
  return Object.fromEntries(
    eventTypes.map((eventType) => {
      const { type, description, sample } = eventType;
      const object = objectSchema(eventType, names, components);
      // The others of the collection have the same object.
      const isShown = eventType.collection === undefined || type.endsWith('.created');
      const schema = {
        oneOf: [
          {
            allOf: [
              envelopes.event,
              only(type, { type: 'object', properties: { object }, required: ['object'] }),
            ],
          },
          { allOf: [envelopes.message, only(type, object)] },
        ],
      };
      const post = {
        operationId: `on${pascalCase(type)}`,
        summary: type,
        ...(description === '' ? {} : { description }),
        tags: ['events'],
        requestBody: {
          required: true,
          content: {
            'application/json': {
              schema,
              ...(isShown && sample !== undefined ? { example: exampleOf(type, sample) } : {}),
            },
          },
        },
        responses,
        // The receiver authenticates a delivery by its signature; the request has no credential.
        security: [],
      };
      return [type, { post }];
    }),
  );
}

/** Schemas of resources are references to the components. */
function objectSchema(
  { type, collection, schema }: DescribedEventType,
  names: ReadonlyMap<string, CollectionNames>,
  components: Components,
): Item {
  const named = collection === undefined ? undefined : names.get(collection.name);
  if (named !== undefined) return ref('schemas', named.singular);
  if (schema === undefined) return { type: 'object' };
  return components.intern('schemas', `${pascalCase(type)}Object`, schema, () => schema);
}

function only(type: string, data: Item): Item {
  return { type: 'object', properties: { type: { const: type }, data }, required: ['type', 'data'] };
}

const eventEnvelope: Item = {
  description: 'An event as the schemes `timestamped` and `plain` send it.',
  type: 'object',
  properties: {
    id: { type: 'string' },
    object: { const: 'event' },
    created: { type: 'integer', description: 'Unix time in seconds.' },
    tenant: { type: 'string' },
  },
  required: ['id', 'object', 'created'],
};

const standardMessage: Item = {
  description: 'An event as the scheme `standard` sends it.',
  type: 'object',
  properties: { timestamp: { type: 'string', format: 'date-time', description: 'Time of the event.' } },
  required: ['timestamp'],
};

function exampleOf(type: string, sample: Item): Item {
  return {
    id: 'evt_01k1jx7v2mh5s8b4c9d0e6f3ga',
    object: 'event',
    type,
    created: 1_785_576_600,
    data: { object: sample },
  };
}

const field = (name: string, description: string) =>
  [name, { description, schema: { type: 'string' } }] as const;

export const signatureFields: Item = Object.fromEntries([
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
]);
