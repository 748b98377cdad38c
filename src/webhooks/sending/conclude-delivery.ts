/**
 * What a delivery becomes by an attempt (§3, §6): the state machine of deliveries, in prose above `conclude`. Pure, and the same on both
 * stores and for any number of processes. Writing down is settle-delivery.ts.
 */
import type { ScheduleName, WebhookSchedules } from '../../config/webhook-schedules.ts';
import type { Delivery, Trigger } from '../../model/delivery.ts';
import type { Endpoint, Scheme } from '../../model/endpoint.ts';
import { nextAttemptMs, retryAfter, type Schedule } from '../work/schedule.ts';
import type { Attempted, Verdict } from './delivery-claim.ts';

/** `lastError` of a delivery whose event has been removed. */
export const expungedError = 'expunged';
/** `lastError` of a delivery that the owner of its endpoint, or its tenant, may not read any more. */
const forbiddenError = 'access_lost';

export type Policy = {
  readonly endpoint: Pick<Endpoint, 'scheme' | 'mode'>;
  readonly trigger: Trigger;
  readonly schedules: WebhookSchedules;
  /** From 0 up to, not including, 1. */
  readonly random: () => number;
  readonly retryAfterSecondsMax: number;
};

export type Conclusion = {
  /** The very `standing` where nothing is to be written. */
  readonly delivery: Delivery;
  /** Whether there was an attempt that the log should know; its number is then the delivery's `attemptCount`. */
  readonly isLogged: boolean;
  readonly verdict: Verdict;
};

/**
 * A delivery is `pending` (never tried, or asked for by hand), `delivered` or `not_delivered`. Besides, `nextAttemptAt` is the schedule's
 * next time, null when it has none, and `dueAt` is when it will really be tried: the same, or the time at which somebody asked.
 *
 *   made               pending         dueAt = nextAttemptAt = the time of the event
 *   2xx                delivered       dueAt = nextAttemptAt = null, whoever asked for the attempt
 *   failed, automatic  not_delivered   scheduledAttemptCount + 1; dueAt = nextAttemptAt = by schedule, null: none left
 *   failed, manual     not_delivered   the schedule stays; dueAt = nextAttemptAt
 *   gone (410)         not_delivered   dueAt = nextAttemptAt = null; its endpoint is disabled besides
 *   expunged           not_delivered   dueAt = nextAttemptAt = null, lastError `expunged`; no attempt was made and none is counted
 *   forbidden          not_delivered   dueAt = nextAttemptAt = null, lastError `access_lost`; none is counted
 *   aborted            as it was       the program stopped: nothing is counted or logged, and it is due again at the next start
 *   asked for by hand  pending         dueAt = now; the schedule stays (done by resources and recoveries, from every state)
 *
 * Any number of processes may work at it. One attempt is one unit that expects the revision which the attempt began with, so of two writers
 * one is first, and the other concludes again from what then stands (`standing`, while `begun` is what it began with):
 *
 *   somebody asked meanwhile          2xx: delivered. A failure counts in the schedule, but the delivery stays pending and due when asked
 *   the other concluded an attempt    the attempt is counted and logged; the schedule has moved on already and stays;
 *                                     what is delivered stays delivered, what was not becomes it by a 2xx
 *   it was expunged                   nothing is due any more, whatever came of the attempt
 *
 * Time never comes from two clocks within one conclusion: everything counts from the end of the attempt.
 *
 * @param standing the delivery as it stands in the store
 * @param begun as it stood when the attempt began
 */
export function conclude(
  standing: Delivery,
  attempted: Attempted,
  policy: Policy,
  begun: Delivery = standing,
): Conclusion {
  const { endpoint, trigger, retryAfterSecondsMax } = policy;
  const verdict = verdictOf(attempted, trigger, endpoint.scheme, retryAfterSecondsMax);
  if (isAborted(attempted)) return { delivery: standing, isLogged: false, verdict };
  const { kind } = attempted.outcome;
  if (kind === 'expunged' || kind === 'forbidden') {
    const error = kind === 'expunged' ? expungedError : forbiddenError;
    return { delivery: unsent(standing, error, attempted.endedAt), isLogged: false, verdict };
  }
  const delivery = isAcknowledged(attempted)
    ? delivered(standing, attempted, trigger)
    : notDelivered(standing, attempted, policy, begun, verdict);
  return { delivery, isLogged: true, verdict };
}

function delivered(standing: Delivery, attempted: Attempted, trigger: Trigger): Delivery {
  return {
    ...standing,
    status: 'delivered',
    attemptCount: standing.attemptCount + 1,
    scheduledAttemptCount: standing.scheduledAttemptCount + (trigger === 'automatic' ? 1 : 0),
    nextAttemptAt: null,
    dueAt: null,
    ...lastOf(attempted),
    updatedAt: isoTime(attempted.endedAt),
  };
}

