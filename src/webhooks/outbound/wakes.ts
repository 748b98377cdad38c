/**
 * How the sender hears, without asking, that an endpoint has something due.
 *
 * In the process that commits, by being told. In others that share the store, in two ways: an event that another process wrote is met in
 * the log, which is followed from its head, and matched against the directory as that process did; what no event tells of (a
 * resend, a test, a recovery, deliveries that an event owed) puts a row into a table of its own, in the same unit. Both are hints: an endpoint is named too often rather
 * than too seldom, and where a hint is lost the sender's own round over all endpoints finds what is due.
 */
import type { Observe } from '../../observe/observation.ts';
import { keptRow } from '../../store/kept-row.ts';
import type { Change, Store } from '../../store/store.ts';
import { followEvents } from './fan-out/follow-events.ts';
import { followWakeRows, type WakeRow } from './fan-out/follow-wake-rows.ts';
import type { EndpointDirectory } from './known-endpoint.ts';
import { wakesTable } from './tables.ts';

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

export type WakesOptions = {
  readonly store: Store;
  readonly directory: Pick<EndpointDirectory, 'matching'>;
  /** Without a prefix. */
  readonly newId: () => string;
  /** Milliseconds since the epoch. */
  readonly clock: () => number;
  readonly observe: Observe;
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
