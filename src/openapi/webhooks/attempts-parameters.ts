/** How attempts are paged, of deliveries and of received messages. */
import type { Item } from '../item.ts';
import type { ListLimits } from '../list-parameters.ts';

/** As resources/webhooks/attempts/resource.ts has it. */
const limitDefault = 200;

export function attemptsParameters({ listLimitMax }: Pick<ListLimits, 'listLimitMax'>): readonly Item[] {
  const schema = { type: 'integer', minimum: 1, maximum: listLimitMax };
  return [
    {
      name: 'limit',
      in: 'query',
      description: 'Attempts on a page.',
      schema: { ...schema, default: Math.min(limitDefault, listLimitMax) },
    },
    {
      name: 'cursor',
      in: 'query',
      description: '`nextCursor` of a page: goes on after it.',
      schema: { type: 'string', minLength: 1 },
    },
  ];
}
