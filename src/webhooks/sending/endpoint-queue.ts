/**
 * The queues of endpoints with due deliveries (work/due-queue.ts), with the state and the limits that sending keeps per endpoint, and
 * the choice of queues that stay in memory.
 */
import type { Delivery } from '../../model/delivery.ts';
import type { Services } from '../../store/capabilities.ts';
import type { Row, Store } from '../../store/store.ts';
import { type Budget, type DueIndex, DueQueue, DueRows, dueIndexOf } from '../../work/due-queue.ts';
import { Breaker, type BreakerSettings } from '../../work/retries.ts';
import type { Holding } from './capacity.ts';
import { deliveriesCollection } from './sending-tables.ts';

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
  /** Ids of requested deliveries (delivery-engine.ts). */
  readonly asked = new Set<string>();
  askedUnderWay = 0;
  bucket: TokenBucket | undefined;

  constructor(rows: DueRows, breaker: Breaker, budget: Budget, inFlightMax: number) {
    super(rows, breaker, budget);
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

type QueueServices = Pick<Services, 'clock'> & {
  readonly store: Pick<Store, 'plan'>;
  readonly settings: BreakerSettings;
};

/**
 * The queues of endpoints that have work, and of some that recently had: idle queues stay while there is room, because
 * creating one costs more than keeping it, and those that are paused stay until the pause ends.
 */
export class EndpointQueues {
  readonly #services: QueueServices;
  readonly #uniform: () => number;
  readonly #budget: Budget;
  readonly #queues = new Map<string, EndpointQueue>();
  /** In the order in which they became idle. */
  readonly #idle = new Set<EndpointQueue>();

  /** @param uniform returns numbers uniformly from 0 to 1 */
  constructor(services: QueueServices, uniform: () => number, budget: Budget) {
    this.#services = services;
    this.#uniform = uniform;
    this.#budget = budget;
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
    const { store, settings } = this.#services;
    const rows = new DueRows(store, dueDeliveries, id);
    const queue = new EndpointQueue(rows, new Breaker(settings, this.#uniform), this.#budget, inFlightMax);
    this.#queues.set(id, queue);
    return queue;
  }

  /** Notes that a queue is idle. Does nothing for a queue with work. */
  rest(queue: EndpointQueue): void {
    if (!queue.idle || this.#queues.get(queue.id) !== queue) return;
    this.#idle.delete(queue);
    this.#idle.add(queue);
    if (this.#idle.size <= idleQueuesMax) return;
    const now = this.#services.clock();
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

/**
 * The number of attempts to one endpoint that may be under way.
 *
 * Two modes:
 * - steady: a full window of successes adds one, up to the endpoint's bound. It begins here, at the bound.
 * - ramp, after a pause: starts at one, and each success adds one, so that the window doubles in one response time. It
 *   becomes steady at the bound or at the first signal to slow down. A backlog thus drains gradually.
 *
 * A signal to slow down halves the window, once for all attempts that were under way.
 */
export class Window {
  #max: number;
  #size: number;
  #ramp = false;
  #successes = 0;
  /** Attempts are numbered as they begin; signals from attempts up to `#heeded` are ignored. */
  #begun = 0;
  #heeded = 0;

  /** @param max concurrent attempts, at least 1 */
  constructor(max: number) {
    this.#max = max;
    this.#size = max;
  }

  get size(): number {
    return this.#size;
  }

  setMax(max: number): void {
    if (max === this.#max) return;
    const wasFull = this.#size === this.#max;
    this.#max = max;
    this.#size = wasFull ? max : Math.min(this.#size, max);
  }

  /** @returns the number of the attempt that begins */
  began(): number {
    this.#begun += 1;
    return this.#begun;
  }

  succeeded(): void {
    if (this.#size >= this.#max) {
      this.#ramp = false;
      return;
    }
    this.#successes += 1;
    if (!this.#ramp && this.#successes < this.#size) return;
    this.#successes = 0;
    this.#size += 1;
  }

  /** @param attempt its number */
  slowDown(attempt: number): void {
    if (attempt <= this.#heeded) return;
    this.#heeded = this.#begun;
    this.#ramp = false;
    this.#successes = 0;
    this.#size = Math.max(1, this.#size >> 1);
  }

  /** Restarts at one. */
  paused(): void {
    this.#heeded = this.#begun;
    this.#ramp = true;
    this.#successes = 0;
    this.#size = 1;
  }
}

const burstSeconds = 0.1;

/**
 * Bounds the attempts per second to one endpoint. A tenth of a second's worth may begin at once, so that a timer with a
 * resolution of a millisecond reaches any rate; in one second at most 1.1 times the rate begin, or one more than the
 * rate.
 */
export class TokenBucket {
  #rate: number;
  #burst: number;
  #tokens: number;
  #filledAt: number;

  /**
   * @param rate attempts per second, above 0
   * @param at monotonic milliseconds, as in every method
   */
  constructor(rate: number, at: number) {
    this.#rate = rate;
    this.#burst = Math.max(1, rate * burstSeconds);
    this.#tokens = this.#burst;
    this.#filledAt = at;
  }

  setRate(rate: number): void {
    this.#rate = rate;
    this.#burst = Math.max(1, rate * burstSeconds);
    this.#tokens = Math.min(this.#tokens, this.#burst);
  }

  /** Milliseconds until an attempt may begin; 0: now. */
  waitMs(at: number): number {
    this.#fill(at);
    return this.#tokens >= 1 ? 0 : Math.ceil(((1 - this.#tokens) * 1000) / this.#rate);
  }

  take(): void {
    this.#tokens -= 1;
  }

  /** Of an attempt that did not begin. */
  giveBack(): void {
    this.#tokens = Math.min(this.#burst, this.#tokens + 1);
  }

  #fill(at: number): void {
    const elapsedMs = Math.max(0, at - this.#filledAt);
    this.#filledAt = at;
    // Rounding makes the sum of many small amounts fall short of one; without this term the caller would wait for that
    // remainder.
    const tokens = this.#tokens + (elapsedMs * this.#rate) / 1000 + 1e-9;
    this.#tokens = Math.min(this.#burst, tokens);
  }
}
