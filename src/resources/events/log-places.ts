/**
 * Places in the event log that clients keep (§6.15): the cursors of the feed, `Comity-Position` of lists, and ids of events. A place is a
 * position in the order of commits, whatever was asked there, so one that a list gave serves the feed, the stream and WebSockets.
 *
 * A place is expired if events after it were purged or its revision was lost, and unknown if it is none that the program gave. Of both the answer is a reset: the
 * client reads its lists again, because nothing can tell it what it missed.
 */
import { problems } from '../../http/problem-registry.ts';
import {
  endOfRevision,
  eventsTable,
  type LogPosition,
  type MaybePromise,
  type Store,
  whenKnown,
} from '../../store/store.ts';
import { openCursor, sealCursor } from '../query/cursor.ts';

export type LogPlaces = {
  /** The text of a position, opaque to clients. */
  textOf(position: LogPosition): string;
  /** The text of a position that no list read from now on is behind. */
  now(): string;
  /** @param text a place, or the id of an event @returns undefined if it is unknown or expired @throws StoreUnavailable */
  find(text: string): MaybePromise<LogPosition | undefined>;
};

/** The query that a place belongs to, in the part of a cursor that names one. */
const shape = 'event log';

export function createLogPlaces(
  store: Pick<Store, 'read' | 'purgedTo' | 'isLost' | 'logPosition'>,
  mac: (text: string) => string,
): LogPlaces {
  const textOf = ({ rev, id }: LogPosition): string =>
    sealCursor(mac, { shape, key: [rev, id], direction: 'after' });
  let latest = { rev: -1, text: '' };
  const placeIn = (text: string): MaybePromise<LogPosition | undefined> => {
    const [rev, id] = openCursor(mac, shape, text)?.key ?? [];
    if (typeof rev === 'number' && typeof id === 'string') return { rev, id };
    return whenKnown(store.read(eventsTable, text), (row) => {
      if (row !== undefined) return { rev: row.rev, id: row.id };
      // The event may be lost, and the client reads its lists next: their position must not be a lost one.
      return whenKnown(store.isLost(store.logPosition().rev), () => undefined);
    });
  };
  return {
    textOf,
    now() {
      const { rev } = store.logPosition();
      // Every list carries it, and few commits come between two lists.
      if (rev !== latest.rev) latest = { rev, text: textOf(endOfRevision(rev)) };
      return latest.text;
    },
    find: (text) =>
      whenKnown(placeIn(text), (place) =>
        place === undefined
          ? undefined
          : whenKnown(isExpired(store, place.rev), (isGone) => (isGone ? undefined : place)),
      ),
  };
}

/** True if events after the revision were purged, or the revision itself was lost (a restore, a failover). */
function isExpired(store: Pick<Store, 'isLost' | 'purgedTo'>, rev: number): MaybePromise<boolean> {
  return whenKnown(store.purgedTo(), (purged) => rev < purged || store.isLost(rev));
}

/** The message that takes the place of missed events: `place` is where its reader goes on. */
export function resetText(place: string): string {
  const { message } = problems[expired];
  return JSON.stringify({ reset: { code: expired, message, position: place } });
}

export const expired = 'position_expired';
