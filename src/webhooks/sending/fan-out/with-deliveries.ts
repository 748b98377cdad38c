/**
 * The stage of a commit that adds the deliveries of its events, one for each endpoint that wants the event and whose
 * owner may read it. Resources do not know of it and so cannot forget it (docs/decisions/0025).
 * The endpoints come from memory. The unit expects that their generation has not ended; if it has, the directory reads
 * the current state and the unit is built again, in the line of changes of the endpoints, so that this process does not
 * end the generation meanwhile. A unit that ends the generation itself (it disables an endpoint) proves the same.
 * Endpoints that the unit disables or removes do not receive its events.
 * If there are more deliveries than a unit may hold, the unit owes them (owed-deliveries.ts), and later units make
 * them: large fan-outs then delay neither the event loop nor the writer, and building the unit again is cheap.
 * A refusal of the caller's own changes is returned to the caller, with the caller's index of the change.
 */

import type { OctetLine } from '../../../memory/program-memory.ts';
import { workRules } from '../../../memory/work-rules.ts';
import { readEndpoint } from '../../../model/endpoint.ts';
import type { LoopTurns } from '../../../observe/event-loop.ts';
import type { Services } from '../../../store/capabilities.ts';
import { RelatedRows } from '../../../store/related-rows.ts';
import { type AddedRefused, type CommitStage, type CommitUnit, commitAdding } from '../../../store/stages.ts';
import type { Change, Commit, EventEntry, MaybePromise, Store, Unit } from '../../../store/store.ts';
import { orderKeyOf } from '../delivery-order.ts';
import { type EndpointDirectory, type Filtered, judgeSome, type KnownEndpoint } from '../known-endpoint.ts';
import { deliveryChanges } from '../new-deliveries.ts';
import {
  deliveriesPerUnitMax,
  endpointsCollection,
  generationLine,
  generationRow,
} from '../sending-tables.ts';
import type { EventSource } from '../sent-event.ts';
import type { Wakes } from '../wakes.ts';
import { partChanges } from './owed-deliveries.ts';

export type FanOutOptions = Pick<Services, 'clock' | 'newId'> & {
  readonly store: Pick<Store, 'lines' | 'processId' | 'read'>;
  readonly directory: Pick<EndpointDirectory, 'matching' | 'refresh'>;
  readonly wakes: Pick<Wakes, 'announce' | 'announceMade' | 'noteEvent'>;
  readonly events: Pick<EventSource, 'keep'>;
  /** Makes owed deliveries. */
  readonly owed: { readonly look: () => void };
  /** The octets of deliveries that units under way make; absent: without a bound. */
  readonly fanOuts?: OctetLine;
  readonly turns?: Pick<LoopTurns, 'next' | 'nextOfBegun'>;
};

export function deliveriesStage(options: FanOutOptions): CommitStage {
  return (unit, commit) =>
    unit.events.length === 0 ? commit(unit) : commitWithDeliveries(options, unit, commit);
}

async function commitWithDeliveries(options: FanOutOptions, unit: Unit, commit: CommitUnit): Promise<Commit> {
  const { directory, store } = options;
  // A unit that ends the generation has the line already.
  if (endsGeneration(unit.changes) || !store.lines.isBusy(generationLine)) {
    const result = await tryOnce(options, unit, commit);
    if (result.outcome !== 'added-refused') return result;
  }
  return store.lines.hold(generationLine, true, async (checkTime) => {
    for (;;) {
      checkTime();
      await directory.refresh();
      const result = await tryOnce(options, unit, commit);
      if (result.outcome !== 'added-refused') return result;
    }
  });
}

/** @returns `added-refused` if the generation of the endpoints had ended */
function tryOnce(options: FanOutOptions, unit: Unit, commit: CommitUnit): Promise<Commit | AddedRefused> {
  const commitGathered = (gathered: Gathered): Promise<Commit | AddedRefused> => {
    return gathered.total === 0
      ? commitAdding(unit, guardsOf(gathered), commit)
      : commitInLine(options, unit, gathered, commit);
  };
  const gathered = gather(options.directory, unit, new UnitRows(options.store, unit));
  return gathered instanceof Promise ? gathered.then(commitGathered) : commitGathered(gathered);
}

/** Deliveries are made once there is room for them: 1,000 writes with 250 endpoints each would hold 250 MB of rows that wait to be committed. */
async function commitInLine(
  options: FanOutOptions,
  unit: Unit,
  gathered: Gathered,
  commit: CommitUnit,
): Promise<Commit | AddedRefused> {
  const { fanOuts, turns } = options;
  const octets = Math.min(gathered.total, deliveriesPerUnitMax) * workRules.delivery.octets;
  // Awaited only if necessary, too.
  const room = fanOuts?.enter(octets);
  if (room !== undefined) await room;
  try {
    const turn = room === undefined ? undefined : turns?.next();
    if (turn !== undefined) await turn;
    const making = addedTo(options, gathered);
    const { added, announce } = making instanceof Promise ? await making : making;
    return await announced(commitAdding(unit, added, commit), announce);
  } finally {
    fanOuts?.leave(octets);
  }
}

