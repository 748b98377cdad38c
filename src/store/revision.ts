/** Revisions of units, as versions of tables and raised over those that were lost; used by both engines. */
import { randomInt } from 'node:crypto';

/** Spells a table's version, the last revision that touched it, so that clients do not compute with it. */
export function versionText(rev: number): string {
  return rev.toString(36);
}

/**
 * The later of two versions. Every unit has a greater revision than all before it, so the latest version of several tables changes with each
 * unit that changes one of them, and only then.
 */
export function laterVersion(one: string, other: string): string {
  if (one.length !== other.length) return one.length > other.length ? one : other;
  return one > other ? one : other;
}

/**
 * The row of `comity_counters` with the greatest revision of the events that were purged, and its name, which no table has. It exists from
 * the first purge on.
 */
export const purgedCounter = -2;
export const purgedCounterName = ' purged';

/*
 * The counter of revisions is raised whenever a store is opened, and whenever another database server continues it: units may have been lost
 * before (a restored copy, a standby that lagged), and revisions that they had must not be given again, because clients hold entity tags
 * and positions made from them. The raised counter is 2^20 times the seconds since 1970, which is above every revision given earlier as long as
 * fewer than 2^20 units a second are committed. If it is above that already, because a clock was set back, a random step makes it unlikely
 * that a revision returns.
 *
 * Rows keep their revisions, and tables their versions. The table `comity_raises` lists the ranges that the counter was raised over: a
 * position within one is of a lost unit.
 */

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
