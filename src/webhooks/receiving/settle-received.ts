/**
 * Settles an attempt to hand a message on (work/settlement.ts): the message, by its revision, the row of the attempt, and the handler's
 * writes with their events. `conclude` is the state machine of received messages (§4.14.5). The store must be the one with fan-out.
 *
 * Nothing here runs a handler: if others changed what it had read, the caller must run it again.
 */
import type { Source } from '../../config/senders.ts';
import { type Failure, failure, type HandedOn } from '../../logic/threads/handler-protocol.ts';
import { type Actor, causeText, withCause } from '../../model/actor.ts';
import { type Received, receivedDocument } from '../../model/received.ts';
import { takenText } from '../../resources/collection/commit.ts';
import { UnitTooLarge } from '../../store/group-commit.ts';
import {
  type Change,
  type Commit,
  type EventEntry,
  keptRow,
  type Store,
  type Unit,
} from '../../store/store.ts';
import { nextAttemptMs } from '../../work/retries.ts';
import {
  attemptRowChange,
  fittingText,
  isAttemptLogged,
  type Refused,
  type Settled as SettledByRevision,
  type Settlement,
  settleByRevision,
} from '../../work/settlement.ts';
import { heldBackError } from '../../work/work-lines.ts';
import { type Claimed, emptyUnit } from './hand-on.ts';
import { type ReceivedAttempt, receivedAttemptsTable, receivedCollection } from './received-tables.ts';

/**
 * Error of an attempt whose writes came too late: what they were made from, or the message itself, was changed
 * meanwhile.
 */
export const supersededError = 'superseded';
/**
 * Error of an attempt whose writes the store refused: a unique value that is taken, or a reference to a missing
 * resource.
 */
const refusedError = 'refused';

export type Settled =
  /** What the handler had read was changed meanwhile: nothing was written or counted. */
  | { readonly kind: 'rerun' }
  | {
      readonly kind: 'settled';
      /** The final outcome: the store may have refused a handler's writes. */
      readonly handedOn: Ended;
      /** The message after the attempt; undefined: it was removed meanwhile. */
      readonly received: Received | undefined;
    };

/**
 * @param mayRerun true if the caller would run the handler again; otherwise the attempt fails by `superseded`
 * @throws StoreUnavailable
 */
export type SettleHandedOn = (claimed: Claimed, run: Run, mayRerun: boolean) => Promise<Settled>;

/** @param random returns numbers from 0 (inclusive) to 1 (exclusive) */
export function createSettle(
  store: Pick<Store, 'commit' | 'read' | 'lines'>,
  random: () => number,
): SettleHandedOn {
  /** Runs whose unit may have been committed although the store failed. */
  const doubtful = new WeakSet<Run>();

  return async (claimed, run, mayRerun) => {
    const commit = async (unit: Unit): Promise<Commit> => {
      try {
        return await store.commit(unit);
      } catch (error) {
        doubtful.add(run);
        throw error;
      }
    };
    const settle = (made: Run): Promise<SettledByRevision<Received, Concluded>> => {
      const settling = { claimed, run: made, mayRerun, random, isDoubtful: () => doubtful.has(run) };
      return settleByRevision({ commit, lines: store.lines }, settlementOf(store, settling), {
        ...{ work: claimed.received, rev: claimed.rev, owner: null },
      });
    };
    const settled = await settle(run).catch((error) => {
      if (!(error instanceof UnitTooLarge)) throw error;
      return settle({ ...run, handedOn: failure(refusedError, error.message, true) });
    });
    if (settled.kind === 'refused') return { kind: 'rerun' };
    const { kind, conclusion } = settled;
    const handedOn = conclusion.logged;
    if (kind === 'removed') return { kind: 'settled', handedOn, received: undefined };
    const received = kind === 'logged' ? settled.work : conclusion.received;
    return { kind: 'settled', handedOn, received };
  };
}

type Settling = {
  readonly claimed: Claimed;
  readonly run: Run;
  readonly mayRerun: boolean;
  readonly random: () => number;
  /** Returns true if a unit of the run may have been committed already. */
  readonly isDoubtful: () => boolean;
};

type Concluded = Conclusion & { readonly facts: AttemptFacts };