function notDelivered(
  standing: Delivery,
  attempted: Attempted,
  policy: Policy,
  begun: Delivery,
  verdict: Verdict,
): Delivery {
  const attemptCount = standing.attemptCount + 1;
  const updatedAt = isoTime(attempted.endedAt);
  // Another attempt was answered with 2xx meanwhile, or there is nothing to send any more.
  const isExpunged = standing.lastError === expungedError && standing.dueAt === null;
  if (standing.status === 'delivered' || isExpunged) {
    return { ...standing, attemptCount, updatedAt };
  }
  // The schedule only goes forward: where it stands elsewhere, another attempt moved it, or ended it.
  const isScheduled = policy.trigger === 'automatic' && standing.nextAttemptAt === begun.nextAttemptAt;
  const scheduledAttemptCount = standing.scheduledAttemptCount + (isScheduled ? 1 : 0);
  const nextAttemptAt = verdict.gone
    ? null
    : isScheduled
      ? nextBySchedule(standing, scheduledAttemptCount, attempted.endedAt, policy, verdict)
      : standing.nextAttemptAt;
  const isAsked = standing.dueAt !== begun.dueAt && standing.dueAt !== standing.nextAttemptAt;
  return {
    ...standing,
    status: isAsked ? 'pending' : 'not_delivered',
    attemptCount,
    scheduledAttemptCount,
    nextAttemptAt,
    dueAt: isAsked ? standing.dueAt : nextAttemptAt,
    ...lastOf(attempted),
    updatedAt,
  };
}

function nextBySchedule(
  standing: Delivery,
  scheduledAttemptCount: number,
  failedAt: number,
  { endpoint, schedules, random }: Policy,
  { notBefore }: Verdict,
): string | null {
  const madeAt = Date.parse(standing.createdAt);
  const failed = { scheduledAttemptCount, madeAt, failedAt, notBefore };
  const next = nextAttemptMs(scheduleOf(endpoint, schedules), failed, random);
  return next === null ? null : isoTime(next);
}

/** One that another process delivered meanwhile stays as it is. */
function unsent(standing: Delivery, lastError: string, at: number): Delivery {
  if (standing.status === 'delivered') return standing;
  return {
    ...standing,
    status: 'not_delivered',
    nextAttemptAt: null,
    dueAt: null,
    lastStatusCode: null,
    lastError,
    updatedAt: isoTime(at),
  };
}

function lastOf({ outcome }: Attempted): Pick<Delivery, 'lastStatusCode' | 'lastError'> {
  if (outcome.kind === 'answered') return { lastStatusCode: outcome.status, lastError: null };
  return { lastStatusCode: null, lastError: outcome.kind === 'failed' ? outcome.failure : expungedError };
}

function isoTime(ms: number): string {
  return new Date(ms).toISOString();
}

const succeeded: Verdict = { health: 'succeeded', notBefore: null, slowDown: false, gone: false };
const silent: Verdict = { health: 'ignored', notBefore: null, slowDown: false, gone: false };

/** Statuses that ask for less, and with which Retry-After is read. */
const slowing: ReadonlySet<number> = new Set([429, 502, 503, 504]);
const goneStatus = 410;

/** Any 2xx, and nothing else (§6.4). */
export function isAcknowledged({ outcome }: Attempted): boolean {
  return outcome.kind === 'answered' && outcome.status >= 200 && outcome.status <= 299;
}

/** Whether the attempt counts at all, or the program stopped in the middle of it. */
function isAborted({ outcome }: Attempted): boolean {
  return outcome.kind === 'failed' && outcome.failure === 'aborted';
}

/**
 * What an attempt says of its endpoint (§6), whatever it means for the delivery.
 *
 *   2xx                        it works, also where a person had asked for the attempt
 *   429, 502, 503, 504         it fails and wants less at once; its Retry-After is honoured
 *   timeout                    it fails and wants less at once
 *   410, scheme `standard`     it wants no more; the other schemes document no such meaning (§6.6), so there it is a failure
 *   everything else            it fails; a redirect is among that
 *   aborted, expunged          nothing
 *
 * A failure that a person had asked for says nothing of its health: somebody who tries a broken endpoint again and again should not bring
 * nearer the day on which it is disabled.
 */
function verdictOf(
  attempted: Attempted,
  trigger: Trigger,
  scheme: Scheme,
  retryAfterSecondsMax: number,
): Verdict {
  const { outcome, endedAt } = attempted;
  if (outcome.kind === 'expunged' || outcome.kind === 'forbidden' || isAborted(attempted)) return silent;
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

/** §6, "retries for up to 3 days": from the making of the delivery to the beginning of its last attempt. */
export const liveWindowMs = 3 * 86_400_000;

/** The row of §6's table that is the endpoint's. */
function scheduleNameOf({ scheme, mode }: Pick<Endpoint, 'scheme' | 'mode'>): ScheduleName {
  if (scheme !== 'timestamped') return scheme;
  return mode === 'sandbox' ? 'sandbox' : 'live';
}

/**
 * `live` promises retries for up to 3 days. A configuration that lists more than 3 days for it has chosen so, and gets no such end.
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
