/**
 * The log of attempts at due work: one row for each, never changed, under `{id of the work}/{number from 1, six digits}`, so that the
 * attempts of one row of work are neighbours by id. What a document says of an attempt is the policy's (sending/delivery-attempt-log.ts,
 * receiving/settle-received.ts).
 */
import { idField } from '../../model/field.ts';
import { byId, type Filter } from '../../model/filter.ts';
import { keptRow } from '../../store/kept-row.ts';
import type { Change, MaybePromise, Store } from '../../store/store.ts';
import { whenKnown } from '../../store/when-known.ts';

const numberDigits = 6;
/** Attempts that may have been concluded beside one; older numbers are not looked at. */
const numbersMax = 64;

/** @param number from 1; ids are in the order of the numbers up to 999,999 */
export function attemptId(workId: string, number: number): string {
  return `${workId}/${String(number).padStart(numberDigits, '0')}`;
}

/** The row of an attempt that is logged for the first time. */
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
  /** Attempts that were counted when the attempt began, and that are counted now. */
  readonly countedBefore: number;
  readonly counted: number;
};

/**
 * Whether a settlement that comes too late was overtaken by itself: its unit had been made, and only the answer of the store was lost. Then
 * the log holds the very attempt, under a number that was free when it was written.
 * @param isOwn whether the document of that number is the attempt's
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

export type AttemptsPage = {
  /** Documents, oldest first. */
  readonly docs: readonly string[];
  readonly more: boolean;
};

export type AttemptsAsked = {
  /** The page begins with the attempt after this one; 0: with the first. */
  readonly afterNumber: number;
  readonly limit: number;
  /** Octets of documents on the page; undefined: all up to `limit`. */
  readonly bytesMax?: number;
};

export function attemptsPage(
  store: Pick<Store, 'plan'>,
  table: string,
  workId: string,
  { afterNumber, limit, bytesMax }: AttemptsAsked,
): MaybePromise<AttemptsPage> {
  const filters: readonly Filter[] = [
    { op: 'gt', field: idField, value: attemptId(workId, afterNumber) },
    // The digit after the slash in order of code points is 0, so this ends what begins with the id and a slash.
    { op: 'lt', field: idField, value: `${workId}0` },
  ];
  const bound = bytesMax === undefined ? {} : { bytesMax };
  const plan = store.plan({ table, filter: { op: 'and', filters }, sort: byId, limit, ...bound });
  return whenKnown(plan.page({ from: 'start' }), ({ docs, more }) => ({ docs, more }));
}

/**
 * The beginning of a text, without half of a surrogate pair at its end or anywhere, and without U+0000: PostgreSQL's JSON holds neither.
 */
export function fittingText(text: string, charactersMax: number): string {
  const cut = text.length <= charactersMax ? text : text.slice(0, withoutHalf(text, charactersMax));
  const fitting = cut.isWellFormed() ? cut : cut.toWellFormed();
  return fitting.includes('\0') ? fitting.replaceAll('\0', '') : fitting;
}

/** Where to cut, so that a pair is kept whole or not at all. */
function withoutHalf(text: string, length: number): number {
  const last = text.charCodeAt(length - 1);
  return last >= 0xd800 && last <= 0xdbff ? length - 1 : length;
}
