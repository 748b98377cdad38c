/**
 * The window of the login limit (§8: 5 in 15 minutes): it slides in steps of a fifteenth, each step with a count of its own, and a step
 * counts until all of it lies outside the window. So no window of that length ever holds more failed attempts than the limit, wherever it
 * begins; an attempt may count a step longer than it must. Requests are counted more coarsely (docs/decisions/0019), for there are more.
 */

/** Steps of one window. */
const steps = 15;

/** Steps that any window of the length touches: one more than fit in it. */
export const stepsCounted = steps + 1;

/** @param windowMs of the limit */
export function stepMs(windowMs: number): number {
  return Math.max(1, Math.ceil(windowMs / steps));
}

/**
 * Milliseconds until one more attempt would be admitted, if none fails meanwhile; 0: now.
 * @param counts of the steps up to the present one, the oldest first
 * @param elapsedMs of the present step
 */
export function untilRoom(
  attempts: number,
  counts: readonly number[],
  elapsedMs: number,
  windowMs: number,
): number {
  let counted = counts.reduce((sum, count) => sum + count, 0);
  let waitMs = 0;
  for (const [index, count] of counts.entries()) {
    if (counted < attempts) break;
    if (count === 0) continue;
    counted -= count;
    // The first moment at which the whole step has left the window.
    const age = counts.length - 1 - index;
    waitMs = windowMs - elapsedMs - (age - 1) * stepMs(windowMs);
  }
  return waitMs;
}
