/**
 * One turn of an endpoint: begins a few attempts, or finds what stands in the way and sees to it that the endpoint is made ready
 * again when that has gone. The obstacles are asked in the order of their cost.
 */
import { triggerOf } from '../../../model/delivery.ts';
import type { KnownEndpoint } from '../known-endpoint.ts';
import { partyOf } from '../party.ts';
import type { EndpointQueue } from './endpoint-queue.ts';
import type { EngineParts } from './parts.ts';
import { isSendable } from './roster.ts';
import { TokenBucket } from './token-bucket.ts';

/** Attempts that begin in one turn: few, so that the turn of the next is soon. */
const attemptsPerTurn = 4;

export function begin(parts: EngineParts, queue: EndpointQueue): void {
  for (let begun = 0; begun < attemptsPerTurn; begun += 1) {
    const known = parts.directory.get(queue.id);
    if (!isSendable(known) || !parts.lanes.owns(queue.id)) {
      parts.queues.forget(queue);
      return;
    }
    if (isPaused(parts, queue) || isFull(parts, queue, known)) return;
    if (queue.buffered === 0 && !fill(parts, queue)) return;
    if (isOverRate(parts, queue, known)) return;
    if (parts.capacity.full) break;
    const party = partyOf(known);
    const waiting = { parties: parts.turns.parties, endpoints: parts.turns.sizeOf(party) };
    if (!parts.capacity.admits(queue.holding, party, waiting, parts.monotonic())) {
      parts.held.add(queue);
      return;
    }
    if (parts.capacity.isFullFor(party, waiting.parties, parts.isAlone())) {
      parts.crowded.add(queue);
      return;
    }
    beginOne(parts, queue, known);
  }
  parts.ready(queue);
}

function isPaused({ clock, alarm }: EngineParts, queue: EndpointQueue): boolean {
  const now = clock();
  const until = Math.max(queue.notBefore, queue.breaker.pausedUntil(now));
  if (until <= now) return false;
  queue.drop();
  alarm.set(queue.id, until);
  return true;
}

/** Whether an answer must come first, after which it is ready. */
function isFull({ settings }: EngineParts, queue: EndpointQueue, { endpoint }: KnownEndpoint): boolean {
  const inFlightMax = endpoint.maxInFlight ?? settings.webhookEndpointInFlightDefault;
  queue.window.setMax(inFlightMax);
  return queue.underWay >= queue.window.size || queue.breaker.probing;
}

/** @returns whether something that is due is at hand */
function fill({ clock, alarm, queues, read }: EngineParts, queue: EndpointQueue): boolean {
  if (queue.mayHoldMore || queue.nextDueAt <= clock()) {
    // One that is being read is ready afterwards.
    if (!read(queue)) return false;
    if (queue.buffered > 0) return true;
  }
  if (queue.nextDueAt !== Number.POSITIVE_INFINITY) alarm.set(queue.id, queue.nextDueAt);
  queues.rest(queue);
  return false;
}

function isOverRate(
  { monotonic, clock, alarm }: EngineParts,
  queue: EndpointQueue,
  known: KnownEndpoint,
): boolean {
  const { ratePerSecond } = known.endpoint;
  if (ratePerSecond === undefined) {
    queue.bucket = undefined;
    return false;
  }
  queue.bucket ??= new TokenBucket(ratePerSecond, monotonic());
  queue.bucket.setRate(ratePerSecond);
  const waitMs = queue.bucket.waitMs(monotonic());
  if (waitMs > 0) alarm.set(queue.id, clock() + waitMs);
  return waitMs > 0;
}

function beginOne(parts: EngineParts, queue: EndpointQueue, endpoint: KnownEndpoint): void {
  const due = queue.shift();
  if (due === undefined) return;
  queue.bucket?.take();
  queue.underWay += 1;
  parts.lanes.hold(queue.id);
  parts.start({
    queue,
    claim: { ...due, endpoint, trigger: triggerOf(due.delivery) },
    probe: queue.breaker.began(),
    number: queue.window.began(),
    ticket: parts.capacity.begin(queue.holding, partyOf(endpoint), parts.monotonic()),
  });
  // Where reading takes time, it is done while there is still something to send.
  if (queue.mayHoldMore && parts.store.shared && 2 * queue.buffered < queue.window.size) parts.read(queue);
}
