/**
 * POST to `/received/{id}/replay`: the message is handed on again, whatever became of it before. The answer comes before that: 202. The
 * process that has the sender learns of it by the change of the table.
 */
import { Type } from 'typebox';
import { permission } from '../../../model/access.ts';
import type { Received } from '../../../model/received.ts';
import { type ActionOptions, actionResource, type Done } from '../../action/action.ts';
import { timeAfter } from '../../collection/row.ts';
import type { Served } from '../../collection/served.ts';
import { memberStanding } from '../../collection/standing.ts';
import type { Ask, Resource } from '../../resource.ts';
import { keptContent } from './body.ts';
import type { ReceivedResourcesOptions } from './options.ts';
import { contentGone, putBackChange, senderGone } from './put-back.ts';

/** How often a replay that lost a race begins again: against attempts, of which there is one at a time. */
const attemptsMax = 8;

export function replayResource(
  options: ReceivedResourcesOptions,
  served: Served,
  limits: ActionOptions['limits'],
): Resource {
  return actionResource({
    path: `${served.path}/{id}/replay`,
    schema: Type.Object({}),
    contentOptional: true,
    limits,
    permission: (principal) => permission(served.collection.access.update, 'update', principal),
    standing: (ask) => memberStanding(served, ask, 'update'),
    act: (ask) => replay(options, served, ask),
  });
}

async function replay({ senders }: ReceivedResourcesOptions, served: Served, ask: Ask): Promise<Done> {
  const { store, clock, collection, path } = served;
  for (let attempt = 0; attempt < attemptsMax; attempt += 1) {
    const { exists, permitted, row, id } = await memberStanding(served, ask, 'update');
    // Removed by retention since the request was let through.
    if (!exists || !permitted || row === undefined) return { refused: { code: 'not_found' } };
    const stood = JSON.parse(row.doc) as Received;
    const sender = senders.get(stood.sender);
    if (sender === undefined) return { refused: senderGone };
    if ((await keptContent(store, stood)) === undefined) return { refused: contentGone };
    const { change, received } = putBackChange(collection.name, row, sender, timeAfter(clock, row.updatedAt));
    const commit = await store.commit({ changes: [change], events: [] });
    if (commit.outcome === 'committed') return { content: received, queued: `${path}/${id}` };
  }
  return { refused: { code: 'unavailable' } };
}
