/**
 * The window of the login limit (§8: 5 in 15 minutes). Attempts are counted by steps of a fifteenth of the window, which tell quickly
 * whether there is room. Each step is counted a second time by sixtieths of itself: where there is no room, they tell when the
 * next attempt leaves the window. So an attempt counts for the window, less a 900th of it at most, and
 * never longer. Requests are counted more coarsely (docs/decisions/0019), for there are more.
 */

/** Steps of one window. */
const steps = 15;

/** Steps that any window of the length touches: one more than fit in it. */
export const stepsCounted = steps + 1;

/** Parts of a step. */
export const partsOfStep = 60;

/** @param windowMs of the limit */
export function stepMs(windowMs: number): number {
  return Math.max(1, Math.ceil(windowMs / steps));
}

/** @param windowMs of the limit */
export function partMs(windowMs: number): number {
  return Math.max(1, Math.ceil(stepMs(windowMs) / partsOfStep));
}

/** The attempt that has to leave the window before there is room for one more: the `ordinal`th, from 1, of a step. */
export type Leaving = { readonly index: number; readonly ordinal: number };

/**
 * Undefined where there is room.
 * @param counts of the steps up to the present one, the oldest first
 */
export function nextLeaving(attempts: number, counts: readonly number[]): Leaving | undefined {
  const counted = counts.reduce((sum, count) => sum + count, 0);
  let ordinal = counted - attempts + 1;
  if (ordinal <= 0) return undefined;
  for (const [index, count] of counts.entries()) {
    if (ordinal <= count) return { index, ordinal };
    ordinal -= count;
  }
  return { index: counts.length - 1, ordinal: 1 };
}

/** The part in which the `ordinal`th attempt of a step came; the last one where the parts know of fewer. */
export function partOf(ordinal: number, counts: readonly number[]): number {
  let left = ordinal;
  for (const [part, count] of counts.entries()) {
    left -= Math.max(0, count);
    if (left <= 0) return part;
  }
  return counts.length - 1;
}
