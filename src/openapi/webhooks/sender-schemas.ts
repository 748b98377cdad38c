/** What the resources of senders take and answer, as in resources/webhooks/senders. */
import { secretCharactersMax } from '../../config/senders/secret-rule.ts';
import type { Item } from '../item.ts';

const use: Item = { enum: ['receive', 'forward'] };

/** @param overlapSecondsMax the setting */
export function rotationSchema(overlapSecondsMax: number): Item {
  return {
    type: 'object',
    properties: {
      overlapSeconds: {
        type: 'integer',
        minimum: 0,
        maximum: overlapSecondsMax,
        description: 'How long the secrets that it replaces are good beside it. 0 where it is left out.',
      },
      secret: {
        type: 'string',
        minLength: 1,
        maxLength: secretCharactersMax,
        pattern: '^[^\\u0000-\\u001f\\u007f]+$',
        description: 'One that the sender gave. Made by the server where it is left out.',
      },
      use: {
        ...use,
        description:
          '`receive`: what the sender signs with; `forward`: what its messages are forwarded with.',
      },
    },
    additionalProperties: false,
  };
}

export const rotatedSchema: Item = {
  type: 'object',
  properties: { sender: { type: 'string' }, use, secret: { type: 'string' } },
  required: ['sender', 'use', 'secret'],
};

const secrets: Item = {
  secretSource: {
    enum: ['environment', 'store'],
    description: '`environment`: set by the variable; `store`: made here and kept.',
  },
  secretVariable: { type: 'string', description: 'The variable that sets it, or would.' },
  secretCount: { type: 'integer', minimum: 0, description: 'Secrets that are good now.' },
  oldSecretsUntil: {
    type: ['string', 'null'],
    format: 'date-time',
    description: 'When the last of those that are being replaced is over.',
  },
};
const secretNames = Object.keys(secrets);

const signature: Item = {
  oneOf: [
    {
      type: 'object',
      properties: {
        kind: { const: 'hmac' },
        header: { type: 'string' },
        hash: { enum: ['sha1', 'sha256', 'sha512'] },
        encoding: { enum: ['hex', 'base64'] },
        toleranceSeconds: { type: 'integer', minimum: 0, description: '0: any time, or none is signed.' },
      },
      required: ['kind', 'header', 'hash', 'encoding', 'toleranceSeconds'],
    },
    {
      type: 'object',
      properties: { kind: { const: 'token' }, header: { type: 'string' } },
      required: ['kind', 'header'],
    },
  ],
};

const handOn: Item = {
  description: 'What becomes of its messages; `inbox`: they wait to be marked.',
  oneOf: [
    { type: 'object', properties: { kind: { enum: ['handler', 'inbox'] } }, required: ['kind'] },
    {
      type: 'object',
      properties: {
        kind: { const: 'forward' },
        url: { type: 'string', description: 'Without credentials and query.' },
        scheme: { enum: ['standard', 'timestamped', 'plain'] },
        ...secrets,
      },
      required: ['kind', 'url', 'scheme', ...secretNames],
    },
  ],
};

export const senderSchema: Item = {
  description: 'A declared sender of webhooks.',
  type: 'object',
  properties: {
    name: { type: 'string' },
    description: { type: 'string' },
    preset: { type: ['string', 'null'] },
    path: { type: 'string', description: 'Where it posts.' },
    signature,
    handOn,
    schedule: {
      type: 'array',
      items: { type: 'number' },
      description: 'Seconds from each failed attempt to hand a message on to the next.',
    },
    inFlightMax: { type: ['integer', 'null'], description: 'Null: as the setting says.' },
    ...secrets,
  },
  required: [
    ...['name', 'description', 'preset', 'path', 'signature', 'handOn', 'schedule', 'inFlightMax'],
    ...secretNames,
  ],
};

export const senderExample: Item = {
  name: 'billing',
  description: 'Payments of the shop.',
  preset: 'timestamped',
  path: '/api/v1/webhooks/billing',
  signature: {
    ...{ kind: 'hmac', header: 'service-signature', hash: 'sha256', encoding: 'hex' },
    toleranceSeconds: 300,
  },
  handOn: { kind: 'handler' },
  schedule: [5, 30, 120, 300, 1800, 7200, 18_000, 72_000],
  inFlightMax: null,
  secretSource: 'store',
  secretVariable: 'BILLING_WEBHOOK_SECRET',
  secretCount: 1,
  oldSecretsUntil: null,
};
