/**
 * The log as followers read it (§6): events that pass a filter, and the position up to which all of them were read. A filter may pass few
 * of the events, so a read looks at a bounded stretch of the log, and its reader goes on from the end of it: no read takes longer because
 * more was written, and a reader never comes back to events that it may not see.
 */

import { always, type Filter } from '../model/filter.ts';
import { compareText } from '../model/matches.ts';
import { isTailFull } from './page-of-rows.ts';
import {
  type LogPosition,
  type MaybePromise,
  type Store,
  StoreUnavailable,
  type TailEntry,
  whenKnown,
} from './store.ts';

/** The log, as followers use it. */
export type FollowedLog = Pick<Store, 'tail' | 'stretch' | 'logPosition'>;

export type LogQuery = {
  readonly filter: Filter;
  readonly limit: number;
  /** Octets of documents after which the read ends. */
  readonly bytesMax: number;
  readonly party?: string | undefined;
};

export type LogRead = {
  readonly entries: readonly TailEntry[];
  /** Every event after the position, up to this one, that passes the filter is an entry. */
  readonly to: LogPosition;
  /** More events are known to follow, which may pass the filter. */
  readonly isFull: boolean;
};

/** The unit of a position was lost after its follower had found the position: the follower asks again, and learns of the loss then. */
export class PositionLost extends StoreUnavailable {
  constructor() {
    super('the events that the reader had last were lost with their server');
  }
}

/** Events of the log that one read looks at, of which each may be as long as a document. */
export const stretchEventsMax = 500;
/** Revisions from the newest known one within which a read needs no bound. */
const nearRevisionsMax = 256;

/** @throws StoreUnavailable, PositionLost if the unit of `after` is lost */
export function readLog(store: FollowedLog, after: LogPosition, query: LogQuery): MaybePromise<LogRead> {
  const { filter, limit, bytesMax, party } = query;
  // Known before the read begins, so that the read sees every event up to it.
  const known = store.logPosition();
  const read = (until: LogPosition | undefined): MaybePromise<LogRead> =>
    whenKnown(store.tail(after, filter, limit, { bytesMax, party, until, refusesLost: true }), (entries) => {
      const isFull = isTailFull(entries, limit, bytesMax);
      const last = entries.at(-1);
      const read = last === undefined ? after : { rev: last.rev, id: last.id };
      if (isFull) return { entries, to: read, isFull };
      const to = laterOf(read, until ?? known);
      return { entries, to, isFull: isAfter(known, to) };
    });
  if (filter.op === 'always' || known.rev - after.rev <= nearRevisionsMax) return read(undefined);
  return whenKnown(store.stretch(after, stretchEventsMax), (end) =>
    // The table's revision also rises without an event, as by a purge.
    end === after ? { entries: [], to: laterOf(after, known), isFull: false } : read(end),
  );
}

/** Negative, 0 or positive. Ids compare as in stores: by code point. */
function comparePositions(one: LogPosition, other: LogPosition): number {
  return one.rev === other.rev ? compareText(one.id, other.id) : one.rev - other.rev;
}

export function isAfter(one: LogPosition, other: LogPosition): boolean {
  return comparePositions(one, other) > 0;
}

export function laterOf(one: LogPosition, other: LogPosition): LogPosition {
  return isAfter(one, other) ? one : other;
}

/*
 * Finds a time in the event log. The log is ordered by revision, and only the events contain times; these grow with the
 * revision except for differing clocks and units that wait for their commit, and so within the slack. The binary search
 * reads one event for each bit of the revision.
 */

/** The greatest disorder of times in the log. */
export const slackMs = 5 * 60_000;

/**
 * @param since milliseconds since the epoch
 * @returns a place before every event of that time or later, within the slack
 */
export async function findPlace(store: Pick<Store, 'tail' | 'head'>, since: number): Promise<LogPosition> {
  const threshold = since - slackMs;
  let low = 0;
  let high = (await store.head()).rev + 1;
  // Every event before `low` is too old; none from `high` on is.
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    const [event] = await store.tail({ rev: middle, id: '' }, always, 1);
    if (event === undefined || createdOf(event.doc) >= threshold) high = middle;
    else low = event.rev + 1;
  }
  return { rev: low, id: '' };
}

const createdMember = '"created":';

/**
 * Returns the creation time of an event in milliseconds since the epoch, to the second (§6.2). No text before the
 * member can contain its name, because quotation marks in a text are escaped.
 */
export function createdOf(doc: string): number {
  const start = doc.indexOf(createdMember) + createdMember.length;
  return Number.parseInt(doc.slice(start, start + 16), 10) * 1000;
}
