/** `/deliveries/{id}/attempts`: what was tried and what came of it (surface "Webhooks out"), oldest first. */
import { attemptsOf, attemptsPageMax } from '../../../webhooks/outbound/attempt-row.ts';
import type { Served } from '../../collection/served.ts';
import type { Resource } from '../../resource.ts';
import { attemptsResource } from '../attempts/resource.ts';

export function deliveryAttemptsResource(served: Served): Resource {
  return attemptsResource(served, attemptsPageMax, (id, asked) => attemptsOf(served.store, id, asked));
}
