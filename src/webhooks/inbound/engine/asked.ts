/**
 * Lets a sender that is paused make its probe before its time where somebody replayed a message of it: who has mended what failed should not wait
 * for ten minutes. Such a message is the last one that is due, since it is due since now; messages that come all the time may hide it.
 */
import type { Received } from '../../../model/received.ts';
import { triggerOf } from '../settle/conclude.ts';
import type { EngineParts } from './parts.ts';
import type { SenderQueue } from './sender-queue.ts';

/** Between two looks, since every message wakes its sender. */
const pauseMs = 1000;

/** To be called where a wake meets a sender that is paused. Never rejects: what it does not find is tried when its time has come. */
export async function heedAsked(parts: EngineParts, queue: SenderQueue): Promise<void> {
  const { clock, ready, observe } = parts;
  const now = clock();
  if (now - queue.askedAt < pauseMs) return;
  queue.askedAt = now;
  try {
    const [row] = await queue.rows.lastBefore(now + 1);
    if (row === undefined || queue.breaker.mode !== 'open') return;
    const received = JSON.parse(row.doc) as Received;
    // What was asked for before the last failure has had its probe.
    const isAsked = triggerOf(received) === 'manual' && Date.parse(received.dueAt ?? '') > queue.pausedAt;
    if (!isAsked) return;
    queue.breaker.allowProbe();
    ready(queue);
  } catch (error) {
    observe({ kind: 'receiving-failed', what: 'reading messages', error });
  }
}
