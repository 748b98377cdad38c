/**
 * POST to `/received/{id}/replay`: hands the message on again, whatever its state. The response, 202, comes first. The
 * process of the sender's lane notices the change of the table.
 */
import { Type } from 'typebox';
import { type ActionLimits, actionResource, type Done } from '../../../kernel/action.ts';
import { representationOf } from '../../../kernel/documentation.ts';
import type { Resource } from '../../../kernel/resource.ts';
import type { Received } from '../../../model/received.ts';
import { timeAfter } from '../../../resources/collection/row.ts';
import type { Served } from '../../../resources/collection/served.ts';
import { type MemberStanding, onMember } from '../../../resources/collection/standing.ts';
import { tryCommit } from '../../../store/lines.ts';
import { Overtaken } from '../../../store/store.ts';
import { contentGone, putBackChange, senderGone } from './put-back.ts';
import { keptContent } from './received-body.ts';
import type { ReceivedResourcesOptions } from './received-route-options.ts';

export function replayResource(
  options: ReceivedResourcesOptions,
  served: Served,
  limits: ActionLimits,
): Resource {
  return actionResource(
    {
      ...onMember(served, 'replay', 'update', 'Id of the message.'),
      noun: 'the replay of a received message',
      id: 'replayReceivedMessage',
      summary: 'Replay a message',
      description:
        'Regardless of its status: the message becomes pending and due immediately, and its schedule of retries restarts. 409 if its body or its sender no longer exists.',
      input: { name: 'ReceivedReplay', schema: Type.Object({}), example: {}, optional: true },
      output: { schema: representationOf(served.collection) },
      answers: 'queued',
      codes: ['content_unavailable', 'sender_unavailable'],
      changes: ({ captures }) => ({ table: served.collection.name, id: captures[0] ?? '' }),
      handler: (_ask, _input, standing) => replay(options, served, standing),
    },
    limits,
  );
}

async function replay(
  { senders }: ReceivedResourcesOptions,
  served: Served,
  { row, id }: MemberStanding,
): Promise<Done> {
  const { store, clock, collection, path } = served;
  if (row === undefined) throw new Error('a replay requires the row of its message');
  const current = JSON.parse(row.doc) as Received;
  const sender = senders.get(current.sender);
  if (sender === undefined) return { refused: senderGone };
  if ((await keptContent(store, current)) === undefined) return { refused: contentGone };
  const { change, received } = putBackChange(collection.name, row, sender, timeAfter(clock, row.updatedAt));
  const commit = await tryCommit(store, { changes: [change], events: [] });
  if (commit instanceof Overtaken) return commit;
  return { content: received, queued: `${path}/${id}` };
}
