/**
 * What a received message becomes by an attempt to hand it on (§4.14.5): the state machine of received messages, in prose above `conclude`.
 * Pure, and the same on both stores and for any number of processes. Writing down is settle-received.ts.
 */
import type { Received } from '../../model/received.ts';
import type { Unit } from '../../store/store.ts';
import { nextAttemptMs } from '../work/schedule.ts';
import type { HandedOn } from './hand-on.ts';

/** An attempt that came to an end of its own. */
export type Ended = Exclude<HandedOn, { readonly outcome: 'aborted' }>;
export type Failure = Extract<HandedOn, { readonly outcome: 'failed' }>;

export type Run = {
  readonly handedOn: Ended;
  /** Milliseconds since the epoch. */
  readonly startedAt: number;
  readonly endedAt: number;
};

export type Policy = {
  /** Seconds from each failed attempt to the next. */
  readonly schedule: readonly number[];
  /** From 0 up to, not including, 1. */
  readonly random: () => number;
};

export type Conclusion = {
  readonly received: Received;
  /** What the log says of the attempt: other than what came of it where writes had to be dropped. */
  readonly logged: Ended;
  /** What is committed besides. */
  readonly unit: Unit;
};

/** Nothing to be written besides the message. */
export const emptyUnit: Unit = { changes: [], events: [] };

/**
 * A message is `pending`, `processed` or `failed`, which is the dead letter. `dueAt` is when it is tried next; only what is pending has one.
 *
 *   accepted                 pending     dueAt = the time of receipt; null where the sender hands nothing on
 *   processed                processed   dueAt = null, and what the handler wrote is committed with it
 *   failed                   pending     scheduledAttempts + 1; dueAt = by the sender's schedule, not before a Retry-After
 *   failed, none left        failed      dueAt = null
 *   failed for good          failed      dueAt = null: `permanent`, no further attempt would help
 *   aborted                  as it was   the program stopped: nothing is counted or logged, and it is due again at the next start
 *   replayed (resources)     pending     dueAt = now, scheduledAttempts = 0, attempts stay; from every state
 *   marked (resources)       as marked   dueAt = null; `processed` or `failed`
 *
 * Each attempt that ended is logged and counted in `attempts`. Any number of processes may work at a message. One attempt is one unit that
 * expects the revision with which the attempt began, so of two writers one is first, and the other concludes again from what then stands:
 *
 *   replayed meanwhile               processed: that stands, writes and all. A failure leaves it due when asked, and its schedule at its beginning
 *   another attempt failed meanwhile processed: that stands, writes and all. A failure leaves the schedule where the other moved it
 *   marked meanwhile, or another     the mark stays and the handler's writes are dropped; where there were any, the attempt is logged as
 *   attempt processed it             failed by `superseded`
 *   removed meanwhile                nothing is written at all
 *
 * A sender that is not declared any more, or is declared without handing on, has no engine: its messages stay as they are, and those that are due
 * are so still when it is declared again. A message of it can be marked.
 *
 * @param standing the message as it stands in the store
 * @param begun as it stood when the attempt began
 */
export function conclude(standing: Received, begun: Received, run: Run, policy: Policy): Conclusion {
  const { handedOn, endedAt } = run;
  const counted = {
    ...standing,
    attempts: standing.attempts + 1,
    updatedAt: new Date(endedAt).toISOString(),
  };
  if (standing.status !== 'pending') {
    return { received: counted, logged: withoutWrites(handedOn), unit: emptyUnit };
  }
  const isMoved = standing.dueAt !== begun.dueAt || standing.scheduledAttempts !== begun.scheduledAttempts;
  const scheduledAttempts = standing.scheduledAttempts + (isMoved ? 0 : 1);
  if (handedOn.outcome === 'processed') {
    const received: Received = {
      ...{ ...counted, scheduledAttempts },
      ...{ status: 'processed', dueAt: null, lastError: null },
    };
    return { received, logged: handedOn, unit: handedOn.unit };
  }
  const failed = { ...counted, lastError: handedOn.error };
  if (isMoved) return { received: failed, logged: handedOn, unit: emptyUnit };
  const dueAt = nextDueAt(standing, scheduledAttempts, handedOn, endedAt, policy);
  const status = dueAt === null ? 'failed' : 'pending';
  return { received: { ...failed, scheduledAttempts, status, dueAt }, logged: handedOn, unit: emptyUnit };
}

/** Whether somebody asked for the attempt that is due: what was replayed is due again, and its schedule at its beginning. */
export function triggerOf({
  scheduledAttempts,
  dueAt,
  receivedAt,
}: Pick<Received, 'scheduledAttempts' | 'dueAt' | 'receivedAt'>): 'automatic' | 'manual' {
  return scheduledAttempts === 0 && dueAt !== receivedAt ? 'manual' : 'automatic';
}

/** Of an attempt whose writes came too late: what they were made from, or the message itself, was changed meanwhile. */
export const supersededError = 'superseded';
/** Of an attempt whose writes the store refused: a unique value that is taken, a reference to nothing. */
export const refusedError = 'refused';

/** @param message for people */
export function superseded(message: string): Failure {
  return {
    outcome: 'failed',
    error: supersededError,
    message,
    statusCode: null,
    permanent: false,
    notBefore: null,
  };
}

function withoutWrites(handedOn: Ended): Ended {
  if (handedOn.outcome === 'failed') return handedOn;
  const { changes, events } = handedOn.unit;
  if (changes.length + events.length === 0) return handedOn;
  return superseded('the message was marked or processed meanwhile; what this attempt wrote was dropped');
}

function nextDueAt(
  { receivedAt }: Received,
  scheduledAttemptCount: number,
  { permanent, notBefore }: Failure,
  failedAt: number,
  { schedule, random }: Policy,
): string | null {
  if (permanent) return null;
  const failed = { scheduledAttemptCount, madeAt: Date.parse(receivedAt), failedAt, notBefore };
  const next = nextAttemptMs({ delaysSeconds: schedule, windowMs: null }, failed, random);
  return next === null ? null : new Date(next).toISOString();
}
