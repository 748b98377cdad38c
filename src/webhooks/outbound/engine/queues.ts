/**
 * The queues of the endpoints that have work, and of some that had lately: an idle one is kept while others need no room, because
 * making it costs more than looking at it, and longer while its endpoint asked to be left in peace.
 */
import type { Store } from '../../../store/store.ts';
import type { BreakerSettings } from './breaker.ts';
import { DueRows, dueDeliveries } from './due-rows.ts';
import { type Budget, EndpointQueue } from './endpoint-queue.ts';

/** Idle queues that are kept: about 2 KiB each. */
const idleQueuesMax = 1024;

export type QueuesOptions = {
  readonly store: Pick<Store, 'plan'>;
  readonly breaker: BreakerSettings;
  readonly random: () => number;
  readonly clock: () => number;
  readonly budget: Budget;
};

export class Queues {
  readonly #options: QueuesOptions;
  readonly #queues = new Map<string, EndpointQueue>();
  /** In the order in which they fell idle. */
  readonly #idle = new Set<EndpointQueue>();

  constructor(options: QueuesOptions) {
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
