/** `/received/{id}/attempts`: the attempts to hand on a message, oldest first. */

import type { Item } from '../../../kernel/documentation.ts';
import type { Resource } from '../../../kernel/resource.ts';
import type { Served } from '../../../resources/collection/served.ts';
import { type AttemptsDocumentation, attemptsResource } from '../../routes/attempt-routes.ts';
import { receivedAttemptsTable } from '../received-tables.ts';

export function receivedAttemptsResource(served: Served, limitMax: number): Resource {
  return attemptsResource(served, receivedAttemptsTable, limitMax, documentation);
}

const attemptSchema: Item = {
  description: 'One attempt to hand on a message.',
  type: 'object',
  properties: {
    number: { type: 'integer', minimum: 1 },
    outcome: { enum: ['processed', 'failed'] },
    error: {
      type: ['string', 'null'],
      description:
        'Kind of the failure: `thrown`, `timeout`, `unprocessable`, `thread-ended`, `refused`, `status`, or the kind of connection failure.',
    },
    message: { type: ['string', 'null'], description: 'Message for people.' },
    statusCode: {
      type: ['integer', 'null'],
      description: 'Status of the response to the forwarded message.',
    },
    trigger: { enum: ['automatic', 'manual'] },
    at: { type: 'string', format: 'date-time' },
    durationMs: { type: 'number' },
  },
  required: ['number', 'outcome', 'error', 'message', 'statusCode', 'trigger', 'at', 'durationMs'],
};

const attemptExample: Item = {
  number: 1,
  outcome: 'failed',
  error: 'thrown',
  message: 'no product has the sku K-7',
  statusCode: null,
  trigger: 'automatic',
  at: '2026-08-01T09:30:00.000Z',
  durationMs: 12,
};

const documentation: AttemptsDocumentation = {
  name: 'ReceivedAttempt',
  noun: 'the attempts to hand on a message',
  of: 'Id of the message.',
  summary: 'List the attempts to hand on a message',
  pageDescription: 'A page of attempts to hand on a message.',
  schema: attemptSchema,
  example: attemptExample,
};
