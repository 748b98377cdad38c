/**
 * One attempt at a delivery, by schedule or by request: sent, settled, evaluated. An accepted attempt frees its place
 * in the window at once; a failed one only after its evaluation, so that an endpoint that asks to slow down gets no
 * more meanwhile.
 */

import { memoryBounds } from '../../memory/bounds.ts';
import { type Delivery, triggerOf } from '../../model/delivery.ts';
import type { Services } from '../../store/capabilities.ts';
import type { Row, Store } from '../../store/store.ts';
import type { BreakerSettings } from '../../work/breaker.ts';
import type { Lanes } from '../../work/lanes.ts';
import type { Timers } from '../../work/timers.ts';
import { faultPauseMs, type WorkEngine } from '../../work/work-engine.ts';
import type { Capacity, CapacityTicket } from './capacity.ts';
import { isAcknowledged } from './conclude-delivery.ts';
import type { AttemptEnd, Attempted, Claim, Send, Settle, Settled } from './delivery-claim.ts';
import type { DueDelivery, EndpointQueue } from './endpoint-queue.ts';
import { isSendable } from './endpoint-roster.ts';
import { type EndpointDirectory, partyOf } from './known-endpoint.ts';
import { deliveriesCollection } from './sending-tables.ts';
import type { Wakes } from './wakes.ts';

/** Pause until the directory shows that the endpoint was disabled. */
const gonePauseMs = 5000;

export type EngineSettings = BreakerSettings & {
  readonly webhookInFlightMax: number;
  readonly webhookEndpointInFlightDefault: number;
  readonly webhookResendsInFlightMax: number;
};

export type EngineOptions = Pick<Services, 'clock' | 'observe'> & {
  readonly store: Pick<Store, 'plan' | 'read' | 'shared' | 'commit'>;
  readonly directory: Pick<EndpointDirectory, 'get' | 'all' | 'onChange'>;
  readonly wakes: Pick<Wakes, 'onWake'>;
  readonly lanes: Pick<Lanes, 'owns' | 'hold' | 'release' | 'onChange'>;
  readonly send: Send;
  readonly settle: Settle;
  /** Milliseconds of a clock that is never set, for durations. */
  readonly monotonic: () => number;
  /** Returns numbers uniformly from 0 to 1. */
  readonly random: () => number;
  readonly timers?: Timers;
  readonly settings: EngineSettings;
};

/** What all attempts of the delivery engine share. */
export type EngineParts = EngineOptions & {
  readonly engine: WorkEngine<DueDelivery, EndpointQueue>;
  readonly capacity: Capacity;
  /** Returns true if all endpoints of this process belong to one party. */
  readonly isAlone: () => boolean;
  /** Queues with requested deliveries that wait. */
  readonly asking: Set<EndpointQueue>;
};

/** Makes the attempt. Takes its share of window, rate and capacity before it returns. */
export function attempt(parts: EngineParts, queue: EndpointQueue, claim: Claim, probe: boolean): void {
  parts.send(claim, parts.engine.working, new Attempt(parts, queue, claim, probe));
}

/** An attempt under way: first being sent, then being settled. */
class Attempt implements AttemptEnd {
  readonly queue: EndpointQueue;
  readonly claim: Claim;
  /** The breaker admits no other attempt until this one ends. */
  readonly probe: boolean;
  /** Its number in the window. */
  readonly number: number;
  readonly #parts: EngineParts;
  readonly #ticket: CapacityTicket;
  /** True while it counts in the window of its queue. */
  #isUnderWay: boolean;

