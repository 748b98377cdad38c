/** `/deliveries`: the log of deliveries (§3, §6), a read-only collection. resend.ts sends a delivery again. */
import type { CollectionOperation, Item } from '../../../kernel/documentation.ts';
import {
  type ServedCollection,
  type Serving,
  serveCollection,
} from '../../../resources/collection/serving.ts';
import { type AttemptsDocumentation, attemptsResource } from '../../routes/attempt-routes.ts';
import type { SendingParts } from '../sending-parts.ts';
import { attemptsTable, deliveriesCollection } from '../sending-tables.ts';
import { resendResource } from './resend.ts';
import { sentRequestResource } from './sent-request.ts';

const operations: ReadonlySet<CollectionOperation> = new Set(['list', 'query', 'read']);

export function deliveryResources(parts: SendingParts, serving: Serving): ServedCollection {
  const plain = serveCollection(serving, deliveriesCollection, {
    announced: false,
    operations,
    documentation: {
      names: { singular: 'Delivery', plural: 'Deliveries', one: 'a delivery', many: 'deliveries' },
      idPrefix: 'dlv_',
    },
  });
  return {
    ...plain,
    resources: [
      ...plain.resources,
      attemptsResource(plain.served, attemptsTable, serving.queryLimits.listLimitMax, documentation),
      resendResource(parts, plain.served),
      sentRequestResource(parts, plain.served),
    ],
  };
}

const ms = (description: string): Item => ({ type: ['number', 'null'], description });
const textOrNull: Item = { type: ['string', 'null'] };

/* The resource `/deliveries/{id}/attempts`: the attempts of a delivery, oldest first. */
const attemptSchema: Item = {
  description: 'One attempt to send a delivery.',
  type: 'object',
  properties: {
    number: { type: 'integer', minimum: 1 },
    statusCode: { type: ['integer', 'null'], description: 'Status of the response; null if there was none.' },
    error: {
      ...textOrNull,
      description:
        'Kind of the failure if there was no response: `refused` by the egress guard, `dns`, `connect`, `tls`, `timeout`, `reset`, `protocol`.',
    },
    message: { ...textOrNull, description: 'Message for people.' },
    latencyMs: {
      type: 'integer',
      description: 'Milliseconds until the header section of the response, or until the failure.',
    },
    responseSnippet: { type: 'string', description: 'The beginning of the response content.' },
    trigger: { enum: ['automatic', 'manual'] },
    at: { type: 'string', format: 'date-time' },
    timing: {
      type: 'object',
      description:
        'Milliseconds of each phase; null for a phase that did not happen, such as `connectMs` on a reused connection.',
      properties: {
        dnsMs: ms('Resolution of the name.'),
        connectMs: ms('Opening of the connection.'),
        tlsMs: ms('TLS handshake.'),
        firstByteMs: ms('From the request to the first octet of the response.'),
        totalMs: { type: 'number' },
      },
    },
    responseHeaders: {
      type: 'array',
      description: 'The first response fields, as pairs of name and value.',
      items: { type: 'array', items: { type: 'string' }, minItems: 2, maxItems: 2 },
    },
    protocol: { ...textOrNull, description: '`http/1.1` or `h2`.' },
    reused: { type: ['boolean', 'null'], description: '`true`: the attempt reused an open connection.' },
    cut: {
      enum: ['long', 'slow', 'broken', null],
      description: 'Why Comity did not read the content to its end.',
    },
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
  of: 'Id of the delivery.',
  summary: 'List the attempts of a delivery',
  pageDescription: 'A page of attempts.',
  schema: attemptSchema,
  example: attemptExample,
};
