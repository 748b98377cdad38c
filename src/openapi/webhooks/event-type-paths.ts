/** Types of events (surface "Webhooks out"), as in resources/webhooks/event-types. */
import type { Components } from '../components.ts';
import { ref } from '../item.ts';
import { type ListLimits, pagingParameters } from '../list-parameters.ts';
import type { PathDescription } from '../path-item.ts';
import { pathParameter } from '../path-parameter.ts';
import { gateOf, plainRead } from '../traits.ts';

/** Who may ask for types and post events at all. */
export const webhookGate = gateOf([[{ bearing: 'webhooks', rule: 'principal' }, 'read']]);

const tag = 'event-types';

export function eventTypePaths(
  base: string,
  limits: ListLimits,
  components: Components,
): readonly PathDescription[] {
  const schema = components.add('schemas', 'EventType', {
    description: 'A type of event.',
    type: 'object',
    properties: {
      type: { type: 'string' },
      description: { type: 'string' },
      schema: { type: ['object', 'null'], description: 'JSON Schema of `data.object`; null: any object.' },
      sample: {
        anyOf: [ref('schemas', 'Event'), { type: 'null' }],
        description: 'An event of the type; null where none could be made.',
      },
    },
    required: ['type', 'description', 'schema', 'sample'],
  });
  const list = components.add('schemas', 'EventTypes', {
    description: 'A page of all that the caller may be told of.',
    type: 'object',
    properties: { items: { type: 'array', items: schema }, nextCursor: { type: ['string', 'null'] } },
    required: ['items', 'nextCursor'],
  });
  const traits = { ...plainRead, gate: webhookGate };
  return [
    {
      path: `${base}/event-types`,
      name: 'EventTypes',
      noun: 'the types of events',
      operations: [
        {
          id: 'listEventTypes',
          tag,
          summary: 'What endpoints can ask for',
          description: 'Each type with the schema of its object and a sample.',
          parameters: pagingParameters(limits, components),
          traits: { ...traits, proposalCodes: ['query_parameter_invalid'] },
          preferences: ['count=exact'],
          content: { representation: { 'application/json': { schema: list } } },
          representationFields: ['Link', 'X-Total-Count'],
        },
      ],
    },
    {
      path: `${base}/event-types/{type}`,
      name: 'EventType',
      noun: 'a type of event',
      parameters: [pathParameter('type', 'Such as `products.created`.')],
      operations: [
        {
          id: 'readEventType',
          tag,
          summary: 'Read a type of event',
          traits: { ...traits, mayBeMissing: true },
          content: { representation: { 'application/json': { schema } } },
        },
      ],
    },
  ];
}
