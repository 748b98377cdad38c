/**
 * The times of further attempts, by two rules: the schedule of a row of work (§6) with the receiver's Retry-After, and the circuit breaker
 * of its queue. The configuration supplies the delays.
 */
import { parseHttpDate } from '../http/syntax/http-date.ts';

/** The part of each delay by which it varies, up and down. */
const jitterPart = 0.1;
const delayMsMin = 1000;
/** An attempt that would have to move forward by more than this part of its delay is omitted. */
const pulledPartMax = 0.5;

/**
 * Every delay has a jitter of 10 % up or down, so that attempts that failed together are not repeated together. If a schedule has a window
 * and the delays exceed it, the last attempt moves to the end of the window and no other follows.
 */
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

export type BreakerSettings = {
  readonly webhookBreakerFailuresMax: number;
  readonly webhookBreakerSeconds: number;
  readonly webhookBreakerSecondsMax: number;
};

/** For work of which one failure says nothing about the next: nothing outside that is down stands behind it. */
export const neverOpens: BreakerSettings = {
  webhookBreakerFailuresMax: Number.POSITIVE_INFINITY,
  webhookBreakerSeconds: 0,
  webhookBreakerSecondsMax: 0,
};

/** The greatest share of a period of the breaker that jitter removes. */
const breakerJitterMax = 0.2;

type Mode =
  | { readonly kind: 'closed'; readonly failures: number }
  | { readonly kind: 'open'; readonly until: number; readonly periodMs: number }
  | { readonly kind: 'half-open'; readonly probing: boolean; readonly periodMs: number };

const closed: Mode = { kind: 'closed', failures: 0 };

/**
 * The circuit breaker of a queue: pauses an endpoint or a sender whose attempts fail (§6), because each attempt at a
 * receiver that is down costs capacity. Its state is in memory only; the store has the schedule of each row.
 *
 * Three modes:
 * - closed: attempts begin freely. `failuresMax` failures in a row open it; a success resets the count.
 * - open: no attempt begins until a time, with jitter so that queues behind one outage do not resume together. Failures
 *   of attempts that began earlier are ignored.
 * - half-open, from that time on: one attempt begins, the probe. Its failure opens the breaker again, for twice as long
 *   up to a bound. If its outcome says nothing about the receiver (it was aborted), the next attempt is the probe.
 *
 * A success closes it in every mode, even if its attempt began before the breaker opened.
 */
export class Breaker {
  readonly #settings: BreakerSettings;
  readonly #random: () => number;
  #mode: Mode = closed;

  /** @param random returns numbers uniformly from 0 to 1 */
  constructor(settings: BreakerSettings, random: () => number) {
    this.#settings = settings;
    this.#random = random;
  }

  get mode(): Mode['kind'] {
    return this.#mode.kind;
  }

  /** The end of the pause, in milliseconds since the epoch; 0: not paused. */
  pausedUntil(at: number): number {
    if (this.#mode.kind !== 'open') return 0;
    if (at < this.#mode.until) return this.#mode.until;
    this.#mode = { kind: 'half-open', probing: false, periodMs: this.#mode.periodMs };
    return 0;
  }

  /** True while the probe is under way. */
  get probing(): boolean {
    return this.#mode.kind === 'half-open' && this.#mode.probing;
  }

  /** Lets the probe begin now, because a person requested an attempt. */
  allowProbe(): void {
    if (this.#mode.kind === 'open') {
      this.#mode = { kind: 'half-open', probing: false, periodMs: this.#mode.periodMs };
    }
  }

  /** @returns true if the attempt that begins is the probe */
  began(): boolean {
    if (this.#mode.kind !== 'half-open') return false;
    this.#mode = { ...this.#mode, probing: true };
    return true;
  }

  /** @returns true if the breaker was not closed before */
  succeeded(): boolean {
    const answersAgain = this.#mode.kind !== 'closed';
    this.#mode = closed;
    return answersAgain;
  }

  /** @returns the end of the pause in milliseconds since the epoch, if this failure opened the breaker */
  failed(at: number, probe: boolean): number | undefined {
    const mode = this.#mode;
    const { webhookBreakerFailuresMax, webhookBreakerSeconds, webhookBreakerSecondsMax } = this.#settings;
    if (mode.kind === 'closed') {
      const failures = mode.failures + 1;
      this.#mode = { kind: 'closed', failures };
      return failures < webhookBreakerFailuresMax ? undefined : this.#open(at, webhookBreakerSeconds * 1000);
    }
    if (!probe || mode.kind !== 'half-open') return undefined;
    return this.#open(at, Math.min(mode.periodMs * 2, webhookBreakerSecondsMax * 1000));
  }

  /** Records a probe whose outcome says nothing about the receiver. */
  ignored(probe: boolean): void {
    if (probe && this.#mode.kind === 'half-open') this.#mode = { ...this.#mode, probing: false };
  }

  /** Closes the breaker: the owner of an endpoint enabled it. */
  reset(): void {
    this.#mode = closed;
  }

  #open(at: number, periodMs: number): number {
    const until = at + Math.ceil(periodMs * (1 - breakerJitterMax * this.#random()));
    this.#mode = { kind: 'open', until, periodMs };
    return until;
  }
}
