/**
 * The state machine of deliveries (§3, §6), described above `conclude`: computes the next state of a delivery from an
 * attempt. Pure, and the same for both stores and any number of processes. settle-delivery.ts commits the result.
 */
import type { ScheduleName, WebhookSchedules } from '../../config/webhook-schedules.ts';
import type { ExchangeOutcome } from '../../egress/exchange.ts';
import type { Delivery, Trigger } from '../../model/delivery.ts';
import type { Endpoint, Scheme } from '../../model/endpoint.ts';
import { formatTimestamp } from '../../model/timestamp.ts';
import type { Change } from '../../store/store.ts';
import { nextAttemptMs, retryAfter, type Schedule } from '../../work/retries.ts';
import type { KnownEndpoint } from './known-endpoint.ts';

/** `lastError` of a delivery whose event has been removed. */
export const expungedError = 'expunged';

/** `lastError` of deliveries that are not sent. */
const unsentErrors: Readonly<Record<Unsent['kind'], string>> = {
  expunged: expungedError,
  forbidden: 'access_lost',
  given_up: 'given_up',
  too_large: 'body_too_large',
};

export type Policy = {
  readonly endpoint: Pick<Endpoint, 'scheme' | 'mode'>;
  readonly trigger: Trigger;
  readonly schedules: WebhookSchedules;
  /** Returns numbers from 0 (inclusive) to 1 (exclusive). */
  readonly random: () => number;
  readonly retryAfterSecondsMax: number;
};

export type Conclusion = {
  /** The same object as `current` if nothing is to be written. */
  readonly delivery: Delivery;
  /** True if the attempt is logged; its number is then the delivery's `attemptCount`. */
  readonly isLogged: boolean;
  readonly verdict: Verdict;
};

/**
 * A delivery is `pending` (never tried, or requested by hand), `delivered` or `not_delivered`. `nextAttemptAt` is the
 * next time of the schedule, null if it has none. `dueAt` is the time of the next attempt: the same, or the time of a
 * request.
 *
 *   created            pending         dueAt = nextAttemptAt = the time of the event
 *   2xx                delivered       dueAt = nextAttemptAt = null, for both triggers
 *   failed, automatic  not_delivered   scheduledAttemptCount + 1; dueAt = nextAttemptAt = by schedule, null: none left
 *   failed, manual     not_delivered   the schedule is unchanged; dueAt = nextAttemptAt
 *   gone (410)         not_delivered   dueAt = nextAttemptAt = null; the endpoint is disabled
 *   expunged           not_delivered   dueAt = nextAttemptAt = null, lastError `expunged`; no attempt is counted
 *   forbidden          not_delivered   dueAt = nextAttemptAt = null, lastError `access_lost`; no attempt is counted
 *   given up           not_delivered   dueAt = nextAttemptAt = null, lastError `given_up`; no attempt is counted
 *   too large          not_delivered   dueAt = nextAttemptAt = null, lastError `body_too_large`; no attempt is counted
 *   aborted            unchanged       the program stopped: nothing is counted or logged; due again at the next start
 *   requested by hand  pending         dueAt = now; the schedule is unchanged (resources and recoveries, any state)
 *
 * Several processes may work on one delivery. An attempt is one unit that expects the revision with which the attempt
 * began, so one of two writers is first, and the other concludes again from the current row (`current`; `begun` is the
 * row with which it began):
 *
 *   requested meanwhile               2xx: delivered. A failure counts in the schedule, but the delivery stays
 *                                     pending and due as requested
 *   the other concluded an attempt    the attempt is counted and logged; the schedule, already advanced, is unchanged;
 *                                     a delivered row stays delivered, any other becomes delivered by a 2xx
 *   expunged                          nothing is due any more, whatever the outcome of the attempt
 *
 * All times within one conclusion come from one clock and count from the end of the attempt.
 *
 * @param current the current delivery in the store
 * @param begun the delivery when the attempt began
 */
export function conclude(
  current: Delivery,
  attempted: Attempted,
  policy: Policy,
  begun: Delivery = current,
): Conclusion {
  const { endpoint, trigger, retryAfterSecondsMax } = policy;
  const verdict = verdictOf(attempted, trigger, endpoint.scheme, retryAfterSecondsMax);
  if (isAborted(attempted)) return { delivery: current, isLogged: false, verdict };
  if (isUnsent(attempted.outcome)) {
    const error = unsentErrors[attempted.outcome.kind];
    return { delivery: unsent(current, error, attempted.endedAt), isLogged: false, verdict };
  }
  const delivery = isAcknowledged(attempted)
    ? delivered(current, attempted, trigger)
    : notDelivered(current, attempted, policy, begun, verdict);
  return { delivery, isLogged: true, verdict };
}

