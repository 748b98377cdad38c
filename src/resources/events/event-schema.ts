/** The schema of an event (§2.6) in the OpenAPI document, for every resource that returns events. */
import { named, type Tag } from '../../kernel/documentation.ts';

export const eventsTag: Tag = {
  name: 'events',
  description: 'Everything that happened, as a list and as a stream.',
};

export const eventSchema = named('Event', {
  description: 'Something that happened.',
  type: 'object',
  properties: {
    id: { type: 'string' },
    object: { const: 'event' },
    type: {
      type: 'string',
      description: '`{collection}.created`, `.updated` or `.deleted`; `endpoint.*`; or as it was posted.',
    },
    created: { type: 'integer', description: 'Unix time in seconds.' },
    tenant: { type: 'string', description: 'Whom it concerns, where it was posted for a tenant.' },
    data: {
      type: 'object',
      properties: { object: { type: 'object', description: 'The resource as it then was.' } },
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
