/**
 * Events that are being sent, by id. One event often goes to many endpoints in the same moment, and is read once for all of them. What was
 * read is forgotten soon, so that an event that is expunged meanwhile is not sent from memory by this process or another for long.
 */

import { memoryBounds } from '../../../memory/bounds.ts';
import type { MemoryLease } from '../../../memory/budget.ts';
import { OctetCache, octetsOfValue } from '../../../memory/octet-cache.ts';
import { eventsTable, type MaybePromise, type Store } from '../../../store/store.ts';

export type SentEvent = {
  readonly doc: string;
  /** Of the resource that it tells of. */
  readonly owner: string | null;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
};

export type EventSource = {
  /** Undefined: it is not in the log any more. @throws StoreUnavailable */
  read(id: string): MaybePromise<SentEvent | undefined>;
  /** Takes it out of memory, after it was expunged by this process. */
  forget(id: string): void;
};

export type EventSourceOptions = {
  readonly store: Pick<Store, 'read'>;
  /** Milliseconds since the epoch. */
  readonly clock: () => number;
  /** Memory for events. One of more than an eighth of it is read each time. */
  readonly octetsMax?: number;
  /** How old a copy in memory may be. 2000 if not said. */
  readonly ageMsMax?: number;
};

type Kept = { readonly event: SentEvent; readonly readAt: number };

export function createEventSource(options: EventSourceOptions): EventSource {
  const { store, clock, octetsMax = memoryBounds.sentEvents.octets, ageMsMax = 2000 } = options;
  const kept = new OctetCache<Kept>({ octetsMax, octetsOf: ({ event }) => octetsOfValue(event) });
  const reading = new Map<string, Promise<SentEvent | undefined>>();

  function forget(id: string): void {
    reading.delete(id);
    kept.delete(id);
  }

  function keep(id: string, event: SentEvent, readAt: number): void {
    forget(id);
    kept.set(id, { event, readAt });
  }

  function readNow(id: string): MaybePromise<SentEvent | undefined> {
    const readAt = clock();
    const row = store.read(eventsTable, id);
    if (!(row instanceof Promise)) {
      if (row !== undefined) keep(id, row, readAt);
      return row;
    }
    const read: Promise<SentEvent | undefined> = row
      .then((found) => {
        // Not what was forgotten while it was being read.
        if (found !== undefined && reading.get(id) === read) keep(id, found, readAt);
        return found;
      })
      .finally(() => {
        if (reading.get(id) === read) reading.delete(id);
      });
    reading.set(id, read);
    return read;
  }

  return {
    forget,
    read(id) {
      const entry = kept.get(id);
      if (entry !== undefined && Math.abs(clock() - entry.readAt) < ageMsMax) return entry.event;
      return reading.get(id) ?? readNow(id);
    },
  };
}

/** The text itself, one octet a character or two, and the body. */
const octetsPerCharacter = 3;

/**
 * The event, once the lease has room for it. While it waits for room nothing is held, and the event is read again; a drain ends the wait. The wait is
 * behind attempts of the same party: of another it takes nothing.
 * @throws StoreUnavailable
 */
export async function readWithin(
  lease: MemoryLease,
  events: Pick<EventSource, 'read'>,
  eventId: string,
  signal: AbortSignal,
): Promise<SentEvent | undefined> {
  const read = events.read(eventId);
  const event = read instanceof Promise ? await read : read;
  if (event === undefined) return undefined;
  const octets = octetsPerCharacter * event.doc.length;
  if (lease.grow(octets)) return event;
  await room(lease, octets, signal);
  return await events.read(eventId);
}

function room(lease: MemoryLease, octets: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const go = (): void => {
      signal.removeEventListener('abort', go);
      resolve();
    };
    if (signal.aborted) return resolve();
    signal.addEventListener('abort', go);
    lease.whenRoom(octets, go);
  });
}
