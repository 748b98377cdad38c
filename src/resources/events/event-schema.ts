/** The schema of an event (§2.6) in the OpenAPI document, for every resource that returns events. */

import { named, type Tag } from '../../kernel/documentation.ts';
import { actorKinds } from '../../model/actor.ts';

export const eventsTag: Tag = {
  name: 'events',
  description: 'The event log, as a list and as a stream.',
};

export const eventSchema = named('Event', {
  description: 'An event.',
  type: 'object',
  properties: {
    id: { type: 'string' },
    object: { const: 'event' },
    type: {
      type: 'string',
      description:
        '`{collection}.created`, `.updated` or `.deleted`; `endpoint.*`; or the type of a posted event.',
    },
    created: { type: 'integer', description: 'Unix time in seconds.' },
    actor: {
      type: 'object',
      description:
        'Who caused the event. Shown to administrators, to the principal itself, and, without `keyId`, to the readers of a collection that shows its actors.',
      properties: {
        kind: { enum: [...actorKinds] },
        id: {
          type: ['string', 'null'],
          description: 'Id of the principal, or name of the function; null for anonymous callers and Comity.',
        },
        keyId: { type: 'string', description: 'The API key that was used.' },
      },
      required: ['kind', 'id'],
    },
    requestId: {
      type: 'string',
      description:
        'The request that caused the event, as in the log. Shown to administrators and to its caller.',
    },
    tenant: { type: 'string', description: 'Tenant of the event, if it was posted for one.' },
    data: {
      type: 'object',
      properties: {
        object: {
          type: 'object',
          description: 'The resource at the time of the event, or the object of a posted event.',
        },
      },
      required: ['object'],
    },
  },
  required: ['id', 'object', 'type', 'created', 'data'],
});

export const eventExample = {
  id: 'evt_01k1jx7v2mh5s8b4c9d0e6f3ga',
  object: 'event',
  type: 'products.created',
  created: 1_785_576_600,
  data: { object: { id: '01k1jx7v2mq7w1z5x3r8t2y6pb' } },
};
