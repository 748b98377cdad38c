/**
 * The queues of endpoints with deliveries that are due (work/due-queue.ts): what sending knows of an endpoint besides, and which queues
 * are kept in memory.
 */
import type { Delivery } from '../../model/delivery.ts';
import type { Row, Store } from '../../store/store.ts';
import type { BreakerSettings } from '../work/breaker.ts';
import { type Budget, DueQueue, type DueQueueOptions } from '../work/due-queue.ts';
import { type DueIndex, DueRows, dueIndexOf } from '../work/due-rows.ts';
import type { Holding } from './capacity.ts';
import { deliveriesCollection } from './sending-tables.ts';
import { type TokenBucket, Window } from './window.ts';

/** Deliveries by endpoint: as many as its window, as many answers being written down, and a buffer. */
export const dueDeliveries: DueIndex = dueIndexOf(deliveriesCollection, 'endpointId', 8192);

/** A delivery that is due, as it was read. */
export type DueDelivery = {
  readonly id: string;
  readonly delivery: Delivery;
  readonly rev: number;
  readonly owner: string | null;
};

/** Rows that one read brings at most: more make the reads no cheaper. */
const wantedMax = 256;
/** Rows that one turn can use. */
const wantedMin = 4;
/** Rows that all endpoints together have in memory, about 1 KiB each, before a read brings no more than that. */
const bufferedMax = 8192;

export class EndpointQueue extends DueQueue<DueDelivery> {
  readonly window: Window;
  /** Attempts under way, as the capacity counts them. */
  readonly holding: Holding = { sending: 0, slow: 0 };
  /** Attempts that the window counts: under way, or failed and not understood yet. */
  underWay = 0;
  /** Ids of deliveries that somebody asked for (`ask` of delivery-attempt.ts). */
  readonly asked = new Set<string>();
  /** Attempts under way that somebody asked for. */
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

  /** Nothing of it is under way. */
  get idle(): boolean {
    return this.taken === 0 && this.asked.size === 0 && !this.reading;
  }

  /** Takes one that was asked for; one that was read and has not begun is taken as well. @returns false where it is under way */
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

/** Idle queues that are kept: about 2 KiB each. */
const idleQueuesMax = 1024;

export type EndpointQueuesOptions = {
  readonly store: Pick<Store, 'plan'>;
  readonly breaker: BreakerSettings;
  readonly random: () => number;
  readonly clock: () => number;
  readonly budget: Budget;
};

/**
 * The queues of the endpoints that have work, and of some that had lately: an idle one is kept while others need no room, because
 * making it costs more than looking at it, and longer while its endpoint asked to be left in peace.
 */
export class EndpointQueues {
  readonly #options: EndpointQueuesOptions;
  readonly #queues = new Map<string, EndpointQueue>();
  /** In the order in which they fell idle. */
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

  /** The queue of the endpoint, made where there is none. */
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

  /** It has nothing to do for now. One that has is passed over. */
  rest(queue: EndpointQueue): void {
    if (!queue.idle || this.#queues.get(queue.id) !== queue) return;
    this.#idle.delete(queue);
    this.#idle.add(queue);
    if (this.#idle.size <= idleQueuesMax) return;
    const now = this.#options.clock();
    for (const oldest of this.#idle) {
      this.#idle.delete(oldest);
      // One that is left alone is out of the list, and comes back to it when its time has come.
      if (oldest.notBefore > now) continue;
      this.#queues.delete(oldest.id);
      return;
    }
  }

  /** Its endpoint is gone or somebody else's. One with attempts under way is forgotten after them. */
  forget(queue: EndpointQueue): void {
    queue.drop();
    if (!queue.idle) return;
    this.#idle.delete(queue);
    if (this.#queues.get(queue.id) === queue) this.#queues.delete(queue.id);
  }
}
