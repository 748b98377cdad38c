/** An event for one endpoint alone, such as a test: what its unit consists of. It is committed through the store without fan-out. */
import type { EventEntry, Unit } from '../../../store/store.ts';
import type { KnownEndpoint } from '../known-endpoint.ts';
import type { Wakes } from '../wakes.ts';
import { deliveryChange } from './delivery-row.ts';

/** After the commit, `wakes.announce` is still to be called. @param newId without a prefix */
export function targeted(
  event: EventEntry,
  known: Pick<KnownEndpoint, 'endpoint' | 'owner'>,
  { wakes, newId }: { readonly wakes: Pick<Wakes, 'changesFor'>; readonly newId: () => string },
): Unit {
  const delivery = deliveryChange(event, known, event.createdAt, newId);
  return { changes: [delivery, ...wakes.changesFor(known.endpoint.id, delivery.id)], events: [event] };
}
