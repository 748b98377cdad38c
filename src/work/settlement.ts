/**
 * Settles an attempt at due work: one unit with the row of work, by its revision, and the row of the attempt. The
 * policy computes the new state by a pure function (sending/conclude-delivery.ts, receiving/settle-received.ts).
 * Nothing here makes an attempt.
 *
 * A superseded unit is concluded again from the current row. After a failure of the store the same attempt is settled
 * again: a unit that was committed although its response was lost is recognised by the row of its attempt and not
 * committed twice.
 */
import { idField } from '../model/field.ts';
import { byId, type Filter } from '../model/filter.ts';
import {
  type Change,
  type Commit,
  type EventEntry,
  keptRow,
  type MaybePromise,
  type Store,
  type Turn,
  whenKnown,
} from '../store/store.ts';

/** A row of work as read. */
export type WorkRow<Work> = { readonly work: Work; readonly rev: number; readonly owner: string | null };

/** A unit that the store did not commit. */
export type Refused = Exclude<Commit, { readonly outcome: 'committed' }>;

/** The changes to commit: first the row of work and its logged attempt (`own`), then others. */
type SettlementUnit = {
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
type Together = (changes: readonly Change[], done: (isCommitted: boolean) => void) => void;

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

/*
 * The log of attempts at due work: one row for each attempt, never changed, with the id `{id of the work}/{number from
 * 1, six digits}`, so that the attempts of one row of work are adjacent by id. The policy defines the document of an
 * attempt (sending/settle-delivery.ts, receiving/settle-received.ts).
 */

const numberDigits = 6;
/** Numbers that `isAttemptLogged` checks at most: only as many attempts may be settled concurrently with one. */
const numbersMax = 64;

/** @param number from 1; the order of ids is that of numbers up to 999,999 */
export function attemptId(workId: string, number: number): string {
  return `${workId}/${String(number).padStart(numberDigits, '0')}`;
}

type LoggedAttempt = {
  readonly table: string;
  readonly workId: string;
  readonly number: number;
  readonly doc: string;
  readonly owner: string | null;
  /** Milliseconds since the epoch. */
  readonly startedAt: number;
  readonly endedAt: number;
};

export function attemptRowChange(attempt: LoggedAttempt): Change {
  const { table, workId, number, doc, owner, startedAt, endedAt } = attempt;
  return {
    ...{ table, id: attemptId(workId, number), expect: { absent: true } },
    next: keptRow(doc, owner, startedAt, endedAt),
  };
}

type AttemptRange = {
  readonly table: string;
  readonly workId: string;
  /** Attempts counted when the attempt began, and now. */
  readonly countedBefore: number;
  readonly counted: number;
};

/**
 * Detects a settlement that was superseded by itself: its unit was committed, but the store's response was lost. The
 * log then holds this attempt, under a number that was free when it was written.
 *
 * @param isOwn returns true if the document with this number describes this attempt
 */
export async function isAttemptLogged(
  store: Pick<Store, 'read'>,
  { table, workId, countedBefore, counted }: AttemptRange,
  isOwn: (doc: string, number: number) => boolean,
): Promise<boolean> {
  const from = Math.max(countedBefore + 1, counted + 1 - numbersMax);
  for (let number = from; number <= counted; number += 1) {
    const row = await store.read(table, attemptId(workId, number));
    if (row !== undefined && isOwn(row.doc, number)) return true;
  }
  return false;
}

/** Selects the attempts at one row of work with a number greater than `afterNumber`, from 0. */
export function attemptsAfter(workId: string, afterNumber: number): Filter {
  const filters: readonly Filter[] = [
    { op: 'gt', field: idField, value: attemptId(workId, afterNumber) },
    // `0` follows `/` in code point order, so this ends the range of ids that begin with `{workId}/`.
    { op: 'lt', field: idField, value: `${workId}0` },
  ];
  return { op: 'and', filters };
}

type AttemptsPage = {
  /** Documents, each with its `number`, oldest first. */
  readonly docs: readonly string[];
  readonly more: boolean;
};

export type AttemptsAsked = {
  /** The page begins after this attempt; 0: with the first. */
  readonly afterNumber: number;
  readonly limit: number;
  /** Bound on the octets of documents on the page; undefined: only `limit` applies. */
  readonly bytesMax?: number;
};

export function attemptsPage(
  store: Pick<Store, 'plan'>,
  table: string,
  workId: string,
  { afterNumber, limit, bytesMax }: AttemptsAsked,
): MaybePromise<AttemptsPage> {
  const filter = attemptsAfter(workId, afterNumber);
  const bound = bytesMax === undefined ? {} : { bytesMax };
  const plan = store.plan({ table, filter, sort: byId, limit, ...bound });
  return whenKnown(plan.page({ from: 'start' }), ({ docs, more }) => ({ docs, more }));
}

/** Truncates a text, and removes unpaired surrogates and U+0000, which JSON in PostgreSQL cannot hold. */
export function fittingText(text: string, charactersMax: number): string {
  const cut = text.length <= charactersMax ? text : text.slice(0, withoutHalf(text, charactersMax));
  const fitting = cut.isWellFormed() ? cut : cut.toWellFormed();
  return fitting.includes('\0') ? fitting.replaceAll('\0', '') : fitting;
}

/** The length to cut at without splitting a surrogate pair. */
function withoutHalf(text: string, length: number): number {
  const last = text.charCodeAt(length - 1);
  return last >= 0xd800 && last <= 0xdbff ? length - 1 : length;
}
