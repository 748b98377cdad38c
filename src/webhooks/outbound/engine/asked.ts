/**
 * Lets the breaker of an endpoint make its probe before its time, with a delivery that somebody asked for: who has mended a receiver
 * and sends a test or a resend should not wait for ten minutes. Such a delivery is the last one that is due, since it is due since now.
 */
import { type Delivery, triggerOf } from '../../../model/delivery.ts';
import type { Row } from '../../../store/store.ts';
import type { EndpointQueue } from './endpoint-queue.ts';
import type { EngineParts } from './parts.ts';

/** Between two looks, since every event wakes its endpoint. */
const pauseMs = 1000;
const testType = 'endpoint.test';

/** To be called where a wake meets an endpoint that is left alone. */
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
    if (row === undefined || !isAsked(row) || queue.breaker.mode !== 'open') return;
    queue.prefer(row);
    if (queue.buffered === 0) return;
    queue.breaker.allowProbe();
    ready(queue);
  } catch (error) {
    observe({ kind: 'sending-failed', what: 'reading deliveries', error });
  }
}

function isAsked({ doc }: Row): boolean {
  const delivery = JSON.parse(doc) as Delivery;
  return triggerOf(delivery) === 'manual' || delivery.eventType === testType;
}
