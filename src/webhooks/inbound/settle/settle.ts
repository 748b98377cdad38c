/**
 * Writes down what came of an attempt to hand a message on: one unit of the message, by its revision, the row of the attempt, and what the
 * handler wrote with its events. The state machine is in conclude.ts. The store is the one that adds deliveries to events.
 *
 * A unit that comes too late is concluded again from what stands. Where storage failed, whoever called settles again with the same run: a
 * unit that had been made although its answer was lost is recognised by the row of its attempt, and not made twice. Nothing here runs a
 * handler: where what it read was changed by others, the caller is told to run it again.
 */
import { type Received, receivedDocument } from '../../../model/received.ts';
import { keptRow } from '../../../store/kept-row.ts';
import type { Change, Commit, Store, Turn, Unit } from '../../../store/store.ts';
import { receivedCollection } from '../collections.ts';
import type { Claimed } from '../hand-on.ts';
import { attemptChange } from './attempt-row.ts';
import {
  conclude,
  type Ended,
  type Failure,
  type Run,
  refusedError,
  superseded,
  triggerOf,
} from './conclude.ts';
import { findOwnAttempt } from './own-attempt.ts';

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

  async function commit(unit: Unit, run: Run): Promise<Commit> {
    try {
      return await store.commit(unit);
    } catch (error) {
      doubtful.add(run);
      throw error;
    }
  }

  return async (claimed, run, mayRerun) => {
    const turn = store.lines.turn();
    try {
      return await settleInTurn(claimed, run, mayRerun, turn);
    } finally {
      turn.release();
    }
  };

  async function settleInTurn(claimed: Claimed, run: Run, mayRerun: boolean, turn: Turn): Promise<Settled> {
    const begun = claimed.received;
    const trigger = triggerOf(begun);
    const policy = { schedule: claimed.sender.schedule, random };
    let { handedOn } = run;
    let standing = begun;
    let { rev } = claimed;
    for (;;) {
      const { received, logged, unit } = conclude(standing, begun, { ...run, handedOn }, policy);
      const facts = { ...run, number: received.attempts, handedOn: logged, trigger };
      const own = [messageChange(received, rev, run.endedAt), attemptChange(begun.id, facts)];
      const made = await commit({ changes: [...own, ...unit.changes], events: unit.events }, run);
      if (made.outcome === 'committed') return { kind: 'settled', handedOn: logged, received };
      if (made.change >= own.length) {
        if (made.outcome === 'superseded' && mayRerun) return { kind: 'rerun' };
        handedOn = refusal(made);
        continue;
      }
      if (made.outcome !== 'superseded') throw new Error(`a settlement ended as ${made.outcome}`);
      await turn.take({ table: receivedCollection.name, id: begun.id });
      if (made.change > 0) {
        // The log holds an attempt of this number that the message does not count, as only a mended store could: take the next.
        standing = { ...standing, attempts: standing.attempts + 1 };
        continue;
      }
      const row = made.current;
      if (row === undefined || row.deletedAt !== null) {
        return { kind: 'settled', handedOn: logged, received: undefined };
      }
      rev = row.rev;
      standing = JSON.parse(row.doc) as Received;
      if (doubtful.has(run) && (await findOwnAttempt(store, begun, standing, facts))) {
        return { kind: 'settled', handedOn: logged, received: standing };
      }
    }
  }
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
function refusal(commit: Exclude<Commit, { outcome: 'committed' }>): Failure {
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

function refusalText(commit: Extract<Commit, { outcome: 'taken' | 'dangling' | 'depended-on' }>): string {
  switch (commit.outcome) {
    case 'taken':
      return `${commit.field} is already in use`;
    case 'dangling':
      return `${commit.field} names no resource that is there`;
    case 'depended-on':
      return `in use by ${commit.count} ${commit.count === 1 ? 'resource' : 'resources'} of ${commit.table}`;
  }
}