type Announce = (rev: number | undefined) => void;

async function announced<C extends Commit | AddedRefused>(
  committing: Promise<C>,
  announce: Announce,
): Promise<C> {
  let commit: C;
  try {
    commit = await committing;
  } catch (error) {
    announce(undefined);
    throw error;
  }
  if (commit.outcome === 'committed') announce(commit.rev);
  return commit;
}

type FanOut = {
  /** The guard, if needed, then a delivery for each event and endpoint, or the rows of owed ones. */
  readonly added: readonly Change[];
  /** Called after the commit with the revision of the unit; without one, its outcome is unknown. */
  readonly announce: Announce;
};

function addedTo(options: FanOutOptions, gathered: Gathered): MaybePromise<FanOut> {
  const { total, lists } = gathered;
  if (total > deliveriesPerUnitMax) {
    const { store, owed, clock, newId } = options;
    return partChanges(lists, store.processId, clock(), newId).then((parts) => ({
      added: [...guardsOf(gathered), ...parts],
      announce: () => owed.look(),
    }));
  }
  const made: Made[] = [];
  const placed: Change[] = [];
  const sent = new Set<EventEntry>();
  for (const [list, events] of lists) {
    for (const event of events) sent.add(event);
    for (const { endpoint, owner } of list) {
      for (const event of events) {
        const key = endpoint.orderBy === undefined ? undefined : orderKeyOf(endpoint, event.doc);
        const order = key === undefined ? undefined : { key };
        const [change, ...places] = deliveryChanges(
          { event, at: event.createdAt, order },
          { endpoint, owner },
          options.newId,
        );
        made.push({ endpointId: endpoint.id, change });
        placed.push(...places);
      }
    }
  }
  for (const { id } of sent) options.wakes.noteEvent(id, true);
  const at = options.clock();
  return {
    added: [...guardsOf(gathered), ...made.map(({ change }) => change), ...placed],
    announce(rev) {
      const announce = () => {
        if (rev === undefined) announceUnknown(options, made, sent);
        else announceMade(options, made, sent, { rev, at });
      };
      // The units of a batch are announced together: 2,000 deliveries take 15 ms.
      const turn = made.length > announcedAtOnceMax ? options.turns?.nextOfBegun() : undefined;
      if (turn === undefined) announce();
      else void turn.then(announce);
    },
  };
}

/** Deliveries that are announced before a commit is answered. */
const announcedAtOnceMax = 16;

/** A delivery of a unit. */
type Made = { readonly endpointId: string; readonly change: Change };

/** The sender gets the events and the deliveries as they were committed, and need not read them. */
function announceMade(
  { wakes, events }: FanOutOptions,
  made: readonly Made[],
  sent: ReadonlySet<EventEntry>,
  { rev, at }: { readonly rev: number; readonly at: number },
): void {
  for (const event of sent) events.keep(event.id, event, at);
  for (const { endpointId, change } of made) {
    const { id, next } = change;
    if (next !== null) wakes.announceMade(endpointId, { id, rev, ...next });
  }
}

/** The unit may have been committed, and an unnecessary look costs less than a wait. */
function announceUnknown(
  { wakes }: FanOutOptions,
  made: readonly Made[],
  sent: ReadonlySet<EventEntry>,
): void {
  for (const { id } of sent) wakes.noteEvent(id, false);
  if (made.length > 0) wakes.announce(new Set(made.map(({ endpointId }) => endpointId)));
}

// Matches all events of a unit with their endpoints, in several turns of the event loop if there are many.

type Gathered = {
  /** The change that proves the endpoints are complete; undefined: the unit proves it itself. */
  readonly guard: Change | undefined;
  /** The events by list of endpoints; a list is the same object for all events that share it. */
  readonly lists: ReadonlyMap<readonly KnownEndpoint[], readonly EventEntry[]>;
  readonly total: number;
};

function guardsOf({ guard }: Gathered): readonly Change[] {
  return guard === undefined ? [] : [guard];
}

/** Endpoints examined in one turn of the event loop: about 5 ms if each has its own rule. */
const endpointsPerTurn = 8192;

/** @returns a promise only if it needs several turns of the event loop, or rows that the store has to be waited for */
function gather(
  directory: Pick<EndpointDirectory, 'matching'>,
  unit: Unit,
  rows: UnitRows,
): MaybePromise<Gathered> {
  const gathering = new Gathering(directory, unit, rows);
  const complete = (): MaybePromise<Gathered> => {
    const loading = rows.load();
    return loading === undefined ? gathering : loading.then(() => gather(directory, unit, rows));
  };
  return gathering.advance() ? complete() : advanceLater(gathering).then(complete);
}

