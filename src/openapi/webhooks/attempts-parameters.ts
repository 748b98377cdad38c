/** How attempts are paged, of deliveries and of received messages. */
import type { Item } from '../item.ts';

/** As webhooks/outbound/attempt-row.ts has it. */
const attemptsPageMax = 200;

export const attemptsParameters: readonly Item[] = [
  {
    name: 'limit',
    in: 'query',
    description: 'Attempts on a page.',
    schema: { type: 'integer', minimum: 1, maximum: attemptsPageMax, default: attemptsPageMax },
  },
  {
    name: 'cursor',
    in: 'query',
    description: '`nextCursor` of a page: goes on after it.',
    schema: { type: 'string', minLength: 1 },
  },
];
