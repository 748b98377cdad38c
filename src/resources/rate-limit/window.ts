/**
 * A sliding window made of two fixed ones: what was admitted in the minute before counts with the share of it that the last
 * sixty seconds still cover. All of it in whole numbers, so that a refusal and the time it names never disagree.
 * Takes the requests of the minute before as evenly spread, which they need not be (docs/decisions/0019).
 */

export const windowMs = 60_000;

/** Of `before` admitted in the last window, those that still count when `elapsedMs` of this one have begun. */
export function stillCounted(before: number, elapsedMs: number): number {
  return Math.floor((before * (windowMs - elapsedMs - 1)) / windowMs);
}

/**
 * Milliseconds from `elapsedMs` of this window until one more request would be admitted, if none is meanwhile; 0: now.
 *
 * @param limit at least 1
 */
export function waitMs(limit: number, admitted: number, before: number, elapsedMs: number): number {
  if (admitted < limit) return Math.max(0, fadedAt(before, limit - 1 - admitted) - elapsedMs);
  return windowMs - elapsedMs + fadedAt(admitted, limit - 1);
}

/** The first millisecond of a window at which no more than `room` of `before` still count. */
function fadedAt(before: number, room: number): number {
  return before <= room ? 0 : Math.floor((windowMs * (before - room - 1)) / before);
}