function delivered(current: Delivery, attempted: Attempted, trigger: Trigger): Delivery {
  return {
    ...current,
    status: 'delivered',
    attemptCount: current.attemptCount + 1,
    scheduledAttemptCount: current.scheduledAttemptCount + (trigger === 'automatic' ? 1 : 0),
    nextAttemptAt: null,
    dueAt: null,
    ...lastOf(attempted),
    updatedAt: formatTimestamp(attempted.endedAt),
  };
}

function notDelivered(
  current: Delivery,
  attempted: Attempted,
  policy: Policy,
  begun: Delivery,
  verdict: Verdict,
): Delivery {
  const attemptCount = current.attemptCount + 1;
  const updatedAt = formatTimestamp(attempted.endedAt);
  // Another attempt was answered with 2xx meanwhile, or the event was expunged.
  const isExpunged = current.lastError === expungedError && current.dueAt === null;
  if (current.status === 'delivered' || isExpunged) {
    return { ...current, attemptCount, updatedAt };
  }
  // The schedule only advances: if `nextAttemptAt` changed meanwhile, another attempt advanced or ended the schedule.
  const isScheduled = policy.trigger === 'automatic' && current.nextAttemptAt === begun.nextAttemptAt;
  const scheduledAttemptCount = current.scheduledAttemptCount + (isScheduled ? 1 : 0);
  const nextAttemptAt = verdict.gone
    ? null
    : isScheduled
      ? nextBySchedule(current, scheduledAttemptCount, attempted.endedAt, policy, verdict)
      : current.nextAttemptAt;
  const isAsked = current.dueAt !== begun.dueAt && current.dueAt !== current.nextAttemptAt;
  return {
    ...current,
    status: isAsked ? 'pending' : 'not_delivered',
    attemptCount,
    scheduledAttemptCount,
    nextAttemptAt,
    dueAt: isAsked ? current.dueAt : nextAttemptAt,
    ...lastOf(attempted),
    updatedAt,
  };
}

function nextBySchedule(
  current: Delivery,
  scheduledAttemptCount: number,
  failedAt: number,
  { endpoint, schedules, random }: Policy,
  { notBefore }: Verdict,
): string | null {
  const madeAt = Date.parse(current.createdAt);
  const failed = { scheduledAttemptCount, madeAt, failedAt, notBefore };
  const next = nextAttemptMs(scheduleOf(endpoint, schedules), failed, random);
  return next === null ? null : formatTimestamp(next);
}

/** A delivery that another process delivered meanwhile is unchanged. */
function unsent(current: Delivery, lastError: string, at: number): Delivery {
  if (current.status === 'delivered') return current;
  return {
    ...current,
    status: 'not_delivered',
    nextAttemptAt: null,
    dueAt: null,
    lastStatusCode: null,
    lastError,
    updatedAt: formatTimestamp(at),
  };
}

function lastOf({ outcome }: Attempted): Pick<Delivery, 'lastStatusCode' | 'lastError' | 'lastLatencyMs'> {
  if (isUnsent(outcome)) return { lastStatusCode: null, lastError: unsentErrors[outcome.kind] };
  const lastLatencyMs = Math.round(outcome.timing.totalMs);
  return outcome.kind === 'answered'
    ? { lastStatusCode: outcome.status, lastError: null, lastLatencyMs }
    : { lastStatusCode: null, lastError: outcome.failure, lastLatencyMs };
}

const succeeded: Verdict = { health: 'succeeded', notBefore: null, slowDown: false, gone: false };
const silent: Verdict = { health: 'ignored', notBefore: null, slowDown: false, gone: false };

/** Statuses that ask to slow down, and with which Retry-After is read. */
const slowing: ReadonlySet<number> = new Set([429, 502, 503, 504]);
const goneStatus = 410;

/** Returns true if the response has any 2xx status (§6.4). */
export function isAcknowledged({ outcome }: Attempted): boolean {
  return outcome.kind === 'answered' && outcome.status >= 200 && outcome.status <= 299;
}

/** Returns true if the attempt failed; an aborted one or one without an exchange did not. */
export function isFailure({ outcome }: Attempted): boolean {
  if (outcome.kind === 'answered') return outcome.status < 200 || outcome.status > 299;
  return outcome.kind === 'failed' && outcome.failure !== 'aborted';
}

export function isUnsent(outcome: Attempted['outcome']): outcome is Unsent {
  return outcome.kind !== 'answered' && outcome.kind !== 'failed';
}

/** Returns true if the program stopped during the attempt, which then does not count. */
function isAborted({ outcome }: Attempted): boolean {
  return outcome.kind === 'failed' && outcome.failure === 'aborted';
}

/**
 * What an attempt says about its endpoint (§6), independent of the delivery:
 *
 *   2xx                        it works, for both triggers
 *   429, 502, 503, 504         a failure and a request to slow down; Retry-After is honoured
 *   timeout                    a failure and a request to slow down
 *   410, scheme `standard`     it wants no more; in other schemes, which do not document this (§6.6), a failure
 *   everything else            a failure, including a redirect
 *   aborted, not sent          nothing
 *
 * A manual failure says nothing about health: repeated tests of a broken endpoint must not hasten the day on which it
 * is disabled.
 */
