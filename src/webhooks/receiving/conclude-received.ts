/**
 * The state machine of received messages (§4.14.5), described above `conclude`: computes the next state of a message
 * from an attempt to hand it on. Pure, and the same for both stores and any number of processes. settle-received.ts
 * commits the result.
 */

import { type Failure, failure, type HandedOn } from '../../logic/threads/handed-on.ts';
import type { Received } from '../../model/received.ts';
import type { Unit } from '../../store/store.ts';
import { nextAttemptMs } from '../../work/schedule.ts';
import { heldBackError } from './message-lines.ts';

/** An attempt that ended by itself. */
export type Ended = Exclude<HandedOn, { readonly outcome: 'aborted' }>;

export type Run = {
  readonly handedOn: Ended;
  /** Milliseconds since the epoch. */
  readonly startedAt: number;
  readonly endedAt: number;
};

export type Policy = {
  /** Seconds from each failed attempt to the next. */
  readonly schedule: readonly number[];
  /** Returns numbers from 0 (inclusive) to 1 (exclusive). */
  readonly random: () => number;
};

export type Conclusion = {
  readonly received: Received;
  /** The outcome for the log, a failure if writes had to be dropped. */
  readonly logged: Ended;
  /** The handler's writes, committed with the message. */
  readonly unit: Unit;
};

export const emptyUnit: Unit = { changes: [], events: [] };

/**
 * A message is `pending`, `processed` or `failed`, which is the dead letter. `dueAt` is the time of the next attempt;
 * only pending messages have one.
 *
 *   accepted                 pending     dueAt = the time of receipt; null if the sender hands nothing on
 *   processed                processed   dueAt = null; the handler's writes are committed with it
 *   failed                   pending     scheduledAttempts + 1; dueAt = by the schedule, not before a Retry-After
 *   failed, none left        failed      dueAt = null
 *   failed for good          failed      dueAt = null: `permanent`, a further attempt would not help
 *   aborted                  unchanged   the program stopped: nothing is counted or logged; due again at the next start
 *   replayed (resources)     pending     dueAt = now, scheduledAttempts = 0, attempts unchanged; from every state
 *   marked (resources)       as marked   dueAt = null; `processed` or `failed`
 *
 * Each attempt that ended is logged and counted in `attempts`. Several processes may work on one message. An attempt is
 * one unit that expects the revision with which the attempt began, so one of two writers is first, and the other
 * concludes again from the current row:
 *
 *   replayed meanwhile               processed: it is, with its writes. A failure leaves it due, its schedule restarted
 *   another attempt failed meanwhile processed: it is, with its writes. A failure leaves the schedule as moved
 *   marked meanwhile, or another     the mark stays and the handler's writes are dropped; if there were any,
 *   attempt processed it             the attempt is logged as failed by `superseded`
 *   removed meanwhile                nothing is written
 *
 * A sender that is no longer declared, or is declared without handing on, has no engine: its messages are unchanged,
 * and due ones are still due when it is declared again. Its messages can be marked.
 *
 * @param current the current message in the store
 * @param begun the message when the attempt began
 */
export function conclude(current: Received, begun: Received, run: Run, policy: Policy): Conclusion {
  const { handedOn, endedAt } = run;
  const counted = {
    ...current,
    attempts: current.attempts + 1,
    updatedAt: new Date(endedAt).toISOString(),
  };
  if (current.status !== 'pending') {
    return { received: counted, logged: withoutWrites(handedOn), unit: emptyUnit };
  }
  const isMoved = current.dueAt !== begun.dueAt || current.scheduledAttempts !== begun.scheduledAttempts;
  const scheduledAttempts = current.scheduledAttempts + (isMoved ? 0 : 1);
  if (handedOn.outcome === 'processed') {
    const received: Received = {
      ...{ ...counted, scheduledAttempts },
      ...{ status: 'processed', dueAt: null, lastError: null },
    };
    return { received, logged: handedOn, unit: handedOn.unit };
  }
  const failed = { ...counted, lastError: handedOn.error };
  if (isMoved) return { received: failed, logged: handedOn, unit: emptyUnit };
  const dueAt = nextDueAt(current, scheduledAttempts, handedOn, endedAt, policy);
  const status = dueAt === null ? 'failed' : 'pending';
  return { received: { ...failed, scheduledAttempts, status, dueAt }, logged: handedOn, unit: emptyUnit };
}

/** Returns `manual` for the first attempt after a replay, which restarts the schedule. */
export function triggerOf({
  scheduledAttempts,
  dueAt,
  receivedAt,
  lastError,
}: Pick<Received, 'scheduledAttempts' | 'dueAt' | 'receivedAt' | 'lastError'>): 'automatic' | 'manual' {
  if (lastError === heldBackError) return 'automatic';
  return scheduledAttempts === 0 && dueAt !== receivedAt ? 'manual' : 'automatic';
}

/**
 * Error of an attempt whose writes came too late: what they were made from, or the message itself, was changed
 * meanwhile.
 */
export const supersededError = 'superseded';
/**
 * Error of an attempt whose writes the store refused: a unique value that is taken, or a reference to a missing
 * resource.
 */
export const refusedError = 'refused';

function withoutWrites(handedOn: Ended): Ended {
  if (handedOn.outcome === 'failed') return handedOn;
  const { changes, events } = handedOn.unit;
  if (changes.length + events.length === 0) return handedOn;
  return failure(
    supersededError,
    'the message was marked or processed meanwhile; the writes of this attempt were dropped',
  );
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
