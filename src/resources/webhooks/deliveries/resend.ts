/**
 * POST to `/deliveries/{id}/resend` (§6): the delivery is due at once, whatever became of it before. What the schedule still has in store
 * for it stays, so a resend that fails costs it no attempt. The answer comes before anything is sent: 202.
 */
import { Type } from 'typebox';
import { permission } from '../../../model/access.ts';
import { type Delivery, deliveryDocument } from '../../../model/delivery.ts';
import type { Endpoint } from '../../../model/endpoint.ts';
import { keptRow } from '../../../store/kept-row.ts';
import { eventsTable, type Row, type Store } from '../../../store/store.ts';
import { endpointsCollection } from '../../../webhooks/outbound/collections.ts';
import { type ActionOptions, actionResource, type Done } from '../../action/action.ts';
import { timeAfter } from '../../collection/row.ts';
import type { Served } from '../../collection/served.ts';
import { memberStanding } from '../../collection/standing.ts';
import type { Ask, Resource } from '../../resource.ts';
import type { DeliveryResourcesOptions } from './options.ts';

const schema = Type.Object({ via: Type.Optional(Type.Literal('command-line')) });

/** How often a resend that lost a race begins again: against attempts, of which there is one at a time. */
const attemptsMax = 8;

export function resendResource(
  options: DeliveryResourcesOptions,
  served: Served,
  limits: ActionOptions['limits'],
): Resource {
  return actionResource({
    path: `${served.path}/{id}/resend`,
    schema,
    contentOptional: true,
    limits,
    permission: (principal) => permission(served.collection.access.update, 'update', principal),
    standing: (ask) => memberStanding(served, ask, 'update'),
    act: (ask, { via }) => {
      const { resendSeconds, resendCommandLineSeconds } = options;
      return resend(options, served, ask, via === undefined ? resendSeconds : resendCommandLineSeconds);
    },
  });
}

async function resend(
  { wakes }: DeliveryResourcesOptions,
  served: Served,
  ask: Ask,
  windowSeconds: number,
): Promise<Done> {
  const { store, clock, collection, path } = served;
  for (let attempt = 0; attempt < attemptsMax; attempt += 1) {
    const { exists, permitted, row, id } = await memberStanding(served, ask, 'update');
    // Removed by retention since the request was let through.
    if (!exists || !permitted || row === undefined) return { refused: { code: 'not_found' } };
    const stood = JSON.parse(row.doc) as Delivery;
    const at = timeAfter(clock, row.updatedAt);
    const refused = await refusal(store, stood, row, at, windowSeconds);
    if (refused !== undefined) return refused;
    const asked = due(stood, at);
    const next = keptRow(deliveryDocument(asked), row.owner, row.createdAt, at);
    const change = { table: collection.name, id, expect: { rev: row.rev }, next };
    const { endpointId } = asked;
    const commit = await store.commit({ changes: [change, ...wakes.changesFor(endpointId)], events: [] });
    if (commit.outcome !== 'committed') continue;
    wakes.announce([endpointId]);
    return { content: asked, queued: `${path}/${id}` };
  }
  return { refused: { code: 'unavailable' } };
}

/** Told from an attempt by schedule by its time, which is then one millisecond earlier (model/delivery.ts). */
function due(stood: Delivery, at: number): Delivery {
  const now = new Date(at).toISOString();
  const dueAt = now === stood.nextAttemptAt ? new Date(at - 1).toISOString() : now;
  return { ...stood, status: 'pending', dueAt, updatedAt: now };
}

async function refusal(
  store: Store,
  { endpointId, eventId }: Delivery,
  { createdAt }: Row,
  at: number,
  windowSeconds: number,
): Promise<Done | undefined> {
  if (at - createdAt > windowSeconds * 1000) return { refused: { code: 'resend_window_over' } };
  const endpoint = await store.read(endpointsCollection.name, endpointId);
  const status = endpoint === undefined ? 'gone' : (JSON.parse(endpoint.doc) as Endpoint).status;
  if (status !== 'enabled') {
    return { refused: { code: 'endpoint_unavailable', message: `the endpoint is ${status}` } };
  }
  const event = await store.read(eventsTable, eventId);
  return event === undefined ? { refused: { code: 'event_unavailable' } } : undefined;
}
