/** The event log (§6): as a list, one by one, and as a stream. */
import type { Field, Fields } from '../model/field.ts';
import type { Components } from './components.ts';
import { type Item, ref } from './item.ts';
import { type ListLimits, listParameters } from './list-parameters.ts';
import type { Description } from './operation.ts';
import type { PathDescription } from './path-item.ts';
import { pathParameter } from './path-parameter.ts';
import { plainRead } from './traits.ts';

/** What a client may filter and sort events by; test/openapi holds it to resources/events/visibility.ts. */
const eventFields: Fields = new Map(
  (
    [
      { name: 'id', path: ['id'], type: 'string' },
      { name: 'type', path: ['type'], type: 'string' },
      { name: 'created', path: ['created'], type: 'integer' },
      { name: 'data.object.id', path: ['data', 'object', 'id'], type: 'string' },
      { name: 'object', path: ['object'], type: 'string' },
      { name: 'data', path: ['data'], type: 'json' },
    ] satisfies Field[]
  ).map((field) => [field.name, field] as const),
);

export function eventPaths(
  base: string,
  limits: ListLimits,
  components: Components,
  post?: Description,
): readonly PathDescription[] {
  const event = components.add('schemas', 'Event', {
    description: 'Something that happened (§2.6).',
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
  const example = {
    id: 'evt_01k1jx7v2mh5s8b4c9d0e6f3ga',
    object: 'event',
    type: 'products.created',
    created: 1_785_576_600,
    data: { object: { id: '01k1jx7v2mq7w1z5x3r8t2y6pb' } },
  };
  const page = components.add('schemas', 'EventLog', {
    description: 'A page of the log.',
    type: 'object',
    properties: {
      items: { type: 'array', items: ref('schemas', 'Event') },
      nextCursor: { type: ['string', 'null'] },
    },
    required: ['items', 'nextCursor'],
  });
  return [
    {
      path: `${base}/events`,
      name: 'Events',
      noun: 'the events',
      operations: [logOperation(limits, components, page, example), ...(post === undefined ? [] : [post])],
    },
    {
      path: `${base}/events/{id}`,
      name: 'Event',
      noun: 'an event',
      parameters: [pathParameter('id', 'Of the event.')],
      operations: [
        {
          id: 'readEvent',
          tag: 'events',
          summary: 'Read an event',
          traits: { ...plainRead, mayBeMissing: true, mayBeHidden: true },
          content: { representation: { 'application/json': { schema: event, example } } },
        },
      ],
    },
  ];
}

function logOperation(limits: ListLimits, components: Components, page: Item, example: Item): Description {
  // OpenAPI 3.2 describes each item of a stream; the 3.1 view falls back on text.
  const itemSchema = {
    type: 'object',
    properties: {
      id: { type: 'string' },
      event: { type: 'string' },
      data: { type: 'string', contentMediaType: 'application/json', contentSchema: ref('schemas', 'Event') },
    },
    required: ['id', 'event', 'data'],
  };
  return {
    id: 'listEvents',
    tag: 'events',
    summary: 'List or follow events',
    description:
      '`Accept: text/event-stream` follows the log as it grows, from Last-Event-ID or from now on. Only events about resources that the caller may read are shown.',
    traits: { ...plainRead, streams: true, proposalCodes: ['query_parameter_invalid'] },
    parameters: listParameters({ fields: eventFields, searched: false }, limits, components),
    preferences: ['count=exact'],
    content: {
      representation: {
        'application/json': { schema: page, example: { items: [example], nextCursor: null } },
      },
      stream: { 'text/event-stream': { itemSchema } },
    },
    representationFields: ['Link', 'X-Total-Count'],
  };
}
