/**
 * Deliveries that somebody asked for: a resend and a test go out at once, whatever Retry-After, the breaker, the window or the ramp of their
 * endpoint say (§3). At most `webhookResendsInFlightMax` of an endpoint are under way at once; further ones wait here. They count neither in
 * its window nor as the probe of its breaker, and their failure changes neither; a success closes the breaker, as any does.
 *
 * What is asked for is known by id: by the process that was asked, or by a row that other processes read (wakes.ts). Where that is lost, the
 * delivery still stands in the store as due, and is sent in its turn.
 */
import { memoryBounds } from '../../../memory/bounds.ts';
import { type Delivery, triggerOf } from '../../../model/delivery.ts';
import type { Row } from '../../../store/store.ts';
import { deliveriesCollection } from '../collections.ts';
import { partyOf } from '../party.ts';
import type { EndpointQueue } from './endpoint-queue.ts';
import type { EngineParts } from './parts.ts';
import { isSendable } from './roster.ts';

/** Ids that wait in memory for one endpoint; those beyond are sent in their turn. */
const askedMax = memoryBounds.askedDeliveries.entries;

/** Never rejects. */
export function ask(parts: EngineParts, queue: EndpointQueue, deliveryId: string): void {
  if (queue.asked.size < askedMax) queue.asked.add(deliveryId);
  void sendAsked(parts, queue);
}

/** Begins what was asked for, as far as there is room; to be called again when there is more. Never rejects. */
export async function sendAsked(parts: EngineParts, queue: EndpointQueue): Promise<void> {
  const { capacity, asking, settings } = parts;
  const known = parts.directory.get(queue.id);
  const party = known === undefined ? '' : partyOf(known);
  for (const id of queue.asked) {
    const isFull =
      capacity.isFullFor(party, parts.turns.parties, parts.isAlone()) ||
      queue.askedUnderWay >= settings.webhookResendsInFlightMax;
    if (isFull || !parts.isRunning()) break;
    // One that is being sent is sent again when that attempt is written down.
    if (!queue.takeAsked(id)) continue;
    await beginAsked(parts, queue, id);
  }
  if (queue.asked.size > 0) asking.add(queue);
  else asking.delete(queue);
}

async function beginAsked(parts: EngineParts, queue: EndpointQueue, id: string): Promise<void> {
  const { store, capacity, monotonic, observe } = parts;
  queue.askedUnderWay += 1;
  try {
    const row = await store.read(deliveriesCollection.name, id);
    const endpoint = parts.directory.get(queue.id);
    const isOurs = parts.isRunning() && parts.lanes.owns(queue.id);
    if (row !== undefined && isDue(parts, row) && isSendable(endpoint) && isOurs) {
      const delivery = JSON.parse(row.doc) as Delivery;
      queue.bucket?.take();
      parts.lanes.hold(queue.id);
      parts.start({
        queue,
        claim: {
          ...{ delivery, rev: row.rev, owner: row.owner, endpoint },
          ...{ trigger: triggerOf(delivery), isAsked: true },
        },
        probe: false,
        number: queue.window.began(),
        ticket: capacity.begin(queue.holding, partyOf(endpoint), monotonic()),
      });
      return;
    }
  } catch (error) {
    observe({ kind: 'sending-failed', what: 'reading deliveries', error });
    queue.mayHoldMore = true;
  }
  queue.askedUnderWay -= 1;
  queue.release(id);
}

/** It may have been sent already, or expunged. */
function isDue({ clock }: EngineParts, { doc }: Row): boolean {
  const { dueAt } = JSON.parse(doc) as Delivery;
  return dueAt !== null && Date.parse(dueAt) <= clock();
}

/** Between two looks, since every event wakes its endpoint. */
const pauseMs = 1000;

/**
 * Lets the breaker of an endpoint make its probe before its time, with a delivery that a recovery asked for: who has mended a receiver should
 * not wait for ten minutes. Such a delivery is the last one that is due, since it is due since now. To be called where a wake meets an endpoint
 * that is left alone.
 */
export function heedAsked(parts: EngineParts, queue: EndpointQueue): void {
  const now = parts.clock();
  // What is taken might be read as it was before it was written down.
  if (queue.reading || queue.taken > 0 || now - queue.askedAt < pauseMs) return;
  queue.askedAt = now;
  void look(parts, queue, now);
}

/** Never rejects: what it does not find is sent when its time has come. */
async function look({ ready, observe }: EngineParts, queue: EndpointQueue, now: number): Promise<void> {
  try {
    const [row] = await queue.rows.lastBefore(now + 1);
    if (row === undefined || queue.breaker.mode !== 'open') return;
    if (triggerOf(JSON.parse(row.doc) as Delivery) !== 'manual') return;
    queue.prefer(row);
    if (queue.buffered === 0) return;
    queue.breaker.allowProbe();
    ready(queue);
  } catch (error) {
    observe({ kind: 'sending-failed', what: 'reading deliveries', error });
  }
}
