/**
 * POST to `/deliveries/{id}/resend` (§6): makes the delivery due at once, whatever its state. Its schedule is
 * unchanged, so a failed resend costs no attempt. The response, 202, comes before the attempt.
 */
import { Type } from 'typebox';
import { actionResource, type Done } from '../../../kernel/action.ts';
import { representationOf } from '../../../kernel/documentation.ts';
import type { Resource } from '../../../kernel/resource.ts';
import { type Delivery, deliveryDocument } from '../../../model/delivery.ts';
import { readEndpoint } from '../../../model/endpoint.ts';
import { timeAfter } from '../../../resources/collection/row.ts';
import type { Served } from '../../../resources/collection/served.ts';
import { type MemberStanding, onMember } from '../../../resources/collection/standing.ts';
import { tryCommit } from '../../../store/lines.ts';
import { eventsTable, keptRow, Overtaken, type Row, type Store } from '../../../store/store.ts';
import type { SendingParts } from '../sending-parts.ts';
import { endpointsCollection } from '../sending-tables.ts';

const schema = Type.Object({
  via: Type.Optional(
    Type.Literal('command-line', {
      description: 'Permits older deliveries (`COMITY_RESEND_COMMAND_LINE_SECONDS`).',
    }),
  ),
});

export function resendResource(parts: SendingParts, served: Served): Resource {
  const { resendSeconds, resendCommandLineSeconds } = parts.settings;
  return actionResource(
    {
      ...onMember(served, 'resend', 'update', 'Id of the delivery.'),
      noun: 'the resend of a delivery',
      id: 'resendDelivery',
      summary: 'Resend a delivery',
      description:
        'Sends it immediately, regardless of its status. Scheduled retries stay scheduled. 409 if the delivery is too old, or if its event or its endpoint no longer exists.',
      input: { name: 'Resend', schema, example: {}, optional: true },
      output: { schema: representationOf(served.collection) },
      answers: 'queued',
      codes: ['endpoint_unavailable', 'event_unavailable', 'resend_window_over'],
      changes: ({ captures }) => ({ table: served.collection.name, id: captures[0] ?? '' }),
      handler: (_ask, { via }, standing) =>
        resend(parts, served, standing, via === undefined ? resendSeconds : resendCommandLineSeconds),
    },
    parts.settings,
  );
}

async function resend(
  { wakes, directory }: SendingParts,
  served: Served,
  { row, id }: MemberStanding,
  windowSeconds: number,
): Promise<Done> {
  const { store, clock, collection, path } = served;
  if (row === undefined) throw new Error('a resend requires the row of its delivery');
  const current = JSON.parse(row.doc) as Delivery;
  const at = timeAfter(clock, row.updatedAt);
  const refused = await refusal(store, directory, current, row, at, windowSeconds);
  if (refused !== undefined) return refused;
  const asked = due(current, at);
  const { endpointId } = asked;
  const next = keptRow(deliveryDocument(asked), row.owner, row.createdAt, at);
  const change = { table: collection.name, id, expect: { rev: row.rev }, next };
  const commit = await tryCommit(store, {
    changes: [change, ...wakes.changesFor(endpointId, id)],
    events: [],
  });
  if (commit instanceof Overtaken) return commit;
  wakes.announce([endpointId], id);
  return { content: asked, queued: `${path}/${id}` };
}

/**
 * An attempt is by schedule if `dueAt` equals `nextAttemptAt` (model/delivery.ts), so a request at that time is due one
 * millisecond earlier.
 */
function due(current: Delivery, at: number): Delivery {
  const now = new Date(at).toISOString();
  const dueAt = now === current.nextAttemptAt ? new Date(at - 1).toISOString() : now;
  return { ...current, status: 'pending', dueAt, updatedAt: now };
}

async function refusal(
  store: Store,
  directory: SendingParts['directory'],
  { endpointId, eventId, eventType: type }: Delivery,
  { createdAt }: Row,
  at: number,
  windowSeconds: number,
): Promise<Done | undefined> {
  if (at - createdAt > windowSeconds * 1000) return { refused: { code: 'resend_window_over' } };
  const endpoint = await store.read(endpointsCollection.name, endpointId);
  const status = endpoint === undefined ? 'gone' : readEndpoint(endpoint.doc).status;
  if (status !== 'enabled') {
    return { refused: { code: 'endpoint_unavailable', message: `the endpoint is ${status}` } };
  }
  const event = await store.read(eventsTable, eventId);
  if (event === undefined) return { refused: { code: 'event_unavailable' } };
  const mayReceive = await directory.mayReceive(endpointId, { ...event, id: eventId, type });
  const isOwned = directory.get(endpointId)?.principal !== undefined;
  if (mayReceive && isOwned) return undefined;
  const message = isOwned
    ? 'the owner of the endpoint may no longer read this event'
    : 'the owner of the endpoint was deleted or disabled';
  return { refused: { code: 'endpoint_unavailable', message } };
}
