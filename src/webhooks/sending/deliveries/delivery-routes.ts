/** `/deliveries`: the log of deliveries (§3, §6), a read-only collection. resend.ts sends a delivery again. */

import type { CollectionOperation, Item } from '../../../kernel/documentation.ts';
import {
  type ServedCollection,
  type Serving,
  serveCollection,
} from '../../../resources/collection/serving.ts';
import { type AttemptsDocumentation, attemptsResource } from '../../routes/attempt-routes.ts';
import { attemptsTable, deliveriesCollection } from '../sending-tables.ts';
import type { DeliveryResourcesOptions } from './delivery-route-options.ts';
import { resendResource } from './resend.ts';

const operations: ReadonlySet<CollectionOperation> = new Set(['list', 'query', 'read']);

export function deliveryResources(options: DeliveryResourcesOptions, serving: Serving): ServedCollection {
  const plain = serveCollection(serving, deliveriesCollection, {
    announced: false,
    operations,
    documentation: {
      names: { singular: 'Delivery', plural: 'Deliveries', one: 'a delivery', many: 'deliveries' },
      idPrefix: 'dlv_',
    },
  });
  const { contentLimits, validationErrorsMax } = serving;
  const limits = { ...contentLimits, validationErrorsMax };
  return {
    ...plain,
    resources: [
      ...plain.resources,
      attemptsResource(plain.served, attemptsTable, serving.queryLimits.listLimitMax, documentation),
      resendResource(options, plain.served, limits),
    ],
  };
}

const ms = (description: string): Item => ({ type: ['number', 'null'], description });
const textOrNull: Item = { type: ['string', 'null'] };

/* The resource `/deliveries/{id}/attempts`: the attempts of a delivery, oldest first. */
const attemptSchema: Item = {
  description: 'One attempt to deliver.',
  type: 'object',
  properties: {
    number: { type: 'integer', minimum: 1 },
    statusCode: { type: ['integer', 'null'], description: 'Of the answer; null where none came.' },
    error: {
      ...textOrNull,
      description:
        'Why no answer came: `refused` by the address guard, `dns`, `connect`, `tls`, `timeout`, `reset`, `protocol`.',
    },
    message: { ...textOrNull, description: 'The same for people.' },
    latencyMs: { type: 'integer', description: 'To the header section of the answer, or to the failure.' },
    responseSnippet: { type: 'string', description: 'The beginning of the answer’s content.' },
    trigger: { enum: ['automatic', 'manual'] },
    at: { type: 'string', format: 'date-time' },
    timing: {
      type: 'object',
      description:
        'Parts of the time; null where a part did not happen, as on a connection that stood already.',
      properties: {
        dnsMs: ms('Name to address.'),
        connectMs: ms('To the connection.'),
        tlsMs: ms('To the end of the TLS handshake.'),
        firstByteMs: ms('From the request to the first octet of the answer.'),
        totalMs: { type: 'number' },
      },
    },
    responseHeaders: {
      type: 'array',
      description: 'Names and values, the first ones.',
      items: { type: 'array', items: { type: 'string' }, minItems: 2, maxItems: 2 },
    },
    protocol: { ...textOrNull, description: '`http/1.1` or `h2`.' },
    reused: { type: ['boolean', 'null'], description: 'Whether the connection stood already.' },
    cut: { enum: ['long', 'slow', 'broken', null], description: 'Why the content was not read to its end.' },
  },
  required: ['number', 'statusCode', 'error', 'latencyMs', 'responseSnippet', 'trigger', 'at'],
};

const attemptExample: Item = {
  number: 1,
  statusCode: 204,
  error: null,
  message: null,
  latencyMs: 38,
  responseSnippet: '',
  trigger: 'automatic',
  at: '2026-08-01T09:30:00.000Z',
  timing: { dnsMs: 2.1, connectMs: 9.4, tlsMs: 17.2, firstByteMs: 8.8, totalMs: 37.9 },
  responseHeaders: [['content-length', '0']],
  protocol: 'http/1.1',
  reused: false,
  cut: null,
};

const documentation: AttemptsDocumentation = {
  name: 'Attempt',
  noun: 'the attempts of a delivery',
  of: 'Of the delivery.',
  summary: 'What was tried, and what came of it',
  pageDescription: 'A page of attempts.',
  schema: attemptSchema,
  example: attemptExample,
};
