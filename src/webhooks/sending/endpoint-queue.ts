/**
 * The queues of endpoints with due deliveries (work/due-queue.ts), with the state that sending keeps per endpoint, and
 * the choice of queues that stay in memory.
 */
import type { Delivery } from '../../model/delivery.ts';
import type { Row, Store } from '../../store/store.ts';
import type { BreakerSettings } from '../../work/breaker.ts';
import { type Budget, DueQueue, type DueQueueOptions } from '../../work/due-queue.ts';
import { type DueIndex, DueRows, dueIndexOf } from '../../work/due-rows.ts';
import type { Holding } from './capacity.ts';
import { deliveriesCollection } from './sending-tables.ts';
import { type TokenBucket, Window } from './window.ts';

/** Deliveries by endpoint: as many as its window, as many that are being settled, and a buffer. */
export const dueDeliveries: DueIndex = dueIndexOf(deliveriesCollection, 'endpointId', 8192);

/** A due delivery as read. */
export type DueDelivery = {
  readonly id: string;
  readonly delivery: Delivery;
  readonly rev: number;
  readonly owner: string | null;
};

/** Greatest number of rows in a read: larger reads are no cheaper per row. */
const wantedMax = 256;
/** Rows that one turn can use. */
const wantedMin = 4;
/** Rows of all endpoints in memory, about 1 KiB each, above which a read returns at most `wantedMin`. */
const bufferedMax = 8192;

export class EndpointQueue extends DueQueue<DueDelivery> {
  readonly window: Window;
  /** Attempts under way, as counted by the capacity. */
  readonly holding: Holding = { sending: 0, slow: 0 };
  /** Attempts counted in the window: under way, or failed and not yet evaluated. */
  underWay = 0;
  /** Ids of requested deliveries (`ask` of delivery-attempt.ts). */
  readonly asked = new Set<string>();
  askedUnderWay = 0;
  bucket: TokenBucket | undefined;

  constructor({ inFlightMax, ...options }: DueQueueOptions & { readonly inFlightMax: number }) {
    super(options);
    this.window = new Window(inFlightMax);
  }

  get lane(): string {
    return this.id;
  }

  get wanted(): number {
    const most = this.budget.buffered < bufferedMax ? wantedMax : wantedMin;
    return this.taken + Math.min(Math.max(2 * this.window.size, wantedMin), most);
  }

  get idle(): boolean {
    return this.taken === 0 && this.asked.size === 0 && !this.reading;
  }

  /** Takes a requested delivery, from the buffer too. @returns false if it is under way */
  takeAsked(id: string): boolean {
    if (!this.take(id)) return false;
    this.asked.delete(id);
    return true;
  }

  protected parse({ id, rev, owner, doc }: Row): {
    readonly due: DueDelivery;
    readonly dueAt: string | null;
  } {
    const delivery = JSON.parse(doc) as Delivery;
    return { due: { id, delivery, rev, owner }, dueAt: delivery.dueAt };
  }
}

/** Idle queues kept in memory, about 2 KiB each. */
const idleQueuesMax = 1024;

export type EndpointQueuesOptions = {
  readonly store: Pick<Store, 'plan'>;
  readonly breaker: BreakerSettings;
  readonly random: () => number;
  readonly clock: () => number;
  readonly budget: Budget;
};

/**
 * The queues of endpoints that have work, and of some that recently had: idle queues stay while there is room, because
 * creating one costs more than keeping it, and those that are paused stay until the pause ends.
 */
export class EndpointQueues {
  readonly #options: EndpointQueuesOptions;
  readonly #queues = new Map<string, EndpointQueue>();
  /** In the order in which they became idle. */
  readonly #idle = new Set<EndpointQueue>();

  constructor(options: EndpointQueuesOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#queues.size;
  }

  all(): Iterable<EndpointQueue> {
    return this.#queues.values();
  }

  get(id: string): EndpointQueue | undefined {
    return this.#queues.get(id);
  }

  /** Returns the queue of the endpoint; creates it if necessary. */
  open(id: string, inFlightMax: number): EndpointQueue {
    const known = this.#queues.get(id);
    if (known !== undefined) {
      this.#idle.delete(known);
      return known;
    }
    const { store, breaker, random, budget } = this.#options;
    const rows = new DueRows(store, dueDeliveries, id);
    const queue = new EndpointQueue({ id, rows, inFlightMax, breaker, random, budget });
    this.#queues.set(id, queue);
    return queue;
  }

  /** Notes that a queue is idle. Does nothing for a queue with work. */
  rest(queue: EndpointQueue): void {
    if (!queue.idle || this.#queues.get(queue.id) !== queue) return;
    this.#idle.delete(queue);
    this.#idle.add(queue);
    if (this.#idle.size <= idleQueuesMax) return;
    const now = this.#options.clock();
    for (const oldest of this.#idle) {
      this.#idle.delete(oldest);
      // A paused queue leaves the list, and returns to it after the pause.
      if (oldest.notBefore > now) continue;
      this.#queues.delete(oldest.id);
      return;
    }
  }

  /**
   * Forgets a queue whose endpoint is gone or in another process's lane; with attempts under way, only after they end.
   */
  forget(queue: EndpointQueue): void {
    queue.drop();
    if (!queue.idle) return;
    this.#idle.delete(queue);
    if (this.#queues.get(queue.id) === queue) this.#queues.delete(queue.id);
  }
}
