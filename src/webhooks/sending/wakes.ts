/**
 * Wakes: how the sender learns, without polling, that an endpoint has something due.
 *
 * The process that commits announces it in memory, with the rows of new deliveries. Other processes on the store learn
 * it in two ways: they follow the event log from its head and match events of other processes against their own
 * directory; and whatever no event announces (a resend, a test, a recovery, owed deliveries) writes a row into a table
 * of its own, in the same unit. Both are hints: an endpoint may be named without need, and if a hint is lost, the
 * sender's sweep over all endpoints finds what is due.
 */
import { memoryBounds } from '../../memory/bounds.ts';
import { OctetCache } from '../../memory/octet-cache.ts';
import { idField } from '../../model/field.ts';
import { always } from '../../model/filter.ts';
import type { Services } from '../../store/capabilities.ts';
import { createFollower, type Follower, type Signal } from '../../store/follower.ts';
import { nextTurn } from '../../store/in-batches.ts';
import { isTailFull } from '../../store/page-of-rows.ts';
import { judged, RelatedRows } from '../../store/related-rows.ts';
import { type Change, keptRow, type Row } from '../../store/store.ts';
import { type EndpointDirectory, judgeSome, type KnownEndpoint } from './known-endpoint.ts';
import { deliveriesPerUnitMax, wakesTable } from './sending-tables.ts';

export type Wakes = {
  /**
   * Returns the changes that announce due work without an event to other processes; often none.
   * @param deliveryId of a requested delivery
   */
  changesFor(endpointId: string, deliveryId?: string): readonly Change[];
  /** The same for several endpoints without a requested delivery: at most one row. */
  changesForAll(endpointIds: ReadonlySet<string>): readonly Change[];
  /** Announces it in this process, after the commit. */
  announce(endpointIds: Iterable<string>, deliveryId?: string): void;
  /** Announces a new delivery in this process, after the commit. */
  announceMade(endpointId: string, delivery: Row): void;
  /**
   * Notes before the commit of an event that this process announces its deliveries: the log then need not. `isOwn`
   * false: the outcome of the commit is unknown.
   */
  noteEvent(eventId: string, isOwn: boolean): void;
  /**
   * Calls back with each endpoint that may have something due, in any process; returns a function that removes the
   * listener.
   */
  onWake(listener: WakeListener): () => void;
  close(): Promise<void>;
};

/** `deliveryId`: of a requested delivery; `made`: a new one. */
export type WakeListener = (endpointId: string, deliveryId?: string, made?: Row) => void;

/** Announces everything that is committed from then on. @throws StoreUnavailable */
export async function createWakes(
  services: Services,
  directory: Pick<EndpointDirectory, 'matching'>,
): Promise<Wakes> {
  const { store, newId, clock } = services;
  const listeners = new Set<WakeListener>();

  function announce(endpointIds: Iterable<string>, deliveryId?: string): void {
    for (const id of endpointIds) for (const listener of listeners) listener(id, deliveryId);
  }

  const ownEvents = new OctetCache<true>({ octetsMax: memoryBounds.ownEvents.octets, octetsOf: () => 0 });
  const followers = store.shared
    ? await Promise.all([
        followEvents(services, directory, ownEvents, announce),
        followWakeRows(services, announce),
      ])
    : [];
  function rowsFor(wake: WakeRow): readonly Change[] {
    if (!store.shared) return [];
    const at = clock();
    const next = keptRow(JSON.stringify(wake), null, at, at);
    return [{ table: wakesTable, id: newId(), expect: { absent: true }, next }];
  }

  return {
    changesFor: (endpointId, deliveryId) => rowsFor({ endpointId, deliveryId }),
    changesForAll: (endpointIds) =>
      endpointIds.size === 0 ? [] : rowsFor({ endpointIds: [...endpointIds] }),
    announce,
    announceMade(endpointId, delivery) {
      for (const listener of listeners) listener(endpointId, undefined, delivery);
    },
    noteEvent(eventId, isOwn) {
      if (!isOwn) ownEvents.delete(eventId);
      else if (store.shared) ownEvents.set(eventId, true);
    },
    onWake(listener) {
      const call: WakeListener = (...wake) => listener(...wake);
      listeners.add(call);
      return () => void listeners.delete(call);
    },
    async close() {
      await Promise.all(followers.map((follower) => follower.close()));
    },
  };
}

