/**
 * Disables an endpoint (§6.5, §6.8): because a 410 said that nothing is wanted any more, or because nothing was accepted for too long.
 *
 * One unit takes the endpoint out of service, lets every process know by the generation of the endpoints, ends its health, and
 * announces `endpoint.disabled`. Only the endpoint that was judged is disabled: where its row changed meanwhile (another address, or an
 * owner who enabled it again), nothing happens, and what its new state is good for shows with the next attempt. Its deliveries stay due
 * and wait until it is enabled.
 */
import { searchText } from '../../../model/collection.ts';
import { type DisabledReason, type Endpoint, readEndpoint } from '../../../model/endpoint.ts';
import type { Change, Row, Store } from '../../../store/store.ts';
import { endpointsCollection } from '../collections.ts';
import { operationalEvent } from '../fan-out/operational-events.ts';
import type { EndpointDirectory, KnownEndpoint } from '../known-endpoint.ts';
import { endpointHealthTable, generationLine } from '../tables.ts';

export type DisableOptions = {
  /** With fan-out: what is announced is delivered, though not to the endpoint itself. */
  readonly store: Pick<Store, 'commit' | 'read' | 'lines'>;
  readonly directory: Pick<EndpointDirectory, 'generationChanges' | 'refresh'>;
  readonly clock: () => number;
  readonly newId: () => string;
};

/** What was disabled; undefined: it is not the endpoint any more that was judged. */
export type Disabled = { readonly endpoint: Endpoint; readonly owner: string | null } | undefined;

/**
 * @param since of the first failure after the last success, or of the 410; milliseconds since the epoch
 * @throws StoreUnavailable
 */
export async function disableEndpoint(
  options: DisableOptions,
  judged: KnownEndpoint,
  reason: DisabledReason,
  since: number,
): Promise<Disabled> {
  const { store, directory, clock, newId } = options;
  const { id } = judged.endpoint;
  return store.lines.hold(generationLine, false, async (checkTime) => {
    for (;;) {
      checkTime();
      // It is seldom done, so it need not rely on what was read some time ago.
      await directory.refresh();
      const row = await store.read(endpointsCollection.name, id);
      if (row === undefined || row.rev !== judged.rev) return undefined;
      const health = await store.read(endpointHealthTable, id);
      const at = Math.max(clock(), row.updatedAt);
      const endpoint = disabledEndpoint(row, reason, at);
      const event = operationalEvent('endpoint.disabled', endpoint, row.owner, at, newId, since);
      const own = [endpointChange(row, endpoint, at), ...(health === undefined ? [] : [removal(health)])];
      const changes = [...own, ...directory.generationChanges(own)];
      const commit = await store.commit({ changes, events: [event] });
      if (commit.outcome === 'committed') return { endpoint, owner: row.owner };
    }
  });
}

function disabledEndpoint(row: Row, reason: DisabledReason, at: number): Endpoint {
  const { createdAt, updatedAt: _, ...fields } = readEndpoint(row.doc);
  const updatedAt = new Date(at).toISOString();
  return { ...fields, status: 'disabled', disabledReason: reason, createdAt, updatedAt };
}

function endpointChange(row: Row, endpoint: Endpoint, at: number): Change {
  return {
    table: endpointsCollection.name,
    id: row.id,
    expect: { rev: row.rev },
    next: {
      doc: JSON.stringify(endpoint),
      owner: row.owner,
      createdAt: row.createdAt,
      updatedAt: at,
      deletedAt: null,
      search: searchText(endpointsCollection.searchFields, endpoint),
      references: [],
    },
  };
}

function removal(row: Row): Change {
  return { table: endpointHealthTable, id: row.id, expect: { rev: row.rev }, next: null };
}