function settlementOf(
  store: Pick<Store, 'read'>,
  { claimed, run, mayRerun, random, isDoubtful }: Settling,
): Settlement<Received, Concluded> {
  const begun = claimed.received;
  const trigger = triggerOf(begun);
  const policy = { schedule: claimed.sender.schedule, random };
  /** The outcome of the run; replaced when the store refuses the handler's writes. */
  let { handedOn } = run;
  let { leave } = claimed;
  return {
    table: receivedCollection.name,
    id: begun.id,
    conclude(message) {
      const conclusion = conclude(message, begun, { ...run, handedOn }, policy);
      const { received, logged } = conclusion;
      return { ...conclusion, facts: { ...run, number: received.attempts, handedOn: logged, trigger } };
    },
    unitOf({ received, facts, unit }, { rev }) {
      const own = [messageChange(received, rev, run.endedAt), attemptChange(begun.id, facts)];
      const left = leave === undefined || received.status === 'pending' ? [] : [leave];
      return {
        own,
        others: [...unit.changes, ...left],
        events: causedBy(claimed, unit.events, run.handedOn),
      };
    },
    withNextNumber: (message) => ({ ...message, attempts: message.attempts + 1 }),
    async isLogged(message, { facts }) {
      // If no response was lost, an attempt with the same times is another process's.
      if (!isDoubtful()) return false;
      const [countedBefore, counted] = [begun.attempts, message.attempts];
      const range = { table: receivedAttemptsTable, workId: begun.id, countedBefore, counted };
      return await isAttemptLogged(store, range, (doc) => isSameAttempt(doc, facts));
    },
    refused(commit) {
      if (commit.outcome === 'superseded' && mayRerun) return false;
      handedOn = refusal(commit);
      // The next look at the line takes the message out.
      leave = undefined;
      return true;
    },
  };
}

/** What a unit causes is one deeper than its own event, and names the function that ran. */
function causedBy(
  { sender, content }: Claimed,
  events: readonly EventEntry[],
  handedOn: HandedOn,
): readonly EventEntry[] {
  if (events.length === 0) return events;
  const depth = (content.depth ?? 0) + 1;
  const traceparent = handedOn.outcome === 'processed' ? handedOn.traceparent : undefined;
  const cause = causeText(actorOfSource(sender), null, traceparent);
  return events.map((event) => ({ ...event, depth, doc: withCause(event.doc, cause) }));
}

function actorOfSource({ name, handOn }: Source): Actor {
  if (handOn.kind === 'subscriber' || handOn.kind === 'job') return { kind: handOn.kind, id: handOn.of };
  return { kind: 'handler', id: name };
}

function messageChange(received: Received, rev: number, at: number): Change {
  return {
    table: receivedCollection.name,
    id: received.id,
    expect: { rev },
    next: keptRow(receivedDocument(received), null, Date.parse(received.createdAt), at),
  };
}

/** The store's refusal of a handler's writes, worded as for a client (§7). */
function refusal(commit: Refused): Failure {
  if (commit.outcome === 'superseded') {
    return failure(supersededError, 'other changes overtook the reads of the handler each time that it ran');
  }
  return failure(refusedError, refusalText(commit));
}

function refusalText(commit: Exclude<Refused, { outcome: 'superseded' }>): string {
  switch (commit.outcome) {
    case 'taken':
      return takenText(commit.fields);
    case 'dangling':
      return `${commit.field} names a resource that does not exist`;
    case 'depended-on':
      return `in use by ${commit.count} ${commit.count === 1 ? 'resource' : 'resources'} of ${commit.table}`;
  }
}

/* The log entry of an attempt to hand a message on (work/settlement.ts), the document that the inbox serves. */

const messageCharactersMax = 500;

type AttemptFacts = {
  readonly number: number;
  readonly handedOn: Ended;
  readonly trigger: ReceivedAttempt['trigger'];
  readonly startedAt: number;
  readonly endedAt: number;
};

function attemptOf({ number, handedOn, trigger, startedAt, endedAt }: AttemptFacts): ReceivedAttempt {
  const { outcome, statusCode } = handedOn;
  const failed = outcome === 'failed' ? handedOn : undefined;
  return {
    number,
    outcome,
    error: failed?.error ?? null,
    message: failed?.message == null ? null : fittingText(failed.message, messageCharactersMax),
    statusCode,
    trigger,
    at: new Date(startedAt).toISOString(),
    durationMs: endedAt - startedAt,
  };
}

function attemptChange(messageId: string, facts: AttemptFacts): Change {
  const { number, startedAt, endedAt } = facts;
  const doc = JSON.stringify(attemptOf(facts));
  return attemptRowChange({
    ...{ table: receivedAttemptsTable, workId: messageId, number },
    ...{ doc, owner: null, startedAt, endedAt },
  });
}

/** Returns true if the log entry is of this attempt, including a refused unit of it. */
function isSameAttempt(doc: string, facts: AttemptFacts): boolean {
  const own = attemptOf(facts);
  const { at, durationMs, outcome, error } = JSON.parse(doc) as ReceivedAttempt;
  if (at !== own.at || durationMs !== own.durationMs) return false;
  return (outcome === own.outcome && error === own.error) || refusals.has(error);
}

/** Errors under which a processed run may have been logged because its unit was refused. */
const refusals: ReadonlySet<string | null> = new Set([refusedError, supersededError]);

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

type Conclusion = {
  readonly received: Received;
  /** The outcome for the log, a failure if writes had to be dropped. */
  readonly logged: Ended;
  /** The handler's writes, committed with the message. */
  readonly unit: Unit;
};

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
