/**
 * The store as rooms are handed it: whatever commits an event commits its deliveries with it, one for each endpoint that wants the event
 * and whose owner may read it. No room knows of it, so none can forget it (docs/decisions/0025).
 *
 * The endpoints come from memory. The unit expects that their generation has not ended; where it has, nothing is made, the directory
 * reads what stands, and the unit is put together anew: in the line in which changes of the endpoints wait for each other, together with
 * its neighbours there, so that this process ends no generation meanwhile. A unit that ends the generation itself (it disables an endpoint and says so)
 * proves by that what the expectation would. Endpoints that the unit takes out of service are not told of its events.
 *
 * What the caller's own changes are refused for is the caller's to handle, in its own numbering.
 */
import { readEndpoint } from '../../../model/endpoint.ts';
import type { Change, Commit, Store, Unit } from '../../../store/store.ts';
import { endpointsCollection } from '../collections.ts';
import { endpointGenerationTable, generationLine } from '../tables.ts';
import type { Wakes } from '../wakes.ts';
import { deliveryChange } from './delivery-row.ts';
import type { FollowedDirectory } from './directory.ts';

export type FanOutOptions = {
  readonly directory: Pick<FollowedDirectory, 'matching' | 'refresh' | 'freshen'>;
  readonly wakes: Pick<Wakes, 'announce'>;
  /** Without a prefix. */
  readonly newId: () => string;
};

/** The same store but for `commit`; all that it has besides the contract stays. */
export function withDeliveries<S extends Store>(store: S, options: FanOutOptions): S {
  return {
    ...store,
    commit: (unit: Unit) =>
      unit.events.length === 0 ? store.commit(unit) : commitWithDeliveries(store, options, unit),
  };
}

async function commitWithDeliveries(
  store: Pick<Store, 'commit' | 'lines'>,
  options: FanOutOptions,
  unit: Unit,
): Promise<Commit> {
  const { directory } = options;
  // Not awaited where there is nothing to wait for: units are made in the order in which they are handed in.
  const reading = directory.freshen();
  if (reading !== undefined) await reading;
  // Whoever ends the generation has the line already.
  if (endsGeneration(unit) || !store.lines.isBusy(generationLine)) {
    const commit = await tryOnce(store, options, unit);
    if (commit !== undefined) return commit;
  }
  return store.lines.hold(generationLine, true, async (checkTime) => {
    for (;;) {
      checkTime();
      await directory.refresh();
      const commit = await tryOnce(store, options, unit);
      if (commit !== undefined) return commit;
    }
  });
}

/** @returns undefined where the generation of the endpoints had ended */
async function tryOnce(
  store: Pick<Store, 'commit'>,
  options: FanOutOptions,
  unit: Unit,
): Promise<Commit | undefined> {
  const own = unit.changes.length;
  const { added, endpoints } = fanOut(options, unit);
  const whole = { changes: [...unit.changes, ...added], events: unit.events };
  const commit = await announced(store.commit(whole), endpoints, options);
  if (commit.outcome === 'committed' || commit.change < own) return commit;
  return commit.change < own + added.length ? undefined : { ...commit, change: commit.change - added.length };
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
  let isProven = endsGeneration({ changes });
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

function endsGeneration({ changes }: Pick<Unit, 'changes'>): boolean {
  return changes.some(({ table, next }) => table === endpointGenerationTable && next !== null);
}

/** Those that the unit removes or disables. */
function leavingEndpoints(changes: readonly Change[]): ReadonlySet<string> | undefined {
  let leaving: Set<string> | undefined;
  for (const { table, id, next } of changes) {
    if (table !== endpointsCollection.name) continue;
    const isLeft = next === null || next.deletedAt !== null || readEndpoint(next.doc).status === 'disabled';
    if (isLeft) leaving = (leaving ?? new Set()).add(id);
  }
  return leaving;
}