async function advanceLater(gathering: Gathering): Promise<void> {
  do await new Promise((resolve) => setImmediate(resolve));
  while (!gathering.advance());
}

/** The rows that the rules of endpoints name, made when the first of them asks: for most events none does. */
class UnitRows {
  readonly #store: Pick<Store, 'read'>;
  readonly #unit: Unit;
  #rows: RelatedRows | undefined;

  constructor(store: Pick<Store, 'read'>, unit: Unit) {
    this.#store = store;
    this.#unit = unit;
  }

  readonly find: RelatedRows['find'] = (table, id) => {
    this.#rows ??= new RelatedRows(withOwn(this.#store, this.#unit));
    return this.#rows.find(table, id);
  };

  load(): Promise<void> | undefined {
    return this.#rows?.load();
  }
}

/** The rows as the unit leaves them: rules look at them once it is committed. */
function withOwn(store: Pick<Store, 'read'>, { changes }: Unit): Pick<Store, 'read'> {
  return {
    read(table, id) {
      const own = changes.find(
        (change) => change.table === table && change.id === id && change.stays !== true,
      );
      if (own === undefined) return store.read(table, id);
      return own.next === null ? undefined : { id, rev: 0, ...own.next };
    },
  };
}

class Gathering implements Gathered {
  #lists: Map<readonly KnownEndpoint[], EventEntry[]> | undefined;
  guard: Change | undefined;
  total = 0;
  readonly #directory: Pick<EndpointDirectory, 'matching'>;
  readonly #events: readonly EventEntry[];
  readonly #isProven: boolean;
  readonly #leaving: ReadonlySet<string> | undefined;
  readonly #rows: UnitRows;
  /** Lists without the endpoints that leave. */
  #staying: Map<readonly KnownEndpoint[], readonly KnownEndpoint[]> | undefined;
  #next = 0;
  /** The endpoints with filters of the next event that are not judged yet, and those that it passed. */
  #filtered: { readonly left: Filtered[]; readonly passed: KnownEndpoint[] } | undefined;

  constructor(directory: Pick<EndpointDirectory, 'matching'>, { changes, events }: Unit, rows: UnitRows) {
    this.#directory = directory;
    this.#rows = rows;
    this.#events = events;
    this.#isProven = endsGeneration(changes);
    this.#leaving = leavingEndpoints(changes);
  }

  get lists(): Gathered['lists'] {
    return this.#lists ?? new Map();
  }

  /** @returns true when all events are matched */
  advance(): boolean {
    for (let examined = 0; this.#next < this.#events.length; this.#next += 1) {
      const event = this.#events[this.#next];
      if (event === undefined) break;
      if (this.#filtered === undefined) {
        if (examined >= endpointsPerTurn) return false;
        const { groups, filtered, guard } = this.#directory.matching(event, this.#rows.find);
        // The first guard: if the endpoints change in a later turn, the unit is refused.
        if (!this.#isProven) this.guard ??= guard;
        for (const group of groups) {
          examined += group.length;
          this.#addGroup(event, group);
        }
        if (filtered.length === 0) continue;
        examined += filtered.length;
        this.#filtered = { left: filtered, passed: [] };
      }
      const { left, passed } = this.#filtered;
      if (!judgeSome(left, passed)) return false;
      this.#filtered = undefined;
      this.#addGroup(event, passed);
    }
    return true;
  }

  #addGroup(event: EventEntry, group: readonly KnownEndpoint[]): void {
    this.#add(event, this.#leaving === undefined ? group : this.#withoutLeaving(group, this.#leaving));
  }

  #add(event: EventEntry, endpoints: readonly KnownEndpoint[]): void {
    if (endpoints.length === 0) return;
    this.total += endpoints.length;
    this.#lists ??= new Map();
    const events = this.#lists.get(endpoints);
    if (events === undefined) this.#lists.set(endpoints, [event]);
    else events.push(event);
  }

  #withoutLeaving(group: readonly KnownEndpoint[], leaving: ReadonlySet<string>): readonly KnownEndpoint[] {
    this.#staying ??= new Map();
    const known = this.#staying.get(group);
    if (known !== undefined) return known;
    const staying = group.filter(({ endpoint }) => !leaving.has(endpoint.id));
    this.#staying.set(group, staying);
    return staying;
  }
}

function endsGeneration(changes: readonly Change[]): boolean {
  return changes.some(({ table, next }) => table === generationRow.table && next !== null);
}

/** Endpoints that the unit removes or disables. */
function leavingEndpoints(changes: readonly Change[]): ReadonlySet<string> | undefined {
  let leaving: Set<string> | undefined;
  for (const { table, id, next } of changes) {
    if (table !== endpointsCollection.name) continue;
    const isLeft = next === null || next.deletedAt !== null || readEndpoint(next.doc).status === 'disabled';
    if (isLeft) leaving = (leaving ?? new Set()).add(id);
  }
  return leaving;
}
