/**
 * POST to `/endpoints/{id}/recover` (§6.6): sends again what the endpoint missed between two times, without a bound on
 * the amount. It begins the recovery, which runs in the background (recovery.ts); the 202 refers to the recovery at
 * `/recoveries`, which shows its progress.
 */
import { type Static, Type } from 'typebox';
import type { FieldError } from '../../../http/problem.ts';
import { actionResource, type Done } from '../../../kernel/action.ts';
import { type CollectionOperation, representationOf } from '../../../kernel/documentation.ts';
import type { Ask, Resource } from '../../../kernel/resource.ts';
import { readEndpoint } from '../../../model/endpoint.ts';
import { byId } from '../../../model/filter.ts';
import { memberStanding, onMember } from '../../../resources/collection/member.ts';
import { type ServedCollection, serveCollection } from '../../../resources/collection/serve-collection.ts';
import type { Served, Serving } from '../../../resources/collection/served-collection.ts';
import type { Store } from '../../../store/store.ts';
import { disabledProblem } from '../endpoints/revise-endpoint.ts';
import type { SendingParts } from '../sending-parts.ts';
import { recoveriesCollection } from '../sending-tables.ts';
import { beginRecovery, shownRecovery } from './recovery.ts';

const schema = Type.Object({
  since: Type.String({ format: 'date-time', description: 'Start of the time span; must be in the past.' }),
  until: Type.Optional(
    Type.String({ format: 'date-time', description: 'End of the time span. Default: now.' }),
  ),
  dryRun: Type.Optional(Type.Boolean({ description: '`true`: only counts the events and sends nothing.' })),
});

type Wanted = Static<typeof schema>;

/** @param recoveries the path of the recoveries */
export function recoverResource(
  { store, settings }: SendingParts,
  served: Served,
  recoveries: string,
): Resource {
  return actionResource(
    {
      ...onMember(served, 'recover', 'update', 'Id of the endpoint.'),
      id: 'recoverEndpoint',
      summary: 'Recover missed events of an endpoint',
      description:
        'Sends the events of the time span that the endpoint was never sent, and resends deliveries that failed and have no retry scheduled. Location names the recovery, which shows the progress. An endpoint can have one running recovery.',
      input: { name: 'EndpointRecovery', schema, example: { since: '2026-08-01T09:30:00.000Z' } },
      output: { schema: representationOf(recoveriesCollection) },
      answers: 'queued',
      codes: ['endpoint_unavailable', 'recovery_running'],
      handler: (ask, wanted) => recover(store, served, recoveries, ask, wanted),
    },
    settings,
  );
}

async function recover(store: Store, served: Served, path: string, ask: Ask, wanted: Wanted): Promise<Done> {
  const { exists, permitted, row, id: endpointId } = await memberStanding(served, ask, 'update');
  // Removed since the request was permitted.
  if (!exists || !permitted || row === undefined) return { refused: { code: 'not_found' } };
  const dryRun = wanted.dryRun ?? false;
  const { status } = readEndpoint(row.doc);
  if (status === 'disabled' && !dryRun) return { refused: disabledProblem };
  const at = served.clock();
  const span = spanOf(wanted, at);
  if ('error' in span) return { refused: { code: 'validation_failed', errors: [span.error] } };
  const id = `rcv_${served.newId()}`;
  const last = await store.head();
  const { owner } = row;
  const { change, recovery } = beginRecovery({ id, endpointId, ...span, dryRun, last, at, owner });
  const commit = await store.commit({ changes: [change], events: [] });
  if (commit.outcome === 'taken') {
    const running = await runningRecovery(store, endpointId);
    const context = running === undefined ? {} : { recovery: running };
    return { refused: { code: 'recovery_running', context } };
  }
  if (commit.outcome !== 'committed') throw new Error(`the recovery could not be stored: ${commit.outcome}`);
  return { content: shownRecovery(recovery), queued: `${path}/${id}` };
}

/** Returns the span, both ends included. Nothing in the future can have been missed. */
function spanOf(
  { since, until }: Wanted,
  at: number,
): { readonly since: string; readonly until: string } | { readonly error: FieldError } {
  const from = Date.parse(since);
  const to = until === undefined ? at : Math.min(Date.parse(until), at);
  if (Number.isNaN(from))
    return {
      error: { pointer: '/since', message: 'must be an ISO 8601 time, such as 2026-11-22T10:00:00Z' },
    };
  if (Number.isNaN(to))
    return {
      error: { pointer: '/until', message: 'must be an ISO 8601 time, such as 2026-11-22T10:00:00Z' },
    };
  if (from > at) return { error: { pointer: '/since', message: 'must be in the past' } };
  if (from > to) return { error: { pointer: '/until', message: 'must not be before since' } };
  return { since: new Date(from).toISOString(), until: new Date(to).toISOString() };
}

/** Returns the id of the running recovery, unless it ended just now. */
async function runningRecovery(store: Served['store'], endpointId: string): Promise<string | undefined> {
  const field = recoveriesCollection.fields.get('runningFor');
  if (field === undefined) throw new Error('the collection recoveries lacks the field runningFor');
  const filter = { op: 'eq', field, value: endpointId } as const;
  const plan = store.plan({ table: recoveriesCollection.name, filter, sort: byId, limit: 1 });
  const { docs } = await plan.page({ from: 'start' });
  return docs[0] === undefined ? undefined : (JSON.parse(docs[0]) as { id: string }).id;
}

const operations: ReadonlySet<CollectionOperation> = new Set(['list', 'query', 'read', 'remove']);

/**
 * `/recoveries`: the progress of recoveries (§6.6), which no client changes. DELETE stops a running one and removes it.
 */
export function recoveryResources(serving: Serving): ServedCollection {
  return serveCollection(serving, recoveriesCollection, {
    announced: false,
    operations,
    documentation: {
      names: { singular: 'Recovery', plural: 'Recoveries', one: 'a recovery', many: 'recoveries' },
      audience: 'operator',
      idPrefix: 'rcv_',
      revise: {
        remove: (standard) => ({
          ...standard,
          description: 'Stops the recovery if it is running, and removes it.',
        }),
      },
    },
  });
}