function verdictOf(
  attempted: Attempted,
  trigger: Trigger,
  scheme: Scheme,
  retryAfterSecondsMax: number,
): Verdict {
  const { outcome, endedAt } = attempted;
  if (isUnsent(outcome) || isAborted(attempted)) return silent;
  if (isAcknowledged(attempted)) return succeeded;
  const health = trigger === 'manual' ? 'ignored' : 'failed';
  if (outcome.kind === 'failed') {
    return { health, notBefore: null, slowDown: outcome.failure === 'timeout', gone: false };
  }
  const slowDown = slowing.has(outcome.status);
  return {
    health,
    notBefore: slowDown ? retryAfter(outcome.fields, endedAt, retryAfterSecondsMax) : null,
    slowDown,
    gone: outcome.status === goneStatus && scheme === 'standard',
  };
}

/** §6, "retries for up to 3 days": from the creation of the delivery to the beginning of its last attempt. */
export const liveWindowMs = 3 * 86_400_000;

/** Returns the endpoint's row of the table in §6. */
function scheduleNameOf({ scheme, mode }: Pick<Endpoint, 'scheme' | 'mode'>): ScheduleName {
  if (scheme !== 'timestamped') return scheme;
  return mode === 'sandbox' ? 'sandbox' : 'live';
}

/**
 * Returns the schedule of an endpoint. `live` promises retries for up to 3 days; a configuration whose delays exceed 3
 * days chose to, and has no window.
 */
export function scheduleOf(
  endpoint: Pick<Endpoint, 'scheme' | 'mode'>,
  schedules: WebhookSchedules,
): Schedule {
  const name = scheduleNameOf(endpoint);
  const delaysSeconds = schedules[name];
  const hasWindow = name === 'live' && sumMs(delaysSeconds) <= liveWindowMs;
  return { delaysSeconds, windowMs: hasWindow ? liveWindowMs : null };
}

function sumMs(delaysSeconds: readonly number[]): number {
  let sum = 0;
  for (const seconds of delaysSeconds) sum += seconds * 1000;
  return sum;
}

export type Claim = {
  readonly delivery: Delivery;
  /** Revision and owner of its row. */
  readonly rev: number;
  readonly owner: string | null;
  readonly endpoint: KnownEndpoint;
  readonly trigger: Trigger;
  /** Leaves the line in which the delivery is the first, once it has no further attempt; undefined: it is in none. */
  readonly leave?: Change | undefined;
  /**
   * A person requested this attempt by a resend or a test. It has its own connections, and neither window nor breaker
   * counts it.
   */
  readonly isAsked?: boolean;
};

/**
 * Nothing was sent and nothing will be: the event no longer exists, the endpoint's owner may no longer read it, the application's
 * `afterRead` ended every program that made the body, or the endpoint's template makes too large a body.
 */
export type Unsent = { readonly kind: 'expunged' | 'forbidden' | 'given_up' | 'too_large' };

export type Attempted = {
  readonly outcome: ExchangeOutcome | Unsent;
  /** Milliseconds since the epoch. */
  readonly startedAt: number;
  readonly endedAt: number;
};

/** Receives the end of an attempt: one call of one function. */
export type AttemptEnd = {
  attempted(attempted: Attempted): void;
  /** An internal failure, such as StoreUnavailable, prevented the attempt. */
  failed(error: unknown): void;
};

/** Signs and sends one delivery; may end before it returns. */
export type Send = (claim: Claim, signal: AbortSignal, end: AttemptEnd) => void;

/** The effect of an attempt on its endpoint, independent of the delivery. */
export type Verdict = {
  /** `ignored`: the attempt says nothing, because it was aborted, expunged or a manual failure. */
  readonly health: 'succeeded' | 'failed' | 'ignored';
  /** Nothing is sent before this time (ms since the epoch): Retry-After. */
  readonly notBefore: number | null;
  /** The endpoint asks to slow down: 429, 502, 503, 504 and timeouts. */
  readonly slowDown: boolean;
  /** The endpoint wants no more events: 410, scheme `standard`. */
  readonly gone: boolean;
};

export type Settle = {
  /** Settles an attempt. Resolves when the unit is durable; rejects with StoreUnavailable only. */
  alone(claim: Claim, attempted: Attempted): Promise<Settled>;
  /**
   * Settles an attempt in one unit with others that end in the same turn of the event loop, and calls back when it is
   * durable. `undefined`: this attempt must be settled alone.
   */
  together(claim: Claim, attempted: Attempted, done: (settled: Settled | undefined) => void): void;
};

export type Settled = {
  readonly verdict: Verdict;
  /** The delivery after the attempt; undefined: it was removed meanwhile. */
  readonly delivery: Delivery | undefined;
};
