/**
 * The endpoints that this process sends for: enabled, with an active owner, and in one of its lanes. Compares the
 * directory and the lanes with their earlier state, and reports endpoints that came, changed or left.
 *
 * Changes are gathered for a moment, because one pass goes over all endpoints (1 ms for 10^4). Until then each attempt
 * checks the directory and the lanes itself, so nothing is sent because of an outdated roster.
 */
import type { Services } from '../../store/capabilities.ts';
import type { Row, Store } from '../../store/store.ts';
import { DueRows } from '../../work/due-queue.ts';
import type { Lanes } from '../../work/lanes.ts';
import type { Timers } from '../../work/timers.ts';
import { dueDeliveries } from './endpoint-queue.ts';
import { type EndpointDirectory, type KnownEndpoint, partyOf } from './known-endpoint.ts';

const gatherMs = 10;

type RosterListeners = {
  /** Reports an endpoint that came or changed. `returning`: it was disabled before. */
  readonly onCome: (id: string, returning: boolean) => void;
  readonly onLeave: (id: string) => void;
  /** Called at once when the lanes changed: rows read for them may be stale. */
  readonly onLanes: () => void;
};

export type Roster = {
  review(): void;
  ids(): Iterable<string>;
  /** Number of parties that have endpoints in this process. */
  readonly parties: number;
  close(): void;
};

/** Returns true if events may be sent to the endpoint, in whichever process its lane is. */
export function isSendable(known: KnownEndpoint | undefined): known is KnownEndpoint {
  return known !== undefined && known.endpoint.status === 'enabled' && known.principal !== undefined;
}

export function createRoster(
  directory: Pick<EndpointDirectory, 'all' | 'get' | 'onChange'>,
  lanes: Pick<Lanes, 'owns' | 'onChange'>,
  timers: Timers,
  { onCome, onLeave, onLanes }: RosterListeners,
): Roster {
  /** Revisions of this process's endpoints. */
  const ours = new Map<string, number>();
  const disabled = new Set<string>();
  let parties = 0;
  let cancel: (() => void) | undefined;
  /** Lanes may have been lost for a time: endpoints of this process may have been given up meanwhile. */
  let lanesChanged = false;

  function review(): void {
    cancel?.();
    cancel = undefined;
    const seen = new Set<string>();
    for (const known of directory.all()) {
      const { id, status } = known.endpoint;
      const before = ours.get(id);
      if (isSendable(known) && lanes.owns(id)) {
        seen.add(partyOf(known));
        const returning = disabled.delete(id);
        if (before === known.rev && !returning && !lanesChanged) continue;
        ours.set(id, known.rev);
        onCome(id, returning);
      } else {
        if (status === 'disabled') disabled.add(id);
        if (ours.delete(id)) onLeave(id);
      }
    }
    for (const id of ours.keys()) {
      if (directory.get(id) !== undefined) continue;
      ours.delete(id);
      onLeave(id);
    }
    parties = seen.size;
    lanesChanged = false;
    for (const id of disabled) if (directory.get(id) === undefined) disabled.delete(id);
  }

  function soon(): void {
    cancel ??= timers.after(gatherMs, review);
  }

  const stops = [
    directory.onChange(soon),
    lanes.onChange(() => {
      lanesChanged = true;
      onLanes();
      soon();
    }),
  ];
  return {
    review,
    ids: () => ours.keys(),
    get parties() {
      return parties;
    },
    close() {
      cancel?.();
      for (const stop of stops) stop();
    },
  };
}

type LookServices = Pick<Services, 'observe'> & { readonly store: Pick<Store, 'plan'> };

const looksAtOnce = 8;
const looksPerTurn = 32;
const againMs = 1000;

/**
 * Looks in the store, endpoint by endpoint, for the first due delivery: at the start, for endpoints that came, and in
 * the sweep that makes up for lost wakes. A few looks run concurrently and yield to the event loop: a look at an
 * embedded store takes 40 µs, and there may be 10^5.
 */
export class Looks {
  readonly #services: LookServices;
  readonly #timers: Timers;
  readonly #onDue: (endpointId: string, delivery: Row) => void;
  readonly #wanted = new Set<string>();
  #working = 0;
  #closed = false;

  /** @param onDue receives the delivery of an endpoint that is due first: its time is often past */
  constructor(services: LookServices, timers: Timers, onDue: (endpointId: string, delivery: Row) => void) {
    this.#services = services;
    this.#timers = timers;
    this.#onDue = onDue;
  }

  add(endpointId: string): void {
    this.#wanted.add(endpointId);
    if (this.#working >= looksAtOnce || this.#closed) return;
    this.#working += 1;
    void this.#work();
  }

  close(): void {
    this.#closed = true;
    this.#wanted.clear();
  }

  async #work(): Promise<void> {
    // Lets several workers share the endpoints that are added in one turn of the event loop.
    await Promise.resolve();
    let looked = 0;
    for (const id of this.#wanted) {
      this.#wanted.delete(id);
      try {
        const rows = new DueRows(this.#services.store, dueDeliveries, id).first(1);
        const [row] = rows instanceof Promise ? await rows : rows;
        if (this.#closed) break;
        if (row !== undefined) this.#onDue(id, row);
      } catch (error) {
        this.#failed(id, error);
        break;
      }
      looked += 1;
      if (looked % looksPerTurn === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    this.#working -= 1;
  }

  /** Pauses: the store is unavailable for all looks. */
  #failed(id: string, error: unknown): void {
    if (this.#closed) return;
    this.#services.observe({ kind: 'sending-failed', what: 'looking for deliveries', error });
    this.#wanted.add(id);
    this.#timers.after(againMs, () => {
      if (!this.#closed) this.add(id);
    });
  }
}
