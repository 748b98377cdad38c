/** `comity deliveries`: deliveries of webhooks with their attempts. */
import { type Delivery, deliveryStatuses } from '../../model/delivery.ts';
import type { Attempt } from '../../webhooks/sending/settle-delivery.ts';
import type { ServerClient } from '../server-client.ts';
import { columns, lines, onOneLine } from '../table.ts';
import type { Call, Noun, Printed } from './remote-command.ts';

export const deliveries: Noun = {
  name: 'deliveries',
  description: 'list the deliveries of webhooks, and resend them',
  key: 'webhooks',
  thing: 'delivery',
  commands: [
    {
      name: 'list',
      description: 'list deliveries, the newest first',
      options: [
        ['--endpoint <id>', 'only those to one endpoint, ep_...', { member: 'endpointId' }],
        ['--status <status>', 'only those in one state', { member: 'status', choices: deliveryStatuses }],
        ['--event <id>', 'only those of one event, evt_...', { member: 'eventId' }],
        [
          '--type <type>',
          'only those of one type of event, such as products.created',
          { member: 'eventType' },
        ],
      ],
      request: 'GET /deliveries',
      lists: 'newest',
      table: columns<Delivery>({
        ID: 'id',
        'EVENT TYPE': 'eventType',
        ENDPOINT: 'endpointId',
        STATUS: 'status',
        ATTEMPTS: 'attemptCount',
        LAST: ({ lastStatusCode, lastError }) => lastStatusCode ?? lastError,
        'NEXT ATTEMPT': 'nextAttemptAt',
        CREATED: 'createdAt',
      }),
      none: 'No deliveries.',
    },
    {
      name: 'show',
      description: 'show one delivery with its attempts',
      arguments: [['<id>', 'id of the delivery, dlv_...']],
      request: 'GET /deliveries/{id}',
      print: (delivery: Delivery, { server }: Call) => withAttempts(server(), delivery),
    },
    {
      name: 'resend',
      description: 'retry deliveries at once, whatever their status; scheduled attempts stay',
      arguments: [['<id...>', 'ids of the deliveries, dlv_...']],
      help: '\nWorks for 30 days after a delivery was created. Exits 1 if one of them was refused.',
      request: 'POST /deliveries/{id}/resend',
      // The command line may resend for 30 days, other clients for 15 (§6).
      content: { via: 'command-line' },
      each: 'is resent.',
    },
  ],
};

/** A delivery has some dozens. */
const attemptsMax = 1000;

const deliveryLines = lines<Delivery>({
  id: 'id',
  event: ({ eventId, eventType }) => `${eventId} (${eventType})`,
  endpoint: 'endpointId',
  status: 'status',
  attempts: 'attemptCount',
  due: ({ dueAt, nextAttemptAt }) => (dueAt === nextAttemptAt ? null : dueAt),
  next: 'nextAttemptAt',
  created: 'createdAt',
  changed: 'updatedAt',
});

const attemptsText = columns<Attempt>({
  AT: 'at',
  TRIGGER: 'trigger',
  OUTCOME: ({ statusCode, error }) => statusCode ?? error,
  TOOK: ({ latencyMs }) => `${Math.round(latencyMs)} ms`,
  ANSWER: ({ statusCode, message, responseSnippet }) =>
    onOneLine(statusCode === null ? (message ?? '') : responseSnippet),
});

/** @param server undefined: none were made yet */
export async function withAttempts(server: ServerClient | undefined, delivery: Delivery): Promise<Printed> {
  const path = `/deliveries/${encodeURIComponent(delivery.id)}/attempts`;
  const attempts = (await server?.list<Attempt>(path, attemptsMax))?.items ?? [];
  const text = deliveryLines(delivery);
  return {
    json: { ...delivery, attempts },
    text: attempts.length === 0 ? text : `${text}\n\n${attemptsText(attempts)}`,
  };
}
