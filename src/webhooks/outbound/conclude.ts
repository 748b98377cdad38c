/**
 * What a delivery becomes by an attempt (§3, §6): the state machine of deliveries, in prose above `conclude`. Pure, and the same on both
 * stores and for any number of processes. Writing down is settle.ts.
 */
import type { WebhookSchedules } from '../../config/webhook-schedules.ts';
import type { Delivery, Trigger } from '../../model/delivery.ts';
import type { Endpoint } from '../../model/endpoint.ts';
import type { Attempted, Verdict } from './claim.ts';
import { nextAttemptMs, scheduleOf } from './schedule.ts';
import { isAborted, isAcknowledged, verdictOf } from './settle/verdict.ts';

/** `lastError` of a delivery whose event has been removed. */
export const expungedError = 'expunged';
/** `lastError` of a delivery that the owner of its endpoint, or its tenant, may not read any more. */
export const forbiddenError = 'access_lost';

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
