/**
 * The counter of revisions is raised whenever a store is opened, and whenever another database server continues it: units may have been lost
 * before (a restored copy, a standby that lagged), and revisions that they had must not be given again, because clients hold entity tags
 * and positions made from them. The raised counter is 2^20 times the seconds since 1970, which is above every revision given earlier as long as
 * fewer than 2^20 units a second are committed. If it is above that already, because a clock was set back, a random step makes it unlikely
 * that a revision returns.
 *
 * Rows keep their revisions, and tables their versions. The table `comity_raises` lists the ranges that the counter was raised over: a
 * position within one is of a lost unit.
 */
import { randomInt } from 'node:crypto';

/** Revisions for each second. */
export const revisionsPerSecond = 1_048_576;
/** In 2106; a clock beyond it raises no further, so that revisions stay exact as doubles. */
export const clockRevisionMax = 2 ** 52;
/** Bounds of the step where the clock is behind the counter. */
export const raiseStepMin = 2 ** 20;
export const raiseStepRange = 2 ** 32;
/** Ranges that are kept; the oldest goes. */
export const raisesKeptMax = 1000;

/** The counter went from `before` to `after`; milliseconds since the epoch. */
export type Raise = { readonly before: number; readonly after: number; readonly madeAt: number };

/** @param rev the highest revision that is known @param now milliseconds since the epoch */
export function raisedRevision(rev: number, now: number): number {
  const byClock = Math.min(Math.floor((now / 1000) * revisionsPerSecond), clockRevisionMax);
  return byClock > rev ? byClock : rev + raiseStepMin + randomInt(raiseStepRange);
}
