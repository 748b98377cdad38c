/**
 * Events that are being sent, by id. One event often goes to many endpoints in the same moment, and is read once for all of them. What was
 * read is forgotten soon, so that an event that is expunged meanwhile is not sent from memory by this process or another for long.
 */
import { memoryBounds } from '../../memory/bounds.ts';
import type { MemoryLease } from '../../memory/budget.ts';
import { OctetCache, octetsOfValue } from '../../memory/octet-cache.ts';
import { eventsTable, type MaybePromise, type Store } from '../../store/store.ts';
import { standardPrefix } from '../signature/standard.ts';
import type { WebhookKeys } from './webhook-keys.ts';

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

/*
 * Parts of an event's document without parsing it: deliveries of `standard` endpoints carry the resource alone (§2.7), and that is cut
 * out of what is stored. Made for the documents of model/event.ts and for those with a member `tenant` before `data`; another order of the
 * members is not understood.
 */

const before = ',"data":{"object":';
const after = '}}';

/**
 * The resource that the event tells of, as JSON text; undefined where the document holds none.
 *
 * What stands before `data` are texts and a number. A quotation mark inside a JSON text has a backslash before it, so this sequence can
 * neither stand in one nor begin at the end of one: the first is the right one, whatever the resource holds.
 */
export function objectOf(doc: string): string | undefined {
  const at = doc.indexOf(before);
  return at < 0 || !doc.endsWith(after) ? undefined : doc.slice(at + before.length, -after.length);
}

/** Whether nothing but the envelope is left, because the payload was removed on request. */
export function isExpunged(doc: string): boolean {
  // The resource may have such a member as well: only then is it worth parsing.
  if (!doc.includes('"expunged":true')) return false;
  return (JSON.parse(doc) as { readonly expunged?: unknown }).expunged === true;
}

/*
 * The message of Standard Webhooks (§2.7) that an event becomes, and its signatures `v1a`. One event often goes to many endpoints in the
 * same second: body, id and time are then the same octets for all of them, and so are the signatures of the instance's keys, which cost
 * twenty times what those of a secret do.
 */

export type StandardMessage = {
  readonly body: Buffer;
  /** In base64, one of each key. @param timestamp Unix seconds */
  signatures(id: string, timestamp: number): Promise<readonly string[]>;
};

/**
 * @param doc the event as the owner of the endpoint may see it; messages are shared where that is all of it
 * @returns undefined where there is no resource in it
 */
export type StandardMessages = (event: SentEvent, type: string, doc: string) => StandardMessage | undefined;

export function createStandardMessages(keys: Pick<WebhookKeys, 'sign'>): StandardMessages {
  // As long as the event is in memory.
  const shared = new WeakMap<SentEvent, StandardMessage>();
  return (event, type, doc) => {
    const isWhole = doc === event.doc;
    const found = isWhole ? shared.get(event) : undefined;
    if (found !== undefined) return found;
    const object = objectOf(doc);
    if (object === undefined) return undefined;
    // The time is the event's, the same at each attempt; that of the attempt stands in `webhook-timestamp`.
    const at = new Date(event.createdAt).toISOString();
    const made = new Message(`{"type":${JSON.stringify(type)},"timestamp":"${at}","data":${object}}`, keys);
    if (isWhole) shared.set(event, made);
    return made;
  };
}

class Message implements StandardMessage {
  readonly body: Buffer;
  readonly #keys: Pick<WebhookKeys, 'sign'>;
  #prefix = '';
  #signatures: Promise<readonly string[]> = Promise.resolve([]);

  constructor(content: string, keys: Pick<WebhookKeys, 'sign'>) {
    this.body = Buffer.from(content);
    this.#keys = keys;
  }

  signatures(id: string, timestamp: number): Promise<readonly string[]> {
    const prefix = standardPrefix(id, timestamp);
    if (prefix !== this.#prefix) {
      this.#prefix = prefix;
      this.#signatures = this.#keys.sign(Buffer.concat([Buffer.from(prefix), this.body]));
    }
    return this.#signatures;
  }
}
