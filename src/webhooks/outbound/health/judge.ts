/**
 * What a failing endpoint has coming (§6.8: disable what fails continuously for a long time, and tell its owner). Pure.
 *
 *   healthy   no failure since the last success
 *   failing   since the first failure after it; nothing happens yet
 *   warned    it has been failing for `warnMs`: its owner was told, once
 *   disabled  it has been failing for `disableMs`, by at least three attempts of the schedule, and the warning is old enough
 *
 * One success makes it healthy again from every state but the last, which its owner ends.
 *
 * Time alone condemns nobody: something must have been sent and have failed. An endpoint that failed once six days ago and once now has
 * been failing for six days as far as anybody knows, yet its owner has heard nothing. So nobody is disabled who was not
 * warned, and not before he could act: another `warnMs`, though at most a day, lies between the two. Whoever sets `warnMs` above `disableMs`
 * is warned when he would have been disabled, and disabled so much later.
 */
import type { EndpointHealth } from '../tables.ts';

export type HealthTimes = {
  readonly warnMs: number;
  readonly disableMs: number;
};

/** Attempts by schedule that must have failed before an endpoint is disabled. */
export const failuresMin = 3;
const graceMsMax = 86_400_000;

/** @param at milliseconds since the epoch: the end of the newest failed attempt */
export function judgeHealth(
  { failingSince, failures, warnedAt }: EndpointHealth,
  at: number,
  { warnMs, disableMs }: HealthTimes,
): 'bear' | 'warn' | 'disable' {
  const failingMs = at - failingSince;
  if (warnedAt === null) return failingMs >= warnMs ? 'warn' : 'bear';
  const isDue = failingMs >= disableMs && failures >= failuresMin;
  return isDue && at - warnedAt >= Math.min(warnMs, graceMsMax) ? 'disable' : 'bear';
}
