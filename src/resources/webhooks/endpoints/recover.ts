/**
 * POST to `/endpoints/{id}/recover` (§6.6): sends again what the endpoint missed between two times, without a bound on how much that is. It
 * is begun here and carried out in the background (webhooks/outbound/recovery); 202 leads to the recovery, which tells how far it has come.
 */
import { Type } from 'typebox';
import type { FieldError } from '../../../http/problem.ts';
import { permission } from '../../../model/access.ts';
import { readEndpoint } from '../../../model/endpoint.ts';
import { byId } from '../../../model/filter.ts';
import { recoveriesCollection } from '../../../webhooks/outbound/collections.ts';
import { beginRecovery, shownRecovery } from '../../../webhooks/outbound/recovery/recovery.ts';
import { type ActionOptions, actionResource, type Done } from '../../action/action.ts';
import type { Served } from '../../collection/served.ts';
import { memberStanding } from '../../collection/standing.ts';
import type { Ask, Resource } from '../../resource.ts';
import { disabledProblem } from './disabled.ts';
import type { EndpointResourcesOptions } from './options.ts';

const schema = Type.Object({
  since: Type.String({ format: 'date-time' }),
  until: Type.Optional(Type.String({ format: 'date-time' })),
  dryRun: Type.Optional(Type.Boolean()),
});

type Wanted = { readonly since: string; readonly until?: string; readonly dryRun?: boolean };

export function recoverResource(
  options: EndpointResourcesOptions,
  served: Served,
  paths: { readonly recoveries: string },
  limits: ActionOptions['limits'],
): Resource {
  return actionResource({
    path: `${served.path}/{id}/recover`,
    schema,
    limits,
    permission: (principal) => permission(served.collection.access.update, 'update', principal),
    standing: (ask) => memberStanding(served, ask, 'update'),
    act: (ask, content) => recover(options, served, paths.recoveries, ask, content as Wanted),
  });
}

async function recover(
  { plainStore }: EndpointResourcesOptions,
  served: Served,
  path: string,
  ask: Ask,
  wanted: Wanted,
): Promise<Done> {
  const { exists, permitted, row, id: endpointId } = await memberStanding(served, ask, 'update');
  // Removed since the request was let through.
  if (!exists || !permitted || row === undefined) return { refused: { code: 'not_found' } };
  const dryRun = wanted.dryRun ?? false;
  const { status } = readEndpoint(row.doc);
  if (status === 'disabled' && !dryRun) return { refused: disabledProblem };
  const at = served.clock();
  const span = spanOf(wanted, at);
  if ('error' in span) return { refused: { code: 'validation_failed', errors: [span.error] } };
  const id = `rcv_${served.newId()}`;
  const last = await plainStore.head();
  const { owner } = row;
  const { change, recovery } = beginRecovery({ id, endpointId, ...span, dryRun, last, at, owner });
  const commit = await plainStore.commit({ changes: [change], events: [] });
  if (commit.outcome === 'taken') {
    const running = await runningRecovery(plainStore, endpointId);
    const context = running === undefined ? {} : { recovery: running };
    return { refused: { code: 'recovery_running', context } };
  }
  if (commit.outcome !== 'committed') throw new Error(`a recovery could not be kept: ${commit.outcome}`);
  return { content: shownRecovery(recovery), queued: `${path}/${id}` };
}

/** Both ends belong to it. What lies ahead cannot have been missed. */
function spanOf(
  { since, until }: Wanted,
  at: number,
): { readonly since: string; readonly until: string } | { readonly error: FieldError } {
  const from = Date.parse(since);
  const to = until === undefined ? at : Math.min(Date.parse(until), at);
  if (Number.isNaN(from)) return { error: { pointer: '/since', message: 'is no time' } };
  if (Number.isNaN(to)) return { error: { pointer: '/until', message: 'is no time' } };
  if (from > at) return { error: { pointer: '/since', message: 'must lie in the past' } };
  if (from > to) return { error: { pointer: '/until', message: 'must not be before since' } };
  return { since: new Date(from).toISOString(), until: new Date(to).toISOString() };
}

/** The id of the one that runs, unless it ended just now. */
async function runningRecovery(store: Served['store'], endpointId: string): Promise<string | undefined> {
  const field = recoveriesCollection.fields.get('runningFor');
  if (field === undefined) throw new Error('recoveries have no runningFor');
  const filter = { op: 'eq', field, value: endpointId } as const;
  const plan = store.plan({ table: recoveriesCollection.name, filter, sort: byId, limit: 1 });
  const { docs } = await plan.page({ from: 'start' });
  return docs[0] === undefined ? undefined : (JSON.parse(docs[0]) as { id: string }).id;
}
