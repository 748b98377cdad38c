/**
 * Settles an attempt at due work: one unit with the row of work, by its revision, and the row of the attempt. The
 * policy computes the new state by a pure function (sending/conclude-delivery.ts, receiving/conclude-received.ts).
 * Nothing here makes an attempt.
 *
 * A superseded unit is concluded again from the current row. After a failure of the store the same attempt is settled
 * again: a unit that was committed although its response was lost is recognised by the row of its attempt and not
 * committed twice.
 */
import {
  type Change,
  type Commit,
  type EventEntry,
  type Store,
  StoreUnavailable,
  type Turn,
} from '../store/store.ts';
import type { Timers } from './timers.ts';

/** A row of work as read. */
export type WorkRow<Work> = { readonly work: Work; readonly rev: number; readonly owner: string | null };

/** A unit that the store did not commit. */
export type Refused = Exclude<Commit, { readonly outcome: 'committed' }>;

/** The changes to commit: first the row of work and its logged attempt (`own`), then others. */
export type SettlementUnit = {
  readonly own: readonly Change[];
  readonly others?: readonly Change[];
  readonly events?: readonly EventEntry[];
};

export type Settlement<Work extends object, Conclusion> = {
  readonly table: string;
  readonly id: string;
  /** Computes the conclusion from the row as read. */
  conclude(work: Work): Conclusion;
  /** Undefined: write nothing. */
  unitOf(conclusion: Conclusion, current: WorkRow<Work>): SettlementUnit | undefined;
  /** Returns the work as if one more attempt had been counted. */
  withNextNumber(work: Work): Work;
  /** Returns true if the log already holds this attempt: its unit was committed, but the store's response was lost. */
  isLogged(work: Work, conclusion: Conclusion): Promise<boolean>;
  /** Called when one of the other changes was refused. @returns true to conclude again; otherwise nothing is written */
  refused?(refused: Refused): boolean;
};

export type Settled<Work, Conclusion> =
  | { readonly kind: 'written'; readonly conclusion: Conclusion }
  /** An earlier unit of the same attempt had been committed; `work` is the current row. */
  | { readonly kind: 'logged'; readonly conclusion: Conclusion; readonly work: Work }
  /** The row was removed meanwhile. */
  | { readonly kind: 'removed'; readonly conclusion: Conclusion }
  /** One of the other changes was refused: nothing was written. */
  | { readonly kind: 'refused' };

/** @param begun the row as the attempt read it @throws StoreUnavailable */
export async function settleByRevision<Work extends object, Conclusion>(
  store: Pick<Store, 'commit' | 'lines'>,
  settlement: Settlement<Work, Conclusion>,
  begun: WorkRow<Work>,
): Promise<Settled<Work, Conclusion>> {
  const turn = store.lines.turn();
  try {
    return await settleInTurn(store, settlement, begun, turn);
  } finally {
    turn.release();
  }
}

/** @param turn taken after another writer superseded the unit */
async function settleInTurn<Work extends object, Conclusion>(
  store: Pick<Store, 'commit'>,
  settlement: Settlement<Work, Conclusion>,
  begun: WorkRow<Work>,
  turn: Turn,
): Promise<Settled<Work, Conclusion>> {
  const { table, id } = settlement;
  let current = begun;
  for (;;) {
    const conclusion = settlement.conclude(current.work);
    const unit = settlement.unitOf(conclusion, current);
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
      // The log holds an attempt of this number that the row does not count, possible only in a repaired store: use the
      // next number.
      current = { ...current, work: settlement.withNextNumber(current.work) };
      continue;
    }
    const row = commit.current;
    if (row === undefined || row.deletedAt !== null) return { kind: 'removed', conclusion };
    current = { work: JSON.parse(row.doc) as Work, rev: row.rev, owner: row.owner };
    if (await settlement.isLogged(current.work, conclusion)) {
      return { kind: 'logged', conclusion, work: current.work };
    }
  }
}

/** Attempts in one unit: about 64 KiB of documents, written in a millisecond. */
const togetherMax = 64;

/** Commits the changes of one settlement with those of others. `done(false)`: none of them is known to be committed. */
export type Together = (changes: readonly Change[], done: (isCommitted: boolean) => void) => void;

/**
 * Commits settlements that come in one turn of the event loop as one unit, which costs the process one promise and the
 * store one message. If one of them is superseded or the store fails, nothing is written, and each must be settled by
 * itself.
 */
export function createTogether(store: Pick<Store, 'commit'>): Together {
  let changes: Change[] = [];
  let waiting: ((isCommitted: boolean) => void)[] = [];

  function flush(): void {
    const [unit, all] = [{ changes, events: [] }, waiting];
    changes = [];
    waiting = [];
    if (all.length === 0) return;
    const end = (isCommitted: boolean): void => {
      for (const done of all) done(isCommitted);
    };
    store.commit(unit).then(
      ({ outcome }) => end(outcome === 'committed'),
      () => end(false),
    );
  }

  return (own, done) => {
    for (const change of own) changes.push(change);
    waiting.push(done);
    if (waiting.length === 1) setImmediate(flush);
    if (waiting.length === togetherMax) flush();
  };
}

const firstWaitMs = 100;
const waitMsMax = 5000;

export type SettleSurelyOptions = {
  readonly timers: Timers;
  /** Aborted when waiting must end. */
  readonly signal: AbortSignal;
  /** Receives the first failure. */
  readonly onFailed: (error: unknown) => void;
};

/**
 * Settles an attempt, however long the store is away: repeating the attempt because its outcome was not recorded would
 * be a duplicate that Comity caused. The bound on attempts under way bounds the number of waiting ones.
 *
 * @returns undefined if it could not be written: the program stops, or the failure is not StoreUnavailable
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

/** Waits, but not after the signal aborts. */
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
