/** What the resources of received messages take and answer besides the messages, as in resources/webhooks/received. */
import { type Item, ref } from '../item.ts';

const count: Item = { type: 'integer', minimum: 0 };

export const replaySchema: Item = {
  type: 'object',
  properties: {
    filter: { type: 'object', description: 'As in the JSON of a QUERY; `{}` finds all.' },
    q: { type: 'string', description: 'As there. The inbox has no text to search.' },
    limit: { type: 'integer', minimum: 1, maximum: 1_000_000, description: 'Messages at most.' },
    dryRun: { type: 'boolean', description: 'Counts what would be found.' },
  },
  required: ['filter'],
  additionalProperties: false,
};

export const replayedSchema: Item = {
  type: 'object',
  properties: {
    dryRun: { type: 'boolean' },
    replayed: { ...count, description: 'Messages that are handed on again; in a dry run, that were found.' },
    skipped: { ...count, description: 'Messages whose body or sender is gone, or that changed meanwhile.' },
    more: { type: 'boolean', description: 'Whether to ask again.' },
    lastId: { type: ['string', 'null'], description: 'The last message that was looked at.' },
  },
  required: ['dryRun', 'replayed', 'skipped', 'more', 'lastId'],
};

export const attemptSchema: Item = {
  description: 'One attempt to hand a message on.',
  type: 'object',
  properties: {
    number: { type: 'integer', minimum: 1 },
    outcome: { enum: ['processed', 'failed'] },
    error: {
      type: ['string', 'null'],
      description:
        'Kind of the failure: `thrown`, `timeout`, `unprocessable`, `thread-ended`, `refused`, `status`, or why nobody was reached.',
    },
    message: { type: ['string', 'null'], description: 'The same for people.' },
    statusCode: { type: ['integer', 'null'], description: 'Of who it was forwarded to.' },
    trigger: { enum: ['automatic', 'manual'] },
    at: { type: 'string', format: 'date-time' },
    durationMs: { type: 'number' },
  },
  required: ['number', 'outcome', 'error', 'message', 'statusCode', 'trigger', 'at', 'durationMs'],
};

export const attemptsSchema: Item = {
  description: 'A page of attempts to hand a message on.',
  type: 'object',
  properties: {
    items: { type: 'array', items: ref('schemas', 'ReceivedAttempt') },
    nextCursor: { type: ['string', 'null'] },
  },
  required: ['items', 'nextCursor'],
};

export const attemptExample: Item = {
  number: 1,
  outcome: 'failed',
  error: 'thrown',
  message: 'no product has the sku K-7',
  statusCode: null,
  trigger: 'automatic',
  at: '2026-08-01T09:30:00.000Z',
  durationMs: 12,
};