/** Bounds of one read, in events and in octets of documents, which are all in memory. */
const eventsPerReadMax = 256;
const bytesPerReadMax = 1024 * 1024;

/**
 * Follows events of all processes in the log, from its head, and announces their endpoints. @throws StoreUnavailable
 */
async function followEvents(
  services: Services,
  directory: Pick<EndpointDirectory, 'matching'>,
  ownEvents: OctetCache<true>,
  announce: (endpointIds: Iterable<string>) => void,
): Promise<Follower> {
  const { store } = services;
  let position = await store.head();

  async function read(): Promise<void> {
    for (let isFull = true; isFull; ) {
      const entries = await store.tail(position, always, eventsPerReadMax, { bytesMax: bytesPerReadMax });
      const endpoints = new Set<string>();
      for (const entry of entries) {
        if (ownEvents.get(entry.id) !== undefined) {
          ownEvents.delete(entry.id);
          continue;
        }
        const rows = new RelatedRows(store);
        const { groups, filtered } = await judged(rows, () => directory.matching(entry, rows.find));
        const passed: KnownEndpoint[] = [];
        while (!judgeSome(filtered, passed)) await nextTurn();
        const count = groups.reduce((sum, group) => sum + group.length, passed.length);
        // Such deliveries are owed; they are announced when they are made.
        if (count > deliveriesPerUnitMax) continue;
        for (const group of [...groups, passed]) for (const { endpoint } of group) endpoints.add(endpoint.id);
      }
      position = entries.at(-1) ?? position;
      isFull = isTailFull(entries, eventsPerReadMax, bytesPerReadMax);
      announce(endpoints);
    }
  }

  return startFollower(services, 'event log', read, (listener) => store.onAppend(listener));
}

/** Rows of one read. They last a minute; older ones wait for the sender's sweep. */
const rowsPerReadMax = 256;

/** The document of a row: one endpoint, or several. */
type WakeRow =
  | { readonly endpointId: string; readonly deliveryId?: string | undefined }
  | { readonly endpointIds: readonly string[] };

/** Announces rows that other processes write from then on. @throws StoreUnavailable */
async function followWakeRows(
  services: Services,
  announce: (endpointIds: Iterable<string>, deliveryId?: string) => void,
): Promise<Follower> {
  const { store } = services;
  const plan = store.plan({
    table: wakesTable,
    filter: always,
    sort: [{ field: idField, direction: 'desc' }],
    limit: rowsPerReadMax,
  });
  let seenRev = 0;

  /** Revisions grow from unit to unit in every process, whatever its clock. */
  async function unseen(): Promise<readonly Row[]> {
    const rows = await plan.rows({ from: 'start' });
    const fresh = rows.filter(({ rev }) => rev > seenRev);
    for (const { rev } of fresh) seenRev = Math.max(seenRev, rev);
    return fresh;
  }

  async function read(): Promise<void> {
    for (const { doc } of await unseen()) {
      const wake = JSON.parse(doc) as WakeRow;
      if ('endpointIds' in wake) announce(wake.endpointIds);
      else announce([wake.endpointId], wake.deliveryId);
    }
  }

  await unseen();
  return startFollower(services, 'wakes of other processes', read, (listener) =>
    store.onChange(wakesTable, listener),
  );
}

/** @param what name of what is read, for the log */
function startFollower(
  { observe }: Services,
  what: string,
  read: () => Promise<void>,
  signal: Signal,
): Follower {
  const follower = createFollower(read, (error) => observe({ kind: 'sending-failed', what, error }));
  follower.follow(signal);
  // For changes between the first read and the subscription.
  follower.soon();
  return follower;
}
