/**
 * The delivery engine (§6): sends due deliveries of this process's endpoints. It is the policy of sending for the
 * engine of due work (work/work-engine.ts): which endpoints exist, what each may be sent, and how they share the
 * capacity of the process. An accepted attempt frees its place in the window at once; a failed one only after its evaluation, so that an
 * endpoint that asks to slow down gets no more meanwhile.
 *
 * It does not interpret a response (conclude-delivery.ts) or schedule retries (work/retries.ts).
 */
import { memoryBounds } from '../../memory/bounds.ts';
import { type Delivery, triggerOf } from '../../model/delivery.ts';
import type { Services } from '../../store/capabilities.ts';
import type { Row, Store } from '../../store/store.ts';
import { isAhead } from '../../work/due-queue.ts';
import type { BreakerSettings } from '../../work/retries.ts';
import {
  type BegunAttempt,
  type DueWork,
  lookMs,
  WorkEngine,
  type WorkPolicy,
} from '../../work/work-engine.ts';
import { Capacity, type CapacityTicket } from './capacity.ts';
import {
  type Attempted,
  type Claim,
  isAcknowledged,
  isFailure,
  type Send,
  type Settle,
  type Settled,
} from './conclude-delivery.ts';
import { DeliveryLines, isDue } from './delivery-order.ts';
import { type DueDelivery, type EndpointQueue, EndpointQueues, TokenBucket } from './endpoint-queue.ts';
import { createRoster, isSendable, Looks, type Roster } from './endpoint-roster.ts';
import { isOwedBefore } from './fan-out/owed-deliveries.ts';
import { type EndpointDirectory, type KnownEndpoint, partyOf } from './known-endpoint.ts';
import { deliveriesCollection } from './sending-tables.ts';
import type { Wakes } from './wakes.ts';

/**
 * Endpoints held back by their party's share that get a turn when an attempt ends, in addition to one for each free
 * place.
 */
const crowdedPerEnd = 8;
/** Pause until the directory shows that the endpoint was disabled. */
const gonePauseMs = 5000;
/** Time between two sweeps over all endpoints, for stores where other processes write and a wake may be lost. */
const sweepMs = 60_000;

type EngineCounts = {
  readonly inFlight: number;
  readonly settling: number;
  /** Attempts under way that exceed `slowMs` (capacity.ts). */
  readonly slow: number;
  /** Deliveries in memory that have not begun; all others wait in the store. */
  readonly waiting: number;
  readonly endpoints: number;
  readonly alarms: number;
};

type EngineSettings = BreakerSettings & {
  readonly webhookInFlightMax: number;
  readonly webhookEndpointInFlightDefault: number;
  readonly webhookResendsInFlightMax: number;
};

type EngineServices = Pick<Services, 'clock' | 'observe'> & {
  readonly store: Pick<Store, 'plan' | 'read' | 'shared' | 'commit' | 'onChange'>;
  readonly settings: EngineSettings;
};

/** How deliveries become due, and what becomes of them. */
type Delivering = {
  readonly directory: Pick<EndpointDirectory, 'get' | 'all' | 'onChange'>;
  readonly wakes: Pick<Wakes, 'onWake'>;
  readonly send: Send;
  readonly settle: Settle;
};

export class DeliveryEngine implements WorkPolicy<DueDelivery, EndpointQueue> {
  readonly readsAtOnce = 16;
  readonly attemptsPerTurn = 4;
  readonly faults = {
    kind: 'sending-failed',
    reading: 'reading deliveries',
    attempt: 'making a delivery',
  } as const;
  readonly #services: EngineServices;
  readonly #work: Pick<DueWork, 'lanes' | 'timers'>;
  readonly #delivering: Delivering;
  readonly #engine: WorkEngine<DueDelivery, EndpointQueue>;
  readonly #lines: DeliveryLines;
  readonly #budget = { buffered: 0 };
  readonly #queues: EndpointQueues;
  readonly #capacity: Capacity;
  readonly #looks: Looks;
  /** Queues held back by their own share of the capacity. */
  readonly #held = new Set<EndpointQueue>();
  /** Queues held back by their party's share. */
  readonly #crowded = new Set<EndpointQueue>();
  /** Queues with requested deliveries that wait. */
  readonly #asking = new Set<EndpointQueue>();
  #roster: Roster | undefined;
  #stopSweeps: (() => void) | undefined;

