/**
 * The time of the next attempt, by a schedule (§6) and by the receiver's Retry-After. Pure; the configuration supplies
 * the delays.
 *
 * Every delay has a jitter of 10 % up or down, so that attempts that failed together are not repeated together. If a
 * schedule has a window and the delays exceed it, the last attempt moves to the end of the window and no other follows.
 */
import { parseHttpDate } from '../http/syntax/http-date.ts';

/** The part of each delay by which it varies, up and down. */
const jitterPart = 0.1;
const delayMsMin = 1000;
/** An attempt that would have to move forward by more than this part of its delay is omitted. */
const pulledPartMax = 0.5;

export type Schedule = {
  /** Seconds from a failed attempt to the next. */
  readonly delaysSeconds: readonly number[];
  /** Measured from the creation of the work; null: unlimited. */
  readonly windowMs: number | null;
};

/**
 * Returns the milliseconds from the failed attempt to the next one, with jitter; null if the schedule has no more
 * delays.
 *
 * @param scheduledAttemptCount attempts by schedule so far, including the failed one
 * @param random returns a number from 0 (inclusive) to 1 (exclusive)
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
  /** Attempts by schedule so far, including the failed one. */
  readonly scheduledAttemptCount: number;
  /** When the work was created. Milliseconds since the epoch, like all times here. */
  readonly madeAt: number;
  readonly failedAt: number;
  /** The receiver accepts nothing before this time; null: it named none. */
  readonly notBefore: number | null;
};

/**
 * Returns the time of the next attempt after a failure, in milliseconds since the epoch; null: none. A time that the
 * receiver requests can postpone the attempt but not advance it; there is no attempt after the window of the schedule.
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
 * Reads Retry-After (RFC 9110 §10.2.3) of a receiver: delay-seconds or an HTTP-date. Malformed and past values are
 * ignored.
 *
 * @returns the time that it names, in milliseconds since the epoch; null: none
 * @param fields lower-case names; the first usable value counts
 * @param atMs when the response came
 * @param secondsMax the longest wait
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
  // Digits beyond the range of a number become Infinity, which the bound reduces.
  return isDigits(value) ? atMs + Number(value) * 1000 : parseHttpDate(value, atMs);
}

function isDigits(value: string): boolean {
  for (let at = 0; at < value.length; at += 1) {
    const code = value.charCodeAt(at);
    if (code < 0x30 || code > 0x39) return false;
  }
  return value.length > 0;
}
