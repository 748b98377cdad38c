/**
 * The log of attempts at due work: one row for each attempt, never changed, with the id `{id of the work}/{number from
 * 1, six digits}`, so that the attempts of one row of work are adjacent by id. The policy defines the document of an
 * attempt (sending/delivery-attempt-log.ts, receiving/settle-received.ts).
 */
import { idField } from '../model/field.ts';
import { byId, type Filter } from '../model/filter.ts';
import { type Change, keptRow, type MaybePromise, type Store, whenKnown } from '../store/store.ts';

const numberDigits = 6;
/** Numbers that `isAttemptLogged` checks at most: only as many attempts may be settled concurrently with one. */
const numbersMax = 64;

/** @param number from 1; the order of ids is that of numbers up to 999,999 */
export function attemptId(workId: string, number: number): string {
  return `${workId}/${String(number).padStart(numberDigits, '0')}`;
}

export type LoggedAttempt = {
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

export type AttemptRange = {
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

export type AttemptsPage = {
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