  constructor(parts: EngineParts, queue: EndpointQueue, claim: Claim, probe: boolean) {
    const { capacity, monotonic } = parts;
    this.#parts = parts;
    this.queue = queue;
    this.claim = claim;
    this.probe = probe;
    queue.bucket?.take();
    this.#isUnderWay = claim.isAsked !== true;
    if (this.#isUnderWay) queue.underWay += 1;
    this.number = queue.window.began();
    this.#ticket = capacity.begin(queue.holding, partyOf(claim.endpoint), monotonic());
  }

  attempted(attempted: Attempted): void {
    const { capacity, engine, settle } = this.#parts;
    capacity.answered(this.#ticket);
    if (isAcknowledged(attempted)) {
      this.#leaveWindow();
      engine.ready(this.queue);
    }
    settle.together(this.claim, attempted, (settled) => {
      if (settled !== undefined) this.#settled(attempted, settled);
      else void this.#settleAlone(attempted);
    });
  }

  /** The delivery is still due. */
  failed(error: unknown): void {
    const { capacity, engine, observe } = this.#parts;
    observe({ kind: 'sending-failed', what: 'making a delivery', error });
    engine.pauseAfter(this.queue, error);
    capacity.answered(this.#ticket);
    this.queue.breaker.ignored(this.probe);
    this.#end();
  }

  async #settleAlone(attempted: Attempted): Promise<void> {
    const { engine, settle } = this.#parts;
    this.#settled(attempted, await engine.settleSurely(() => settle.alone(this.claim, attempted)));
  }

  #settled(attempted: Attempted, settled: Settled | undefined): void {
    understand(this.#parts, this, attempted, settled);
    this.#end();
  }

  #end(): void {
    const { capacity, engine } = this.#parts;
    if (this.claim.isAsked === true) this.queue.askedUnderWay -= 1;
    this.#leaveWindow();
    capacity.settled();
    engine.ended(this.queue, this.claim.delivery.id);
  }

  #leaveWindow(): void {
    if (this.#isUnderWay) this.queue.underWay -= 1;
    this.#isUnderWay = false;
  }
}

/** Returns true if the attempt failed; an aborted one or one without an exchange did not. */
function isFailure({ outcome }: Attempted): boolean {
  if (outcome.kind === 'answered') return outcome.status < 200 || outcome.status > 299;
  return outcome.kind === 'failed' && outcome.failure !== 'aborted';
}

function understand(
  { clock, observe }: EngineParts,
  { queue, claim, probe, number }: Attempt,
  attempted: Attempted,
  settled: Settled | undefined,
): void {
  const now = clock();
  if (settled === undefined) {
    // The delivery was sent but not recorded: without a pause it would be sent again and again.
    queue.pause(now + faultPauseMs);
    queue.breaker.ignored(probe);
    return;
  }
  const { verdict, delivery } = settled;
  const { breaker, window, id } = queue;
  if (delivery !== undefined && delivery.dueAt !== null) queue.dueAt(Date.parse(delivery.dueAt));
  // The outcome of a requested attempt changes nothing for the others, unless the endpoint accepted it or is gone.
  if (claim.isAsked === true && verdict.health !== 'succeeded' && !verdict.gone) return;
  // A failed request does not count against an endpoint, but a failed probe does, even if requested.
  const failed = verdict.health === 'failed' || (probe && isFailure(attempted));
  if (verdict.health === 'ignored' && !failed) breaker.ignored(probe);
  if (verdict.health === 'succeeded') {
    window.succeeded();
    if (breaker.succeeded()) observe({ kind: 'endpoint-answers-again', endpoint: id });
  }
  if (verdict.slowDown) window.slowDown(number);
  if (failed) {
    const until = breaker.failed(now, probe);
    if (until !== undefined) {
      window.paused();
      observe({ kind: 'endpoint-left-alone', endpoint: id, until });
    }
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
 * Requested deliveries are known by id: from this process, or from a row that other processes read (wakes.ts). If that
 * is lost, the delivery is still due in the store and is sent in its turn.
 */

/** Ids that wait in memory for one endpoint; further ones are sent in their turn. */
const askedMax = memoryBounds.askedDeliveries.entries;

/** Sends a requested delivery as soon as there is room. Never rejects. */
export function ask(parts: EngineParts, queue: EndpointQueue, deliveryId: string): void {
  if (queue.asked.size < askedMax) queue.asked.add(deliveryId);
  void sendAsked(parts, queue);
}

/** Begins requested deliveries while there is room. Called again when there is more room. Never rejects. */
export async function sendAsked(parts: EngineParts, queue: EndpointQueue): Promise<void> {
  const { engine, capacity, asking, settings } = parts;
  const known = parts.directory.get(queue.id);
  const party = known === undefined ? '' : partyOf(known);
  for (const id of queue.asked) {
    const isFull =
      capacity.isFullFor(party, engine.turns.parties, parts.isAlone()) ||
      queue.askedUnderWay >= settings.webhookResendsInFlightMax;
    if (isFull || !engine.isRunning) break;
    // A delivery under way is sent again after that attempt is settled.
    if (!queue.takeAsked(id)) continue;
    await beginAsked(parts, queue, id);
  }
  if (queue.asked.size > 0) asking.add(queue);
  else asking.delete(queue);
}

async function beginAsked(parts: EngineParts, queue: EndpointQueue, id: string): Promise<void> {
  const { store, engine, observe } = parts;
  queue.askedUnderWay += 1;
  try {
    const row = await store.read(deliveriesCollection.name, id);
    const endpoint = parts.directory.get(queue.id);
    const isOurs = engine.isRunning && parts.lanes.owns(queue.id);
    if (row !== undefined && isDue(parts, row) && isSendable(endpoint) && isOurs) {
      const { rev, owner } = row;
      const delivery = JSON.parse(row.doc) as Delivery;
      const claim: Claim = { delivery, rev, owner, endpoint, trigger: triggerOf(delivery), isAsked: true };
      engine.begin(queue);
      attempt(parts, queue, claim, false);
      return;
    }
  } catch (error) {
    observe({ kind: 'sending-failed', what: 'reading deliveries', error });
    queue.mayHoldMore = true;
  }
  queue.askedUnderWay -= 1;
  queue.release(id);
}

/** Returns true if the delivery is still due: it may have been sent or expunged. */
function isDue({ clock }: EngineParts, { doc }: Row): boolean {
  const { dueAt } = JSON.parse(doc) as Delivery;
  return dueAt !== null && Date.parse(dueAt) <= clock();
}
