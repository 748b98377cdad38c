/** Finds the endpoints of all events of a unit. Many endpoints of many events are found in several turns of the event loop. */
import { readEndpoint } from '../../../model/endpoint.ts';
import type { Change, EventEntry, MaybePromise, Unit } from '../../../store/store.ts';
import { endpointsCollection } from '../collections.ts';
import type { KnownEndpoint } from '../known-endpoint.ts';
import { endpointGenerationTable } from '../tables.ts';
import type { FollowedDirectory } from './directory.ts';

export type Gathered = {
  /** What proves that the endpoints are all; undefined: the unit proves it itself. */
  readonly guard: Change | undefined;
  /** By list of endpoints, the events that go to it; a list is the same object for all events that share it. */
  readonly lists: ReadonlyMap<readonly KnownEndpoint[], readonly EventEntry[]>;
  /** Deliveries. */
  readonly total: number;
};

/** Endpoints that are looked at in one turn of the event loop: some 5 ms where each is asked by a rule of its own. */
const endpointsPerTurn = 8192;

/** @returns a promise only where there is much to find */
export function gather(directory: Pick<FollowedDirectory, 'matching'>, unit: Unit): MaybePromise<Gathered> {
  const gathering = new Gathering(directory, unit);
  return gathering.advance() ? gathering : finish(gathering);
}

async function finish(gathering: Gathering): Promise<Gathered> {
  do await new Promise((resolve) => setImmediate(resolve));
  while (!gathering.advance());
  return gathering;
}

class Gathering implements Gathered {
  readonly lists = new Map<readonly KnownEndpoint[], EventEntry[]>();
  guard: Change | undefined;
  total = 0;
  readonly #directory: Pick<FollowedDirectory, 'matching'>;
  readonly #events: readonly EventEntry[];
  readonly #isProven: boolean;
  readonly #leaving: ReadonlySet<string> | undefined;
  /** Lists without those that leave. */
  readonly #staying = new Map<readonly KnownEndpoint[], readonly KnownEndpoint[]>();
  #next = 0;

  constructor(directory: Pick<FollowedDirectory, 'matching'>, { changes, events }: Unit) {
    this.#directory = directory;
    this.#events = events;
    this.#isProven = endsGeneration(changes);
    this.#leaving = leavingEndpoints(changes);
  }

  /** @returns whether all events have their endpoints */
  advance(): boolean {
    for (let examined = 0; this.#next < this.#events.length; this.#next += 1) {
      if (examined >= endpointsPerTurn) return false;
      const event = this.#events[this.#next];
      if (event === undefined) break;
      const { groups, guard } = this.#directory.matching(event);
      // The first: were the endpoints others in a later turn, it would be refused.
      if (!this.#isProven) this.guard ??= guard;
      for (const group of groups) {
        examined += group.length;
        this.#add(event, this.#leaving === undefined ? group : this.#withoutLeaving(group, this.#leaving));
      }
    }
    return true;
  }

  #add(event: EventEntry, endpoints: readonly KnownEndpoint[]): void {
    if (endpoints.length === 0) return;
    this.total += endpoints.length;
    const events = this.lists.get(endpoints);
    if (events === undefined) this.lists.set(endpoints, [event]);
    else events.push(event);
  }

  #withoutLeaving(group: readonly KnownEndpoint[], leaving: ReadonlySet<string>): readonly KnownEndpoint[] {
    const known = this.#staying.get(group);
    if (known !== undefined) return known;
    const staying = group.filter(({ endpoint }) => !leaving.has(endpoint.id));
    this.#staying.set(group, staying);
    return staying;
  }
}

export function endsGeneration(changes: readonly Change[]): boolean {
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
