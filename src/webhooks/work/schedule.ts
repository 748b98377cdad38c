/**
 * When the next attempt is: by a schedule (§6, jitter everywhere), and by what the receiver asked for. Pure; the lists of delays come from the
 * configuration.
 *
 * Every delay is drawn from a tenth below to a tenth above the listed one, so that what failed together does not come back together. Where a
 * schedule has a window and the drawn delays add up to more, the last attempt is pulled in to its end, and none is made after it.
 */
import { parseHttpDate } from '../../http/syntax/http-date.ts';

/** Of each delay, above and below. */
const jitterPart = 0.1;
const delayMsMin = 1000;
/** An attempt that would have to be pulled in by more than this part of its delay is left out. */
const pulledPartMax = 0.5;

export type Schedule = {
  /** Seconds from an attempt that failed to the next. */
  readonly delaysSeconds: readonly number[];
  /** From the making of the work; null: without end. */
  readonly windowMs: number | null;
};

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
  /** Milliseconds since the epoch, as are all times here: when the work was made. */
  readonly madeAt: number;
  /** When the attempt failed. */
  readonly failedAt: number;
  /** The receiver wants nothing before this time; null: it did not say. */
  readonly notBefore: number | null;
};

/**
 * When work is tried again after a failure, in milliseconds since the epoch; null: no more. A time that the receiver asked for may
 * postpone the attempt, never bring it nearer; beyond the window of the schedule there is none.
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

/**
 * Retry-After (RFC 9110 §10.2.3) of a receiver: delay-seconds or an HTTP-date. What is neither, or is over already, asks for nothing.
 *
 * @returns the time before which nothing is wanted, in milliseconds since the epoch; null: now is as good
 * @param fields names in lower case; of several fields the first that says something counts
 * @param atMs when the answer came
 * @param secondsMax a longer wait is cut to this
 */
export function retryAfter(
  fields: readonly (readonly [name: string, value: string])[],
  atMs: number,
  secondsMax: number,
): number | null {
  for (const [name, value] of fields) {
    if (name !== 'retry-after') continue;
    const time = timeOf(value.trim(), atMs);
    if (time !== undefined && time > atMs) return Math.min(time, atMs + secondsMax * 1000);
  }
  return null;
}

function timeOf(value: string, atMs: number): number | undefined {
  // A number too great to be one is Infinity, which the bound cuts like any other.
  return isDigits(value) ? atMs + Number(value) * 1000 : parseHttpDate(value, atMs);
}

function isDigits(value: string): boolean {
  for (let at = 0; at < value.length; at += 1) {
    const code = value.charCodeAt(at);
    if (code < 0x30 || code > 0x39) return false;
  }
  return value.length > 0;
}
