/**
 * One turn of a sender: begins to hand one message on, or finds what stands in the way and sees to it that the sender is made ready again when
 * that has gone. The obstacles are asked in the order of their cost.
 */
import type { EngineParts } from './parts.ts';
import type { SenderQueue } from './sender-queue.ts';

export function begin(parts: EngineParts, queue: SenderQueue): void {
  const { lanes, shares, held, ready, start } = parts;
  if (!lanes.owns(queue.lane)) {
    queue.drop();
    return;
  }
  if (isPaused(parts, queue) || isFull(queue)) return;
  if (queue.buffered === 0 && !fill(parts, queue)) return;
  if (!shares.admits(queue.share)) {
    held.add(queue);
    return;
  }
  const due = queue.shift();
  if (due === undefined) return;
  shares.begin(queue.share);
  lanes.hold(queue.lane);
  start({ queue, due, probe: queue.breaker.began() });
  ready(queue);
}

function isPaused({ clock, alarm }: EngineParts, queue: SenderQueue): boolean {
  const now = clock();
  const until = Math.max(queue.notBefore, queue.breaker.pausedUntil(now));
  if (until <= now) return false;
  queue.drop();
  alarm.set(queue.sender.name, until);
  return true;
}

/** Whether one must end first, after which it is ready. */
function isFull({ share, inFlightMax, breaker, rerunning }: SenderQueue): boolean {
  return share.inFlight >= inFlightMax || breaker.probing || rerunning > 0;
}

/** @returns whether something that is due is at hand */
function fill({ clock, alarm, read }: EngineParts, queue: SenderQueue): boolean {
  if (queue.mayHoldMore || queue.nextDueAt <= clock()) {
    // One that is being read is ready afterwards.
    if (!read(queue)) return false;
    if (queue.buffered > 0) return true;
  }
  if (queue.nextDueAt !== Number.POSITIVE_INFINITY) alarm.set(queue.sender.name, queue.nextDueAt);
  return false;
}
