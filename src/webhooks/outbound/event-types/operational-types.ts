/** Types of the events that the program itself makes about endpoints (§6), which nobody else may post. */
import type { PlainSchema } from '../../../config/plain-schema.ts';

type OperationalType = {
  readonly type: string;
  readonly description: string;
  readonly schema: PlainSchema;
  readonly sample: Readonly<Record<string, unknown>>;
};

const id = 'ep_01k1jx7v2mh5s8b4c9d0e6f3ga';
const text = { type: 'string' };
const properties = {
  id: { type: 'string', description: 'Of the endpoint.' },
  url: { type: 'string', description: 'Its origin; the path may hold a secret and is left out.' },
  status: { enum: ['enabled', 'disabled'] },
  disabledReason: { enum: ['gone', 'failing'] },
  failingSince: { type: 'string', format: 'date-time' },
  tenant: text,
};

export const operationalTypes: readonly OperationalType[] = [
  {
    type: 'endpoint.failing',
    description:
      'Nothing has been accepted by an endpoint for so long that it will be disabled unless that changes.',
    schema: { type: 'object', properties, required: ['id', 'status'], additionalProperties: true },
    sample: { id, url: 'https://shop.example', status: 'enabled', failingSince: '2026-08-01T09:30:00.000Z' },
  },
  {
    type: 'endpoint.disabled',
    description:
      'An endpoint is sent nothing any more, because it accepted nothing for long or because it said that it is gone.',
    schema: { type: 'object', properties, required: ['id', 'status'], additionalProperties: true },
    sample: { id, url: 'https://shop.example', status: 'disabled', disabledReason: 'gone' },
  },
  {
    type: 'endpoint.test',
    description: 'Sent to one endpoint by POST to its `/test`, to see whether it works.',
    schema: {
      type: 'object',
      properties: { id: properties.id, message: text },
      required: ['id'],
      additionalProperties: true,
    },
    sample: { id, message: 'A test.' },
  },
];