  constructor(services: EngineServices, work: Omit<DueWork, 'starts'>, delivering: Delivering) {
    this.#services = services;
    this.#work = work;
    this.#delivering = delivering;
    this.#engine = new WorkEngine(services, work, this);
    this.#lines = new DeliveryLines(services, work.timers, this.#engine, (endpointId, rev) =>
      isOwedBefore(services.store, endpointId, rev),
    );
    this.#queues = new EndpointQueues(services, work.uniform, this.#budget);
    this.#capacity = new Capacity(services.settings.webhookInFlightMax);
    this.#looks = new Looks(services, work.timers, this.#onDue);
  }

  async start(): Promise<void> {
    const { lanes, timers } = this.#work;
    const { directory, wakes } = this.#delivering;
    this.#engine.start();
    const stopWakes = wakes.onWake((id, deliveryId, made) => this.wake(id, deliveryId, made));
    if (this.#services.store.shared) this.#sweepLater();
    this.#roster = createRoster(directory, lanes, timers, {
      ...{ onCome: this.#onCome, onLeave: this.#onLeave, onLanes: this.#onLanes },
    });
    this.#roster.review();
    this.#engine.untilDrain(stopWakes, this.#roster.close, () => {
      this.#stopSweeps?.();
      this.#looks.close();
    });
  }

  /** Begins no more attempts and waits at most `ms` milliseconds for those under way; then aborts them. */
  drain(ms: number): Promise<void> {
    return this.#engine.drain(ms);
  }

  counts(): EngineCounts {
    const capacity = this.#capacity;
    return {
      ...{ inFlight: capacity.sending, settling: capacity.settling },
      ...{ slow: capacity.slowAt(this.#work.timers.monotonic()), waiting: this.#budget.buffered },
      ...{ endpoints: this.#queues.size, alarms: this.#engine.alarm.size },
    };
  }

  /**
   * Gives a turn to an endpoint that may have a due delivery.
   * @param made a new delivery, as committed just now
   */
  wake(id: string, deliveryId?: string, made?: Row): void {
    const engine = this.#engine;
    const known = this.#known(id);
    // An endpoint that the directory does not know yet is looked at when it does.
    if (!isSendable(known) || !this.#work.lanes.owns(id)) return;
    const queue = this.#open(known);
    if (made !== undefined && queue.offer(made, this.#services.clock())) {
      engine.ready(queue);
      return;
    }
    queue.mayHoldMore = true;
    if (deliveryId !== undefined) this.#ask(queue, deliveryId);
    // A taken row might be read as it was before it was settled.
    else if (queue.breaker.mode === 'open' && engine.isRunning && !queue.reading && queue.taken === 0) {
      void engine.heedAsked(queue);
    }
    engine.ready(queue);
  }

  partyOf(queue: EndpointQueue): string {
    const known = this.#known(queue.id);
    return known === undefined ? '' : partyOf(known);
  }

  mayWork(queue: EndpointQueue): boolean {
    if (isSendable(this.#known(queue.id)) && this.#work.lanes.owns(queue.id)) return true;
    this.#queues.forget(queue);
    return false;
  }

  hasRoom(): boolean {
    return !this.#capacity.full;
  }

  isFull(queue: EndpointQueue): boolean {
    const known = this.#known(queue.id);
    queue.window.setMax(this.#inFlightMaxOf(known));
    return queue.underWay >= queue.window.size;
  }

  admits(queue: EndpointQueue): boolean {
    if (this.#isOverRate(queue)) return false;
    const { turns } = this.#engine;
    const party = this.partyOf(queue);
    const waiting = { parties: turns.parties, endpoints: turns.sizeOf(party) };
    if (!this.#capacity.admits(queue.holding, party, waiting, this.#work.timers.monotonic())) {
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
    const now = this.#work.timers.monotonic();
    const ratePerSecond = this.#known(queue.id)?.endpoint.ratePerSecond;
    if (ratePerSecond === undefined) {
      queue.bucket = undefined;
      return false;
    }
    queue.bucket ??= new TokenBucket(ratePerSecond, now);
    queue.bucket.setRate(ratePerSecond);
    const waitMs = queue.bucket.waitMs(now);
    if (waitMs > 0) this.#engine.alarm.set(queue.id, this.#services.clock() + waitMs);
    return waitMs > 0;
  }

  attempt({ queue, due, probe }: BegunAttempt<DueDelivery, EndpointQueue>): void {
    const { delivery, rev, owner } = due;
    const endpoint = this.#known(queue.id);
    if (endpoint === undefined)
      throw new Error(`an attempt began for the endpoint ${queue.id}, which the directory does not have`);
    const claim = { delivery, rev, owner, endpoint, trigger: triggerOf(delivery) };
    this.#attempt(queue, due, claim, probe);
    // If reading takes time, read while there is still something to send.
    const isLow = 2 * queue.buffered < queue.window.size;
    if (queue.mayHoldMore && this.#services.store.shared && isLow) this.#engine.read(queue);
  }

  ended(): void {
    for (const queue of this.#asking) void this.#sendAsked(queue);
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

  #known(id: string): KnownEndpoint | undefined {
    return this.#delivering.directory.get(id);
  }

  #open(known: KnownEndpoint): EndpointQueue {
    return this.#queues.open(known.endpoint.id, this.#inFlightMaxOf(known));
  }

  #inFlightMaxOf(known: KnownEndpoint | undefined): number {
    return known?.endpoint.maxInFlight ?? this.#services.settings.webhookEndpointInFlightDefault;
  }

  /** Returns true if all endpoints of this process belong to one party. */
  #isAlone(): boolean {
    return (this.#roster?.parties ?? 0) <= 1;
  }

  readonly #onDue = (id: string, delivery: Row): void => {
    const { alarm } = this.#engine;
    const { dueAt } = JSON.parse(delivery.doc) as Pick<Delivery, 'dueAt'>;
    if (dueAt === null) return;
    const now = this.#services.clock();
    // Behind a row that waits by its schedule may be those of a clock that was ahead.
    const at = Math.min(Date.parse(dueAt), now + lookMs);
    if (at <= now || isAhead(delivery, now)) this.wake(id);
    else if (at < (alarm.at(id) ?? Number.POSITIVE_INFINITY)) alarm.set(id, at);
  };

  readonly #onCome = (id: string, returning: boolean): void => {
    const known = this.#known(id);
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

  #sweepLater(): void {
    this.#stopSweeps = this.#work.timers.after(sweepMs, () => {
      for (const id of this.#roster?.ids() ?? []) this.#looks.add(id);
      this.#sweepLater();
    });
  }

  /** Makes the attempt, in its turn. Takes its share of window, rate and capacity before it returns. */
  #attempt(queue: EndpointQueue, due: DueDelivery, claim: Claim, probe: boolean): void {
    queue.bucket?.take();
    const isUnderWay = claim.isAsked !== true;
    if (isUnderWay) queue.underWay += 1;
    const number = queue.window.began();
    const { timers } = this.#work;
    const ticket = this.#capacity.begin(queue.holding, partyOf(claim.endpoint), timers.monotonic());
    const attempt: Attempt = { queue, claim, probe, number, ticket, isUnderWay };
    if (claim.delivery.orderKey === undefined) this.#send(attempt);
    else void this.#sendInOrder(attempt, due);
  }

  /** Sends the delivery if it is the first of its line; if not, it waits. Never rejects. */
  async #sendInOrder(attempt: Attempt, due: DueDelivery): Promise<void> {
    const claim = await this.#lines.claim(attempt, due);
    if (claim !== undefined) {
      attempt.claim = claim;
      this.#send(attempt);
      return;
    }
    attempt.queue.bucket?.giveBack();
    this.#capacity.answered(attempt.ticket);
    this.#end(attempt);
  }

  #send(attempt: Attempt): void {
    this.#delivering.send(attempt.claim, this.#engine.working, {
      attempted: (attempted) => this.#attempted(attempt, attempted),
      failed: (error) => this.#failed(attempt, error),
    });
  }

  #attempted(attempt: Attempt, attempted: Attempted): void {
    const { settle } = this.#delivering;
    this.#capacity.answered(attempt.ticket);
    if (isAcknowledged(attempted)) {
      leaveWindow(attempt);
      this.#engine.ready(attempt.queue);
    }
    settle.together(attempt.claim, attempted, (settled) => {
      if (settled !== undefined) this.#settled(attempt, attempted, settled);
      else void this.#settleAlone(attempt, attempted);
    });
  }

  /** The delivery is still due. */
  #failed(attempt: Attempt, error: unknown): void {
    this.#engine.failAttempt(attempt.queue, attempt.probe, error);
    this.#capacity.answered(attempt.ticket);
    this.#passOn(attempt, false);
  }

  async #settleAlone(attempt: Attempt, attempted: Attempted): Promise<void> {
    const { settle } = this.#delivering;
    const settled = await this.#engine.settle(attempt.queue, () => settle.alone(attempt.claim, attempted));
    this.#settled(attempt, attempted, settled);
  }

  #settled(attempt: Attempt, attempted: Attempted, settled: Settled | undefined): void {
    if (settled === undefined) attempt.queue.breaker.ignored(attempt.probe);
    else this.#understand(attempt, attempted, settled);
    this.#passOn(attempt, settled !== undefined && (settled.delivery?.dueAt ?? null) === null);
  }

  /** Gives the next delivery of the line its turn. @param isOver the delivery has no further attempt */
  #passOn(attempt: Attempt, isOver: boolean): void {
    if (attempt.claim.delivery.orderKey === undefined) this.#end(attempt);
    else void this.#lines.passOn(attempt, isOver).then(() => this.#end(attempt));
  }

  #end(attempt: Attempt): void {
    const { queue, claim } = attempt;
    if (claim.isAsked === true) queue.askedUnderWay -= 1;
    leaveWindow(attempt);
    this.#capacity.settled();
    this.#engine.ended(queue, claim.delivery.id);
  }

  #understand({ queue, claim, probe, number }: Attempt, attempted: Attempted, settled: Settled): void {
    const { clock, observe } = this.#services;
    const now = clock();
    const { verdict, delivery } = settled;
    const { breaker, window, id } = queue;
    if (delivery !== undefined && delivery.dueAt !== null) queue.dueAt(Date.parse(delivery.dueAt));
    // The outcome of a requested attempt changes nothing for the others, unless the endpoint accepted it or is gone.
    if (claim.isAsked === true && verdict.health !== 'succeeded' && !verdict.gone) return;
    // A failed request does not count against an endpoint, but a failed probe does, even if requested.
    const failed = verdict.health === 'failed' || (probe && isFailure(attempted));
    const answersAgain = verdict.health === 'succeeded' && breaker.mode !== 'closed';
    if (verdict.health === 'succeeded') window.succeeded();
    if (verdict.slowDown) window.slowDown(number);
    const until = queue.heed({ health: failed ? 'failed' : verdict.health, notBefore: null }, probe, now);
    if (answersAgain) observe({ kind: 'endpoint-answers-again', endpoint: id });
    if (until !== undefined) {
      window.paused();
      observe({ kind: 'endpoint-left-alone', endpoint: id, until });
    }
    const pausedUntil = verdict.gone ? now + gonePauseMs : (verdict.notBefore ?? 0);
    if (pausedUntil > now) {
      queue.notBefore = Math.max(queue.notBefore, pausedUntil);
      window.paused();
    }
  }

  /*
   * Requested deliveries: a resend and a test are sent at once, regardless of the Retry-After, breaker, window or ramp of
   * their endpoint (§3). At most `webhookResendsInFlightMax` per endpoint are under way; further ones wait here. They
   * count neither in the window nor as the probe of the breaker, and their failure changes neither; a success closes the
   * breaker, as any success does.
   *
   * Their ids come from this process, or from rows that others write (wakes.ts); if one is lost, the delivery is sent in its turn.
   */

  /** Sends a requested delivery as soon as there is room. */
  #ask(queue: EndpointQueue, deliveryId: string): void {
    if (queue.asked.size < memoryBounds.askedDeliveries.entries) queue.asked.add(deliveryId);
    void this.#sendAsked(queue);
  }

  /** Begins requested deliveries while there is room, and again when there is more. Never rejects. */
  async #sendAsked(queue: EndpointQueue): Promise<void> {
    const { webhookResendsInFlightMax } = this.#services.settings;
    const party = this.partyOf(queue);
    for (const id of queue.asked) {
      const isFull =
        this.#capacity.isFullFor(party, this.#engine.turns.parties, this.#isAlone()) ||
        queue.askedUnderWay >= webhookResendsInFlightMax;
      if (isFull || !this.#engine.isRunning) break;
      // A delivery under way is sent again after that attempt is settled.
      if (!queue.takeAsked(id)) continue;
      await this.#beginAsked(queue, id);
    }
    if (queue.asked.size > 0) this.#asking.add(queue);
    else this.#asking.delete(queue);
  }

  async #beginAsked(queue: EndpointQueue, id: string): Promise<void> {
    const { store, clock, observe } = this.#services;
    queue.askedUnderWay += 1;
    try {
      const row = await store.read(deliveriesCollection.name, id);
      const endpoint = this.#known(queue.id);
      const isOurs = this.#engine.isRunning && this.#work.lanes.owns(queue.id);
      if (row !== undefined && isDue(row, clock()) && isSendable(endpoint) && isOurs) {
        const { rev, owner } = row;
        const delivery = JSON.parse(row.doc) as Delivery;
        this.#engine.begin(queue);
        const claim = { delivery, rev, owner, endpoint, trigger: triggerOf(delivery), isAsked: true };
        this.#attempt(queue, { id, delivery, rev, owner }, claim, false);
        return;
      }
    } catch (error) {
      observe({ kind: 'sending-failed', what: 'reading deliveries', error });
      queue.mayHoldMore = true;
    }
    queue.askedUnderWay -= 1;
    queue.release(id);
  }
}

type Attempt = {
  readonly queue: EndpointQueue;
  claim: Claim;
  readonly probe: boolean;
  readonly number: number;
  readonly ticket: CapacityTicket;
  /** True while it counts in the window of its queue. */
  isUnderWay: boolean;
};

function leaveWindow(attempt: Attempt): void {
  if (attempt.isUnderWay) attempt.queue.underWay -= 1;
  attempt.isUnderWay = false;
}
