/**
 * Writes down what came of an attempt to hand a message on (work/settlement.ts): the message, by its revision, the row of the attempt, and what
 * the handler wrote with its events. The state machine is in conclude-received.ts. The store is the one that adds deliveries to events.
 *
 * Nothing here runs a handler: where what it read was changed by others, the caller is told to run it again.
 */
import { type Received, receivedDocument } from '../../model/received.ts';
import { keptRow } from '../../store/kept-row.ts';
import type { Change, Commit, Store, Unit } from '../../store/store.ts';
import { attemptRowChange, fittingText, isAttemptLogged } from '../work/attempt-log.ts';
import { type Refused, type Settlement, settleByRevision } from '../work/settlement.ts';
import {
  type Conclusion,
  conclude,
  type Ended,
  type Failure,
  type Run,
  refusedError,
  superseded,
  supersededError,
  triggerOf,
} from './conclude-received.ts';
import type { Claimed } from './hand-on.ts';
import { type ReceivedAttempt, receivedAttemptsTable, receivedCollection } from './received-tables.ts';

export type Settled =
  /** What the handler had read was changed meanwhile: nothing was written or counted. */
  | { readonly kind: 'rerun' }
  | {
      readonly kind: 'settled';
      /** What came of it after all: a handler's writes may have been refused. */
      readonly handedOn: Ended;
      /** What the message became; undefined: it was removed meanwhile. */
      readonly received: Received | undefined;
    };

/**
 * @param mayRerun whether the caller would run the handler again; otherwise the attempt has failed by `superseded`
 * @throws StoreUnavailable
 */
export type SettleHandedOn = (claimed: Claimed, run: Run, mayRerun: boolean) => Promise<Settled>;

export type SettleOptions = {
  readonly store: Pick<Store, 'commit' | 'read' | 'lines'>;
  /** From 0 up to, not including, 1. */
  readonly random: () => number;
};

export function createSettle({ store, random }: SettleOptions): SettleHandedOn {
  /** Runs of which a unit may have been made although storage failed. */
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
    const settling = { claimed, run, mayRerun, random, isDoubtful: () => doubtful.has(run) };
    const settled = await settleByRevision({ commit, lines: store.lines }, settlementOf(store, settling), {
      ...{ work: claimed.received, rev: claimed.rev, owner: null },
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
  /** Whether a unit of the run may have been made already. */
  readonly isDoubtful: () => boolean;
};

/** `facts`: what the log says of the attempt. */
type Concluded = Conclusion & { readonly facts: AttemptFacts };

function settlementOf(
  store: Pick<Store, 'read'>,
  { claimed, run, mayRerun, random, isDoubtful }: Settling,
): Settlement<Received, Concluded> {
  const begun = claimed.received;
  const trigger = triggerOf(begun);
  const policy = { schedule: claimed.sender.schedule, random };
  /** What came of the run; another once the store has refused what the handler wrote. */
  let { handedOn } = run;
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
      return { own, others: unit.changes, events: unit.events };
    },
    withNextNumber: (message) => ({ ...message, attempts: message.attempts + 1 }),
    async isLogged(message, { facts }) {
      // Where no answer was lost, an attempt of the very same milliseconds is another process's.
      if (!isDoubtful()) return false;
      const [countedBefore, counted] = [begun.attempts, message.attempts];
      const range = { table: receivedAttemptsTable, workId: begun.id, countedBefore, counted };
      return await isAttemptLogged(store, range, (doc) => isSameAttempt(doc, facts));
    },
    refused(commit) {
      if (commit.outcome === 'superseded' && mayRerun) return false;
      handedOn = refusal(commit);
      return true;
    },
  };
}

function messageChange(received: Received, rev: number, at: number): Change {
  return {
    table: receivedCollection.name,
    id: received.id,
    expect: { rev },
    next: keptRow(receivedDocument(received), null, Date.parse(received.createdAt), at),
  };
}

/** What the store refused of a handler's writes, as it would have been said to a client (§7). */
function refusal(commit: Refused): Failure {
  if (commit.outcome === 'superseded') {
    return superseded('what the handler read was changed by others each time that it ran');
  }
  const message = refusalText(commit);
  return {
    outcome: 'failed',
    error: refusedError,
    message,
    statusCode: null,
    permanent: false,
    notBefore: null,
  };
}

function refusalText(commit: Exclude<Refused, { outcome: 'superseded' }>): string {
  switch (commit.outcome) {
    case 'taken':
      return `${commit.field} is already in use`;
    case 'dangling':
      return `${commit.field} names no resource that is there`;
    case 'depended-on':
      return `in use by ${commit.count} ${commit.count === 1 ? 'resource' : 'resources'} of ${commit.table}`;
  }
}

/* What the log says of an attempt to hand a message on (work/attempt-log.ts). Its document is what the inbox serves. */

const messageCharactersMax = 500;

type AttemptFacts = {
  readonly number: number;
  readonly handedOn: Ended;
  readonly trigger: ReceivedAttempt['trigger'];
  /** Milliseconds since the epoch. */
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

/** The row of an attempt that is logged for the first time. */
function attemptChange(messageId: string, facts: AttemptFacts): Change {
  const { number, startedAt, endedAt } = facts;
  const doc = JSON.stringify(attemptOf(facts));
  return attemptRowChange({
    ...{ table: receivedAttemptsTable, workId: messageId, number },
    ...{ doc, owner: null, startedAt, endedAt },
  });
}

/** Whether the log has this very attempt, or one of the same moment whose unit was refused. */
function isSameAttempt(doc: string, facts: AttemptFacts): boolean {
  const own = attemptOf(facts);
  const { at, durationMs, outcome, error } = JSON.parse(doc) as ReceivedAttempt;
  if (at !== own.at || durationMs !== own.durationMs) return false;
  return (outcome === own.outcome && error === own.error) || refusals.has(error);
}

/** As which a run that was processed may have been written down, because its unit was refused. */
const refusals: ReadonlySet<string | null> = new Set([refusedError, supersededError]);
