/**
 * The delivery engine (§6): sends due deliveries of this process's endpoints. It is the policy of sending for the
 * engine of due work (work/work-engine.ts): which endpoints exist, what each may be sent, and how they share the
 * capacity of the process.
 *
 * It does not interpret a response (conclude-delivery.ts) or schedule retries (work/schedule.ts).
 */
import { type Delivery, triggerOf } from '../../model/delivery.ts';
import type { Row } from '../../store/store.ts';
import { isAhead } from '../../work/due-rows.ts';
import { lookMs, WorkEngine, type WorkPolicy } from '../../work/work-engine.ts';
import { Capacity } from './capacity.ts';
import { ask, attempt, type EngineOptions, type EngineParts, sendAsked } from './delivery-attempt.ts';
import { type DueDelivery, type EndpointQueue, EndpointQueues } from './endpoint-queue.ts';
import { createRoster, isSendable, Looks, type Roster } from './endpoint-roster.ts';
import { type KnownEndpoint, partyOf } from './known-endpoint.ts';
import { TokenBucket } from './window.ts';

/**
 * Endpoints held back by their party's share that get a turn when an attempt ends, in addition to one for each free
 * place.
 */
const crowdedPerEnd = 8;
/** Time between two sweeps over all endpoints, for stores where other processes write and a wake may be lost. */
const sweepMs = 60_000;

export type EngineCounts = {
  readonly inFlight: number;
  readonly settling: number;
  /** Attempts under way that exceed `slowMs` (capacity.ts). */
  readonly slow: number;
  /** Deliveries in memory that have not begun; all others wait in the store. */
  readonly waiting: number;
  /** Endpoints that have a queue in memory. */
  readonly endpoints: number;
  /** Endpoints that have an alarm. */
  readonly alarms: number;
};

export type Engine = {
  /** Sends due deliveries until `drain`. */
  start(): Promise<void>;
  /** Begins no more attempts and waits at most `ms` milliseconds for those under way; then aborts them. */
  drain(ms: number): Promise<void>;
  counts(): EngineCounts;
};

export function createEngine(options: EngineOptions): Engine {
  return new DeliveryEngine(options);
}

class DeliveryEngine implements Engine, WorkPolicy<DueDelivery, EndpointQueue> {
  readonly readsAtOnce = 16;
  readonly attemptsPerTurn = 4;
  readonly #options: EngineOptions;
  readonly #engine: WorkEngine<DueDelivery, EndpointQueue>;
  readonly #parts: EngineParts;
  readonly #budget = { buffered: 0 };
  readonly #queues: EndpointQueues;
  readonly #capacity: Capacity;
  readonly #looks: Looks;
  /** Queues held back by their own share of the capacity. */
  readonly #held = new Set<EndpointQueue>();
  /** Queues held back by their party's share. */
  readonly #crowded = new Set<EndpointQueue>();
  readonly #asking = new Set<EndpointQueue>();
  #roster: Roster | undefined;
  #stopWakes: (() => void) | undefined;
  #stopSweeps: (() => void) | undefined;

  constructor(options: EngineOptions) {
    const { store, clock, random, settings } = options;
    const budget = this.#budget;
    this.#options = options;
    this.#engine = new WorkEngine(options, this);
    this.#queues = new EndpointQueues({ store, breaker: settings, random, clock, budget });
    this.#capacity = new Capacity(settings.webhookInFlightMax);
    this.#looks = new Looks(options, this.#engine.timers, this.#onDue);
    this.#parts = {
      ...{ ...options, engine: this.#engine, capacity: this.#capacity, asking: this.#asking },
      isAlone: this.#isAlone,
    };
  }

