/** Deliveries (§3, §6): the log as a collection, the attempts of one, and sending it again, as in resources/webhooks/deliveries. */

import { actionDescription } from '../accounts/action.ts';
import { collectionPaths } from '../collection-paths.ts';
import { type Item, ref } from '../item.ts';
import { memberTraits } from '../member-traits.ts';
import type { PathDescription } from '../path-item.ts';
import { pathParameter } from '../path-parameter.ts';
import { builtInNames } from '../schema-names.ts';
import { attemptsParameters } from './attempts-parameters.ts';
import type { WebhookSetting } from './webhook-setting.ts';

export function deliveryPaths(setting: WebhookSetting): readonly PathDescription[] {
  const { collections, base, limits, components } = setting;
  const { deliveries } = collections;
  const parameters = [pathParameter('id', 'Of the delivery.')];
  const { gate, mayBeMissing, mayBeHidden, mayBeClosed } = memberTraits(deliveries, 'update');
  const page = components.add('schemas', 'Attempts', attemptsSchema);
  components.add('schemas', 'Attempt', attemptSchema);
  return [
    ...collectionPaths(deliveries, builtInNames.deliveries, base, limits, components, {
      idPrefix: 'dlv_',
      operations: new Set(['list', 'query', 'read']),
    }),
    {
      path: `${base}/deliveries/{id}/attempts`,
      name: 'Attempts',
      noun: 'the attempts of a delivery',
      parameters,
      operations: [
        {
          id: 'listAttempts',
          tag: deliveries.name,
          summary: 'What was tried, and what came of it',
          description: 'Oldest first.',
          traits: { ...memberTraits(deliveries, 'read'), proposalCodes: ['query_parameter_invalid'] },
          parameters: attemptsParameters(limits),
          content: {
            representation: {
              'application/json': { schema: page, example: { items: [attemptExample], nextCursor: null } },
            },
          },
        },
      ],
    },
    {
      path: `${base}/deliveries/{id}/resend`,
      name: 'Resend',
      noun: 'sending a delivery again',
      parameters,
      operations: [
        actionDescription(
          {
            id: 'resendDelivery',
            tag: deliveries.name,
            summary: 'Send a delivery again',
            description:
              'At once, whatever became of it before. Retries that are still planned stay planned. 409 for one that is too old, and where its event or its endpoint is not there any more.',
            takes: ['Resend', resendContent],
            contentOptional: true,
            queues: true,
            answer: ref('schemas', builtInNames.deliveries.singular),
            traits: { gate, mayBeMissing, mayBeHidden, mayBeClosed },
            codes: ['endpoint_unavailable', 'event_unavailable', 'resend_window_over'],
          },
          components,
        ),
      ],
    },
  ];
}

const resendContent = {
  schema: {
    type: 'object',
    properties: {
      via: { const: 'command-line', description: 'Who asks by the command line may ask for older ones.' },
    },
    additionalProperties: false,
  },
  example: {},
};

const ms = (description: string): Item => ({ type: ['number', 'null'], description });
const textOrNull: Item = { type: ['string', 'null'] };

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

const attemptsSchema: Item = {
  description: 'A page of attempts.',
  type: 'object',
  properties: {
    items: { type: 'array', items: ref('schemas', 'Attempt') },
    nextCursor: { type: ['string', 'null'] },
  },
  required: ['items', 'nextCursor'],
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
