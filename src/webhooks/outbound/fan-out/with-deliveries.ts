/**
 * The store as rooms are handed it: whatever commits an event commits its deliveries with it, one for each endpoint that wants the event
 * and whose owner may read it. No room knows of it, so none can forget it (docs/decisions/0025).
 *
 * The endpoints come from memory. The unit expects that their generation has not ended; where it has, nothing is made, the directory
 * reads what stands, and the unit is put together anew: in the line in which changes of the endpoints wait for each other, together with
 * its neighbours there, so that this process ends no generation meanwhile. A unit that ends the generation itself (it disables an endpoint and says so)
 * proves by that what the expectation would. Endpoints that the unit takes out of service are not told of its events.
 *
 * More deliveries than one unit takes are owed by it (fan-out-parts.ts), and made in units of their own: neither the event loop nor the writer is held
 * by the number of endpoints, and a unit that is put together anew costs little.
 *
 * What the caller's own changes are refused for is the caller's to handle, in its own numbering.
 */
import type { Change, Commit, MaybePromise, Store, Unit } from '../../../store/store.ts';
import { generationLine } from '../tables.ts';
import type { Wakes } from '../wakes.ts';
import { deliveryChange } from './delivery-row.ts';
import type { FollowedDirectory } from './directory.ts';
import type { Expansion } from './expansion.ts';
import { deliveriesPerUnitMax, partChanges } from './fan-out-parts.ts';
import { endsGeneration, type Gathered, gather } from './gather.ts';

export type FanOutOptions = {
  readonly directory: Pick<FollowedDirectory, 'matching' | 'refresh' | 'freshen'>;
  readonly wakes: Pick<Wakes, 'announce'>;
  readonly expansion: Pick<Expansion, 'look'>;
  /** Without a prefix. */
  readonly newId: () => string;
  /** Milliseconds since the epoch. */
  readonly clock: () => number;
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
  store: Pick<Store, 'commit' | 'lines' | 'processId'>,
  options: FanOutOptions,
  unit: Unit,
): Promise<Commit> {
  const { directory } = options;
  // Not awaited where there is nothing to wait for: units are made in the order in which they are handed in.
  const reading = directory.freshen();
  if (reading !== undefined) await reading;
  // Whoever ends the generation has the line already.
  if (endsGeneration(unit.changes) || !store.lines.isBusy(generationLine)) {
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
  store: Pick<Store, 'commit' | 'processId'>,
  options: FanOutOptions,
  unit: Unit,
): Promise<Commit | undefined> {
  const own = unit.changes.length;
  const made = fanOut(store, options, unit);
  const { added, announce } = made instanceof Promise ? await made : made;
  const whole = { changes: [...unit.changes, ...added], events: unit.events };
  const commit = await announced(store.commit(whole), announce);
  if (commit.outcome === 'committed' || commit.change < own) return commit;
  return commit.change < own + added.length ? undefined : { ...commit, change: commit.change - added.length };
}

/** Where nobody knows whether the unit was made, its endpoints are named all the same: a look for nothing costs less than a wait. */
async function announced(committing: Promise<Commit>, announce: () => void): Promise<Commit> {
  let isMade = true;
  try {
    const commit = await committing;
    isMade = commit.outcome === 'committed';
    return commit;
  } finally {
    if (isMade) announce();
  }
}

type FanOut = {
  /** The guard, where it is needed, then a delivery for each event and endpoint, or the rows of those that are owed. */
  readonly added: readonly Change[];
  /** To be called after the commit. */
  readonly announce: () => void;
};

function fanOut(
  { processId }: Pick<Store, 'processId'>,
  options: FanOutOptions,
  unit: Unit,
): MaybePromise<FanOut> {
  const gathered = gather(options.directory, unit);
  if (gathered instanceof Promise) return gathered.then((all) => addedTo(processId, options, all));
  return addedTo(processId, options, gathered);
}

function addedTo(processId: string, options: FanOutOptions, gathered: Gathered): MaybePromise<FanOut> {
  const { lists, total } = gathered;
  const guards = gathered.guard === undefined ? [] : [gathered.guard];
  if (total > deliveriesPerUnitMax) {
    const { expansion, clock, newId } = options;
    return partChanges(lists, processId, clock(), newId).then((parts) => ({
      added: [...guards, ...parts],
      announce: () => expansion.look(),
    }));
  }
  const added: Change[] = guards;
  const endpoints = new Set<string>();
  for (const [list, events] of lists) {
    for (const known of list) {
      endpoints.add(known.endpoint.id);
      for (const event of events) added.push(deliveryChange(event, known, event.createdAt, options.newId));
    }
  }
  return {
    added,
    announce() {
      if (endpoints.size > 0) options.wakes.announce(endpoints);
    },
  };
}
