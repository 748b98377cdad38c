/**
 * What the program says of an endpoint, as an event (§6): a warning that it fails, and that it was disabled. It tells of no collection's
 * resource; it is the endpoint's owner's, and its tenant's where it has one. Of the URL only the origin is told: a path may hold a secret.
 */
import type { Endpoint } from '../../../model/endpoint.ts';
import { eventDocument } from '../../../model/event.ts';
import { noCollection } from '../../../model/event-access.ts';
import type { EventEntry } from '../../../store/store.ts';

export type OperationalType = 'endpoint.failing' | 'endpoint.disabled';

/**
 * @param at milliseconds since the epoch, as is `failingSince`, where it is known
 * @param newId without a prefix
 */
export function operationalEvent(
  type: OperationalType,
  endpoint: Endpoint,
  owner: string | null,
  at: number,
  newId: () => string,
  failingSince?: number,
): EventEntry {
  const id = `evt_${newId()}`;
  const object = JSON.stringify({
    id: endpoint.id,
    url: new URL(endpoint.url).origin,
    status: endpoint.status,
    disabledReason: endpoint.disabledReason,
    failingSince: failingSince === undefined ? undefined : new Date(failingSince).toISOString(),
    tenant: endpoint.tenant,
  });
  const doc = eventDocument(id, type, at, object, endpoint.tenant);
  return { id, type, collection: noCollection, owner, doc, createdAt: at };
}