  async start(): Promise<void> {
    const { store, directory, wakes, lanes } = this.#options;
    const { timers } = this.#engine;
    this.#engine.start();
    this.#stopWakes = wakes.onWake((id, deliveryId, made) => this.wake(id, deliveryId, made));
    if (store.shared) this.#stopSweeps = timers.after(sweepMs, this.#sweep);
    const listeners = { onCome: this.#onCome, onLeave: this.#onLeave, onLanes: this.#onLanes };
    this.#roster = createRoster(directory, lanes, timers, listeners);
    this.#roster.review();
  }

  async drain(ms: number): Promise<void> {
    this.#stopWakes?.();
    this.#stopSweeps?.();
    this.#roster?.close();
    this.#looks.close();
    await this.#engine.drain(ms);
  }

  counts(): EngineCounts {
    const capacity = this.#capacity;
    return {
      ...{ inFlight: capacity.sending, settling: capacity.settling },
      ...{ slow: capacity.slowAt(this.#options.monotonic()), waiting: this.#budget.buffered },
      ...{ endpoints: this.#queues.size, alarms: this.#engine.alarm.size },
    };
  }

  /**
   * Gives a turn to an endpoint that may have a due delivery.
   * @param made a new delivery, as committed just now
   */
  wake(id: string, deliveryId?: string, made?: Row): void {
    const { directory, lanes } = this.#options;
    const engine = this.#engine;
    const known = directory.get(id);
    // An endpoint that the directory does not know yet is looked at when it does.
    if (!isSendable(known) || !lanes.owns(id)) return;
    const queue = this.#open(known);
    if (made !== undefined && queue.offer(made, this.#options.clock())) {
      engine.ready(queue);
      return;
    }
    queue.mayHoldMore = true;
    if (deliveryId !== undefined) ask(this.#parts, queue, deliveryId);
    // A taken row might be read as it was before it was settled.
    else if (queue.breaker.mode === 'open' && engine.isRunning && !queue.reading && queue.taken === 0) {
      void engine.heedAsked(queue);
    }
    engine.ready(queue);
  }

  partyOf(queue: EndpointQueue): string {
    const known = this.#options.directory.get(queue.id);
    return known === undefined ? '' : partyOf(known);
  }

  mayWork(queue: EndpointQueue): boolean {
    const { directory, lanes } = this.#options;
    if (isSendable(directory.get(queue.id)) && lanes.owns(queue.id)) return true;
    this.#queues.forget(queue);
    return false;
  }

  hasRoom(): boolean {
    return !this.#capacity.full;
  }

  isFull(queue: EndpointQueue): boolean {
    const known = this.#options.directory.get(queue.id);
    queue.window.setMax(this.#inFlightMaxOf(known));
    return queue.underWay >= queue.window.size;
  }

  admits(queue: EndpointQueue): boolean {
    if (this.#isOverRate(queue)) return false;
    const { turns } = this.#engine;
    const party = this.partyOf(queue);
    const waiting = { parties: turns.parties, endpoints: turns.sizeOf(party) };
    if (!this.#capacity.admits(queue.holding, party, waiting, this.#options.monotonic())) {
      this.#held.add(queue);
      return false;
    }
    if (this.#capacity.isFullFor(party, waiting.parties, this.#isAlone())) {
      this.#crowded.add(queue);
      return false;
    }
    return true;
  }

  #isOverRate(queue: EndpointQueue): boolean {
    const { directory, monotonic, clock } = this.#options;
    const ratePerSecond = directory.get(queue.id)?.endpoint.ratePerSecond;
    if (ratePerSecond === undefined) {
      queue.bucket = undefined;
      return false;
    }
    queue.bucket ??= new TokenBucket(ratePerSecond, monotonic());
    queue.bucket.setRate(ratePerSecond);
    const waitMs = queue.bucket.waitMs(monotonic());
    if (waitMs > 0) this.#engine.alarm.set(queue.id, clock() + waitMs);
    return waitMs > 0;
  }

  attempt(queue: EndpointQueue, due: DueDelivery, probe: boolean): void {
    const { delivery, rev, owner } = due;
    const endpoint = this.#options.directory.get(queue.id);
    if (endpoint === undefined)
      throw new Error(`an attempt began for the endpoint ${queue.id}, which the directory does not have`);
    const claim = { delivery, rev, owner, endpoint, trigger: triggerOf(delivery) };
    attempt(this.#parts, queue, claim, probe);
    // If reading takes time, read while there is still something to send.
    const isLow = 2 * queue.buffered < queue.window.size;
    if (queue.mayHoldMore && this.#options.store.shared && isLow) this.#engine.readAhead(queue);
  }

  ended(): void {
    for (const queue of this.#asking) void sendAsked(this.#parts, queue);
    if (this.#capacity.easy && this.#held.size > 0) {
      for (const queue of this.#held) this.#engine.ready(queue);
      this.#held.clear();
    }
    let left = crowdedPerEnd + this.#capacity.free;
    for (const queue of this.#crowded) {
      if (left === 0) break;
      left -= 1;
      this.#crowded.delete(queue);
      this.#engine.ready(queue);
    }
  }

  rests(queue: EndpointQueue): void {
    this.#queues.rest(queue);
  }

  /** Moves a delivery requested by a recovery to the front, so that it becomes the probe. */
  isAsked(queue: EndpointQueue, row: Row): boolean {
    if (triggerOf(JSON.parse(row.doc) as Delivery) !== 'manual') return false;
    queue.prefer(row);
    return queue.buffered > 0;
  }

  failed(doing: 'reading' | 'settling', error: unknown): void {
    const what = doing === 'reading' ? 'reading deliveries' : 'storing the outcome of an attempt';
    this.#options.observe({ kind: 'sending-failed', what, error });
  }

  #open(known: KnownEndpoint): EndpointQueue {
    return this.#queues.open(known.endpoint.id, this.#inFlightMaxOf(known));
  }

  #inFlightMaxOf(known: KnownEndpoint | undefined): number {
    return known?.endpoint.maxInFlight ?? this.#options.settings.webhookEndpointInFlightDefault;
  }

  readonly #isAlone = (): boolean => (this.#roster?.parties ?? 0) <= 1;

  readonly #onDue = (id: string, delivery: Row): void => {
    const { alarm } = this.#engine;
    const { dueAt } = JSON.parse(delivery.doc) as Pick<Delivery, 'dueAt'>;
    if (dueAt === null) return;
    const now = this.#options.clock();
    // Behind a row that waits by its schedule may be those of a clock that was ahead.
    const at = Math.min(Date.parse(dueAt), now + lookMs);
    if (at <= now || isAhead(delivery, now)) this.wake(id);
    else if (at < (alarm.at(id) ?? Number.POSITIVE_INFINITY)) alarm.set(id, at);
  };

  readonly #onCome = (id: string, returning: boolean): void => {
    const known = this.#options.directory.get(id);
    if (returning && known !== undefined) {
      const queue = this.#open(known);
      queue.breaker.reset();
      queue.window.paused();
      queue.notBefore = 0;
    }
    this.#looks.add(id);
  };

  readonly #onLeave = (id: string): void => {
    this.#engine.alarm.clear(id);
    const queue = this.#queues.get(id);
    if (queue === undefined) return;
    this.#engine.turns.remove(queue);
    this.#held.delete(queue);
    this.#crowded.delete(queue);
    this.#asking.delete(queue);
    queue.asked.clear();
    this.#queues.forget(queue);
  };

  readonly #onLanes = (): void => {
    for (const queue of this.#queues.all()) {
      queue.drop();
      if (queue.mayHoldMore) this.#engine.ready(queue);
    }
  };

  readonly #sweep = (): void => {
    for (const id of this.#roster?.ids() ?? []) this.#looks.add(id);
    this.#stopSweeps = this.#engine.timers.after(sweepMs, this.#sweep);
  };
}
