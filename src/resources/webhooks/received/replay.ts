/**
 * POST to `/received/{id}/replay`: the message is handed on again, whatever became of it before. The answer comes before that: 202. The
 * process that has the sender learns of it by the change of the table.
 */
import { Type } from 'typebox';
import { permission } from '../../../model/access.ts';
import type { Received } from '../../../model/received.ts';
import { tryCommit } from '../../../store/lines.ts';
import { Overtaken } from '../../../store/store.ts';
import { type ActionOptions, actionResource, type Done } from '../../action/action.ts';
import { timeAfter } from '../../collection/row.ts';
import type { Served } from '../../collection/served.ts';
import { type MemberStanding, memberStanding } from '../../collection/standing.ts';
import type { Resource } from '../../resource.ts';
import { keptContent } from './body.ts';
import type { ReceivedResourcesOptions } from './options.ts';
import { contentGone, putBackChange, senderGone } from './put-back.ts';

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
    changes: ({ captures }) => ({ table: served.collection.name, id: captures[0] ?? '' }),
    act: (_ask, _content, standing) => replay(options, served, standing),
  });
}

async function replay(
  { senders }: ReceivedResourcesOptions,
  served: Served,
  { row, id }: MemberStanding,
): Promise<Done> {
  const { store, clock, collection, path } = served;
  if (row === undefined) throw new Error('a replay of nothing');
  const stood = JSON.parse(row.doc) as Received;
  const sender = senders.get(stood.sender);
  if (sender === undefined) return { refused: senderGone };
  if ((await keptContent(store, stood)) === undefined) return { refused: contentGone };
  const { change, received } = putBackChange(collection.name, row, sender, timeAfter(clock, row.updatedAt));
  const commit = await tryCommit(store, { changes: [change], events: [] });
  if (commit instanceof Overtaken) return commit;
  return { content: received, queued: `${path}/${id}` };
}
