/** `/deliveries/{id}/attempts`: what was tried and what came of it (surface "Webhooks out"), oldest first. */
import { attemptsOf } from '../../../webhooks/outbound/attempt-row.ts';
import type { Served } from '../../collection/served.ts';
import type { Resource } from '../../resource.ts';
import { attemptsResource } from '../attempts/resource.ts';

export function deliveryAttemptsResource(served: Served, limitMax: number): Resource {
  return attemptsResource(served, limitMax, (id, asked) =>
    attemptsOf(served.store, id, { ...asked, bytesMax: served.pageBytesMax }),
  );
}
