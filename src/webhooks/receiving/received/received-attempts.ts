/** `/received/{id}/attempts`: the attempts to hand on a message, oldest first. */

import type { Item } from '../../../kernel/documentation.ts';
import type { Resource } from '../../../kernel/resource.ts';
import { idField } from '../../../model/field.ts';
import { byId } from '../../../model/filter.ts';
import type { Served } from '../../../resources/collection/served.ts';
import type { MaybePromise } from '../../../store/store.ts';
import { whenKnown } from '../../../store/when-known.ts';
import {
  type AttemptsAsked,
  type AttemptsDocumentation,
  type AttemptsPage,
  attemptsResource,
} from '../../routes/attempt-routes.ts';
import { receivedAttemptsTable } from '../received-tables.ts';

/** Digits of the number in an id (webhooks/work/attempt-log.ts). */
const numberDigits = 6;

export function receivedAttemptsResource(served: Served, limitMax: number): Resource {
  return attemptsResource(served, limitMax, documentation, (id, asked) => attemptsOf(served, id, asked));
}

function attemptsOf(
  { store, pageBytesMax }: Pick<Served, 'store' | 'pageBytesMax'>,
  id: string,
  { afterNumber, limit }: AttemptsAsked,
): MaybePromise<AttemptsPage> {
  const after = `${id}/${String(afterNumber).padStart(numberDigits, '0')}`;
  const plan = store.plan({
    table: receivedAttemptsTable,
    filter: {
      op: 'and',
      filters: [
        { op: 'gt', field: idField, value: after },
        // `0` follows `/` in code point order, so this ends the range of ids that begin with `{id}/`.
        { op: 'lt', field: idField, value: `${id}0` },
      ],
    },
    sort: byId,
    limit,
    bytesMax: pageBytesMax,
  });
  return whenKnown(plan.page({ from: 'start' }), ({ docs, more }) => ({ docs, more }));
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
