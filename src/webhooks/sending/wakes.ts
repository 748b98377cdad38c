/**
 * How the sender hears, without asking, that an endpoint has something due.
 *
 * In the process that commits, by being told. In others that share the store, in two ways: an event that another process wrote is met in
 * the log, which is followed from its head, and matched against the directory as that process did; what no event tells of (a
 * resend, a test, a recovery, deliveries that an event owed) puts a row into a table of its own, in the same unit. Both are hints: an endpoint is named too often rather
 * than too seldom, and where a hint is lost the sender's own round over all endpoints finds what is due.
 */

import { idField } from '../../model/field.ts';
import { always } from '../../model/filter.ts';
import type { Observe } from '../../observe/observation.ts';
import type { Services } from '../../store/capabilities.ts';
import { keptRow } from '../../store/kept-row.ts';
import { isTailFull } from '../../store/page-of-rows.ts';
import type { Change, Row } from '../../store/store.ts';
import { oneAtATime } from '../../store/table-looks.ts';
import { deliveriesPerUnitMax } from './fan-out/owed-deliveries.ts';
import type { EndpointDirectory } from './known-endpoint.ts';
import { wakesTable } from './sending-tables.ts';

export type Wakes = {
  /**
   * What a unit must contain that makes something due without an event, so that other processes hear of it; often nothing.
   * @param deliveryId of a delivery that somebody asked for
   */
  changesFor(endpointId: string, deliveryId?: string): readonly Change[];
  /** The same for several, without a delivery that somebody asked for: at most one row. */
  changesForAll(endpointIds: ReadonlySet<string>): readonly Change[];
  /** Tells this process, after the commit. */
  announce(endpointIds: Iterable<string>, deliveryId?: string): void;
  /** Calls back with an endpoint that may have something due, however that came about and in whichever process. Returns the way to stop. */
  onWake(listener: WakeListener): () => void;
  close(): Promise<void>;
};

/** `deliveryId`: of a delivery that somebody asked for. */
export type WakeListener = (endpointId: string, deliveryId?: string) => void;

export type WakesOptions = Pick<Services, 'store' | 'clock' | 'newId' | 'observe'> & {
  readonly directory: Pick<EndpointDirectory, 'matching'>;
};

/** Hears of everything that is committed from then on. @throws StoreUnavailable */
export async function createWakes(options: WakesOptions): Promise<Wakes> {
  const { store, newId, clock } = options;
  const listeners = new Set<WakeListener>();

  function announce(endpointIds: Iterable<string>, deliveryId?: string): void {
    for (const id of endpointIds) for (const listener of listeners) listener(id, deliveryId);
  }

  const followers = store.shared
    ? await Promise.all([followEvents(options, announce), followWakeRows(options, announce)])
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
    onWake(listener) {
      const call: WakeListener = (endpointId, deliveryId) => listener(endpointId, deliveryId);
      listeners.add(call);
      return () => void listeners.delete(call);
    },
    async close() {
      await Promise.all(followers.map((follower) => follower.close()));
    },
  };
}

/* Meets the events of all processes in the log, and tells which endpoints they go to. */

/** Events of one reading, and octets of their documents, which are all in memory. */
const eventsPerReadMax = 256;
const bytesPerReadMax = 1024 * 1024;

/** From the head of the log on. @throws StoreUnavailable */
async function followEvents(
  { store, directory, observe }: Followed & { readonly directory: Pick<EndpointDirectory, 'matching'> },
  announce: (endpointIds: Iterable<string>) => void,
): Promise<Follower> {
  let position = await store.head();

  async function read(): Promise<void> {
    for (let isFull = true; isFull; ) {
      const entries = await store.tail(position, always, eventsPerReadMax, { bytesMax: bytesPerReadMax });
      const endpoints = new Set<string>();
      for (const entry of entries) {
        const { groups } = directory.matching(entry);
        const count = groups.reduce((sum, group) => sum + group.length, 0);
        // Their deliveries were owed, and were told of when they were made.
        if (count > deliveriesPerUnitMax) continue;
        for (const group of groups) for (const { endpoint } of group) endpoints.add(endpoint.id);
      }
      position = entries.at(-1) ?? position;
      isFull = isTailFull(entries, eventsPerReadMax, bytesPerReadMax);
      announce(endpoints);
    }
  }

  return createFollower({
    subscribe: (listener) => store.onAppend(listener),
    read,
    what: 'event log',
    observe,
  });
}

/* Reads the newest rows that other processes put to name an endpoint, and tells of those that it has not seen. */

/** Rows of one reading; they last a minute, and what is not among the newest waits for the sender's own round. */
const rowsPerReadMax = 256;

/** What a row says: one endpoint, or several. */
type WakeRow =
  | { readonly endpointId: string; readonly deliveryId?: string | undefined }
  | { readonly endpointIds: readonly string[] };

/** Tells of rows that come from then on. @throws StoreUnavailable */
async function followWakeRows(
  { store, observe }: Followed,
  announce: (endpointIds: Iterable<string>, deliveryId?: string) => void,
): Promise<Follower> {
  const plan = store.plan({
    table: wakesTable,
    filter: always,
    sort: [{ field: idField, direction: 'desc' }],
    limit: rowsPerReadMax,
  });
  let seenRev = 0;

  /** Revisions grow from unit to unit, whichever process and whatever its clock. */
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
  return createFollower({
    subscribe: (listener) => store.onChange(wakesTable, listener),
    read,
    what: 'wakes of other processes',
    observe,
  });
}

/*
 * Reads again whenever the store says that there may be something new: one reading at a time, one more for all that is said while it
 * runs. One that failed is done again after a second.
 */

const againAfterMs = 1000;

/** What everyone needs that follows the store. */
type Followed = Pick<Services, 'store' | 'observe'>;

type Follower = { close(): Promise<void> };

export type FollowerOptions = {
  /** Registers the listener with the store. Returns the way to stop. */
  readonly subscribe: (listener: () => void) => () => void;
  /** Takes in all there is. */
  readonly read: () => Promise<void>;
  /** What cannot be read, for the log. */
  readonly what: string;
  readonly observe: Observe;
};

export function createFollower({ subscribe, read, what, observe }: FollowerOptions): Follower {
  let timer: NodeJS.Timeout | undefined;
  let isClosed = false;
  const readOnce = oneAtATime(async () => {
    if (!isClosed) await read();
  });

  function soon(): void {
    readOnce().catch((error: unknown) => {
      if (isClosed) return;
      observe({ kind: 'sending-failed', what, error });
      clearTimeout(timer);
      timer = setTimeout(soon, againAfterMs);
      timer.unref();
    });
  }

  const stop = subscribe(soon);
  // For what came between the caller's look at where things stand and now.
  soon();
  return {
    async close() {
      isClosed = true;
      stop();
      clearTimeout(timer);
      await readOnce.idle();
    },
  };
}
