/**
 * When the next attempt by schedule is (§6, research: jitter everywhere). Pure; the lists of delays come from the configuration.
 *
 * Every delay is drawn from a tenth below to a tenth above the listed one, so that deliveries that failed together do not come back
 * together. `live` promises retries for up to 3 days: where the drawn delays add up to more, the last attempt is pulled in to the end of
 * the third day, and none is made after it. A configuration that lists more than 3 days for `live` has chosen so, and gets no such end.
 */
import type { ScheduleName, WebhookSchedules } from '../../config/webhook-schedules.ts';
import type { Endpoint } from '../../model/endpoint.ts';

/** Of each delay, above and below. */
const jitterPart = 0.1;
const delayMsMin = 1000;
/** §6, "retries for up to 3 days": from the making of the delivery to the beginning of its last attempt. */
export const liveWindowMs = 3 * 86_400_000;
/** An attempt that would have to be pulled in by more than this part of its delay is left out. */
const pulledPartMax = 0.5;

export type Schedule = {
  /** Seconds from an attempt that failed to the next. */
  readonly delaysSeconds: readonly number[];
  /** From the making of the delivery; null: without end. */
  readonly windowMs: number | null;
};

/** The row of §6's table that is the endpoint's. */
export function scheduleNameOf({ scheme, mode }: Pick<Endpoint, 'scheme' | 'mode'>): ScheduleName {
  if (scheme !== 'timestamped') return scheme;
  return mode === 'sandbox' ? 'sandbox' : 'live';
}

export function scheduleOf(
  endpoint: Pick<Endpoint, 'scheme' | 'mode'>,
  schedules: WebhookSchedules,
): Schedule {
  const name = scheduleNameOf(endpoint);
  const delaysSeconds = schedules[name];
  const hasWindow = name === 'live' && sumMs(delaysSeconds) <= liveWindowMs;
  return { delaysSeconds, windowMs: hasWindow ? liveWindowMs : null };
}

/**
 * Milliseconds from the attempt that failed to the next one, with jitter; null when the schedule has none left.
 * @param scheduledAttemptCount attempts by schedule so far, that one included
 * @param random a number from 0 up to, not including, 1
 */
export function nextDelayMs(
  delaysSeconds: readonly number[],
  scheduledAttemptCount: number,
  random: () => number,
): number | null {
  const seconds = delaysSeconds[scheduledAttemptCount - 1];
  if (seconds === undefined) return null;
  const factor = 1 - jitterPart + 2 * jitterPart * random();
  return Math.max(delayMsMin, Math.round(seconds * 1000 * factor));
}

export type Failed = {
  /** Attempts by schedule so far, the one that failed included. */
  readonly scheduledAttemptCount: number;
  /** Milliseconds since the epoch, as are all times here: when the delivery was made. */
  readonly madeAt: number;
  /** When the attempt failed. */
  readonly failedAt: number;
  /** The receiver wants nothing before this time; null: it did not say. */
  readonly notBefore: number | null;
};

/**
 * When a delivery is tried again after a failure, in milliseconds since the epoch; null: no more. A time that the receiver asked for may
 * postpone the attempt, never bring it nearer; beyond the window of `live` there is none.
 */
export function nextAttemptMs(schedule: Schedule, failed: Failed, random: () => number): number | null {
  const { delaysSeconds, windowMs } = schedule;
  const delayMs = nextDelayMs(delaysSeconds, failed.scheduledAttemptCount, random);
  if (delayMs === null) return null;
  const asked = Math.max(failed.failedAt + delayMs, failed.notBefore ?? 0);
  if (windowMs === null) return asked;
  const end = failed.madeAt + windowMs;
  if (asked <= end) return asked;
  const isPulledTooFar = end - failed.failedAt < delayMs * (1 - pulledPartMax);
  return isPulledTooFar || (failed.notBefore ?? 0) > end ? null : end;
}

function sumMs(delaysSeconds: readonly number[]): number {
  let sum = 0;
  for (const seconds of delaysSeconds) sum += seconds * 1000;
  return sum;
}
