/**
 * Writes down what came of an attempt at due work: one unit of its row, by its revision, and of the row of the attempt. What the row becomes is
 * the policy's, a pure function (sending/conclude-delivery.ts, receiving/conclude-received.ts). Nothing here makes an attempt.
 *
 * A unit that comes too late is concluded again from what is in the store then. Where storage failed, the same attempt is settled again: a
 * unit that had been made although its answer was lost is recognised by the row of its attempt, and not made twice.
 */
import {
  type Change,
  type Commit,
  type EventEntry,
  type Store,
  StoreUnavailable,
  type Turn,
} from '../../store/store.ts';
import type { Timers } from './timers.ts';

/** A row of work as it was read. */
export type Standing<Work> = { readonly work: Work; readonly rev: number; readonly owner: string | null };

/** A unit that the store refused, for a reason of its own. */
export type Refused = Exclude<Commit, { readonly outcome: 'committed' }>;

/** What is to be written down: the change of the row of work, that of the attempt's row where it is logged, and what else goes with them. */
export type SettlementUnit = {
  readonly own: readonly Change[];
  readonly others?: readonly Change[];
  readonly events?: readonly EventEntry[];
};

export type Settlement<Work extends object, Conclusion> = {
  readonly table: string;
  readonly id: string;
  /** What the attempt makes of the row as it was read. */
  conclude(work: Work): Conclusion;
  /** Undefined where nothing is to be written. */
  unitOf(conclusion: Conclusion, standing: Standing<Work>): SettlementUnit | undefined;
  /** The same as if one more attempt had been counted. */
  withNextNumber(work: Work): Work;
  /** Whether the log already holds this very attempt: its unit was made, and the answer of the store was lost. */
  isLogged(work: Work, conclusion: Conclusion): Promise<boolean>;
  /** One of the other changes was refused. @returns whether to conclude again; otherwise nothing is written */
  refused?(refused: Refused): boolean;
};

export type Settled<Work, Conclusion> =
  | { readonly kind: 'written'; readonly conclusion: Conclusion }
  /** An earlier unit of the same attempt had been written after all; `work` is the row as it is. */
  | { readonly kind: 'logged'; readonly conclusion: Conclusion; readonly work: Work }
  /** The row was removed meanwhile. */
  | { readonly kind: 'removed'; readonly conclusion: Conclusion }
  /** One of the other changes was refused: nothing was written. */
  | { readonly kind: 'refused' };

/** @param begun the row as the attempt began with it @throws StoreUnavailable */
export async function settleByRevision<Work extends object, Conclusion>(
  store: Pick<Store, 'commit' | 'lines'>,
  settlement: Settlement<Work, Conclusion>,
  begun: Standing<Work>,
): Promise<Settled<Work, Conclusion>> {
  const turn = store.lines.turn();
  try {
    return await settleInTurn(store, settlement, begun, turn);
  } finally {
    turn.release();
  }
}

/** @param turn what is waited for once another writer was faster */
async function settleInTurn<Work extends object, Conclusion>(
  store: Pick<Store, 'commit'>,
  settlement: Settlement<Work, Conclusion>,
  begun: Standing<Work>,
  turn: Turn,
): Promise<Settled<Work, Conclusion>> {
  const { table, id } = settlement;
  let standing = begun;
  for (;;) {
    const conclusion = settlement.conclude(standing.work);
    const unit = settlement.unitOf(conclusion, standing);
    if (unit === undefined) return { kind: 'written', conclusion };
    const { own, others = [], events = [] } = unit;
    const commit = await store.commit({ changes: [...own, ...others], events });
    if (commit.outcome === 'committed') return { kind: 'written', conclusion };
    if (commit.change >= own.length) {
      if (settlement.refused?.(commit) === true) continue;
      return { kind: 'refused' };
    }
    if (commit.outcome !== 'superseded') throw new Error(`a settlement ended as ${commit.outcome}`);
    await turn.take({ table, id });
    if (commit.change > 0) {
      // The log holds an attempt of this number that the row does not count, as only a repaired store could: take the next.
      standing = { ...standing, work: settlement.withNextNumber(standing.work) };
      continue;
    }
    const row = commit.current;
    if (row === undefined || row.deletedAt !== null) return { kind: 'removed', conclusion };
    standing = { work: JSON.parse(row.doc) as Work, rev: row.rev, owner: row.owner };
    if (await settlement.isLogged(standing.work, conclusion)) {
      return { kind: 'logged', conclusion, work: standing.work };
    }
  }
}

const firstWaitMs = 100;
const waitMsMax = 5000;

export type SettleSurelyOptions = {
  readonly timers: Timers;
  /** Aborted when nothing waits any longer. */
  readonly signal: AbortSignal;
  /** Receives the first failure. */
  readonly onFailed: (error: unknown) => void;
};

/**
 * Settles however long the store is away: an answer was given, or a message handed on, and to do so again because it could not be written would
 * be a duplicate of our own making. How many wait so at once is bounded by what may be under way.
 *
 * @returns undefined where it could not be written: the program stops, or the outcome cannot be understood
 */
export async function settleSurely<S>(
  settle: () => Promise<S>,
  { timers, signal, onFailed }: SettleSurelyOptions,
): Promise<S | undefined> {
  for (let waitMs = firstWaitMs; ; waitMs = Math.min(2 * waitMs, waitMsMax)) {
    try {
      return await settle();
    } catch (error) {
      if (waitMs === firstWaitMs) onFailed(error);
      if (!(error instanceof StoreUnavailable) || signal.aborted) return undefined;
    }
    await pause(waitMs, timers, signal);
    if (signal.aborted) return undefined;
  }
}

/** Ends early when the signal says so. */
function pause(ms: number, timers: Timers, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const cancel = timers.after(ms, end);
    signal.addEventListener('abort', end, { once: true });
    function end(): void {
      cancel();
      signal.removeEventListener('abort', end);
      resolve();
    }
  });
}
