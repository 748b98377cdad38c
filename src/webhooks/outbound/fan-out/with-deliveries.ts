/**
 * The store as rooms are handed it: whatever commits an event commits its deliveries with it, one for each endpoint that wants the event
 * and whose owner may read it. No room knows of it, so none can forget it (docs/decisions/0025).
 *
 * The endpoints come from memory. The unit expects that their generation has not ended; where it has, nothing is made, the directory
 * reads what stands, and the unit is put together anew. A unit that ends the generation itself (it disables an endpoint and says so)
 * proves by that what the expectation would. Endpoints that the unit takes out of service are not told of its events.
 *
 * What the caller's own changes are refused for is the caller's to handle, in its own numbering.
 */
import type { Endpoint } from '../../../model/endpoint.ts';
import { type Change, type Commit, type Store, StoreUnavailable, type Unit } from '../../../store/store.ts';
import { endpointsCollection } from '../collections.ts';
import { endpointGenerationTable } from '../tables.ts';
import type { Wakes } from '../wakes.ts';
import { deliveryChange } from './delivery-row.ts';
import type { FollowedDirectory } from './directory.ts';

export type FanOutOptions = {
  readonly directory: Pick<FollowedDirectory, 'matching' | 'refresh' | 'freshen'>;
  readonly wakes: Pick<Wakes, 'announce'>;
  /** Without a prefix. */
  readonly newId: () => string;
};

/** Generations that may end while one unit is made. Each takes a write of an endpoint between a reading and a commit. */
const attemptsMax = 64;

/** The same store but for `commit`; all that it has besides the contract stays. */
export function withDeliveries<S extends Store>(store: S, options: FanOutOptions): S {
  return {
    ...store,
    commit: (unit: Unit) =>
      unit.events.length === 0 ? store.commit(unit) : commitWithDeliveries(store, options, unit),
  };
}

async function commitWithDeliveries(
  store: Pick<Store, 'commit'>,
  options: FanOutOptions,
  unit: Unit,
): Promise<Commit> {
  const { directory } = options;
  const own = unit.changes.length;
  // Not awaited where there is nothing to wait for: units are made in the order in which they are handed in.
  const reading = directory.freshen();
  if (reading !== undefined) await reading;
  for (let attempt = 0; attempt < attemptsMax; attempt += 1) {
    const { added, endpoints } = fanOut(options, unit);
    const whole = { changes: [...unit.changes, ...added], events: unit.events };
    const commit = await announced(store.commit(whole), endpoints, options);
    if (commit.outcome === 'committed' || commit.change < own) return commit;
    if (commit.change >= own + added.length) return { ...commit, change: commit.change - added.length };
    await directory.refresh();
  }
  throw new StoreUnavailable('endpoints change faster than an event can be written', {
    retryAfterSeconds: 1,
  });
}

/** Where nobody knows whether the unit was made, its endpoints are named all the same: a look for nothing costs less than a wait. */
async function announced(
  committing: Promise<Commit>,
  endpoints: ReadonlySet<string>,
  { wakes }: Pick<FanOutOptions, 'wakes'>,
): Promise<Commit> {
  let isMade = true;
  try {
    const commit = await committing;
    isMade = commit.outcome === 'committed';
    return commit;
  } finally {
    if (isMade && endpoints.size > 0) wakes.announce(endpoints);
  }
}

type FanOut = {
  /** The guard, where it is needed, then a delivery for each event and endpoint. */
  readonly added: readonly Change[];
  readonly endpoints: ReadonlySet<string>;
};

function fanOut({ directory, newId }: FanOutOptions, { changes, events }: Unit): FanOut {
  const added: Change[] = [];
  const endpoints = new Set<string>();
  const leaving = leavingEndpoints(changes);
  let isProven = changes.some(({ table, next }) => table === endpointGenerationTable && next !== null);
  for (const event of events) {
    const matched = directory.matching(event);
    if (!isProven) {
      isProven = true;
      added.push(matched.guard);
    }
    for (const known of matched.endpoints) {
      const { id } = known.endpoint;
      if (leaving?.has(id)) continue;
      endpoints.add(id);
      added.push(deliveryChange(event, known, event.createdAt, newId));
    }
  }
  return { added, endpoints };
}

/** Those that the unit removes or disables. */
function leavingEndpoints(changes: readonly Change[]): ReadonlySet<string> | undefined {
  let leaving: Set<string> | undefined;
  for (const { table, id, next } of changes) {
    if (table !== endpointsCollection.name) continue;
    const isLeft =
      next === null || next.deletedAt !== null || (JSON.parse(next.doc) as Endpoint).status === 'disabled';
    if (isLeft) leaving = (leaving ?? new Set()).add(id);
  }
  return leaving;
}
