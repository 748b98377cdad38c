/**
 * Events that are being sent, by id, in memory. One event often goes to many endpoints at the same moment and is read
 * once for all of them. Copies are short-lived, so that no process sends an expunged event from memory for long.
 */
import { memoryBounds } from '../../memory/bounds.ts';
import type { MemoryLease } from '../../memory/budget.ts';
import { OctetCache, octetsOfText } from '../../memory/octet-cache.ts';
import { traceparentOf, withoutCause } from '../../model/actor.ts';
import type { Services } from '../../store/capabilities.ts';
import { eventsTable, type MaybePromise, type Row, whenKnown } from '../../store/store.ts';
import { standardPrefix } from '../signature/schemes.ts';
import type { ShapedEvent } from './body-template.ts';
import type { WebhookKeys } from './webhook-keys.ts';

export type SentEvent = {
  /** As it is sent: without its cause, which only the log and streams show (§2.9). */
  readonly doc: string;
  /** The span in which it was caused, if it was traced. */
  readonly traceparent?: string | undefined;
  /** Owner of the resource. */
  readonly owner: string | null;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
};

export type EventSource = {
  /** Undefined: the log no longer has it. @throws StoreUnavailable */
  read(id: string): MaybePromise<SentEvent | undefined>;
  /** Keeps an event that this process has just committed. @param at before the commit, in milliseconds since the epoch */
  keep(id: string, event: SentEvent, at: number): void;
  /** Drops the copy of an event that this process expunged. */
  forget(id: string): void;
};

export type EventSourceBounds = {
  /** Memory for events. An event larger than an eighth of it is not kept. */
  readonly octetsMax?: number;
  /** Greatest age of a copy. Default 2000. */
  readonly ageMsMax?: number;
};

/** A row without its document. */
const rowOctets = 512;

type Kept = { readonly event: SentEvent; readonly readAt: number };

export function createEventSource(
  { store, clock }: Services,
  { octetsMax = memoryBounds.sentEvents.octets, ageMsMax = 2000 }: EventSourceBounds = {},
): EventSource {
  const kept = new OctetCache<Kept>({
    octetsMax,
    octetsOf: ({ event: { doc } }) => rowOctets + octetsOfText(doc),
  });
  const reading = new Map<string, Promise<SentEvent | undefined>>();

  function forget(id: string): void {
    reading.delete(id);
    kept.delete(id);
  }

  function readNow(id: string): MaybePromise<SentEvent | undefined> {
    const readAt = clock();
    const row = store.read(eventsTable, id);
    if (!(row instanceof Promise)) {
      const event = sentOf(row);
      if (event !== undefined) kept.set(id, { event, readAt });
      return event;
    }
    const read: Promise<SentEvent | undefined> = row
      .then((foundRow) => {
        const found = sentOf(foundRow);
        // Do not keep an event that was forgotten during the read.
        if (found !== undefined && reading.get(id) === read) kept.set(id, { event: found, readAt });
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
    keep(id, event, readAt) {
      kept.set(id, { event: sentFrom(event), readAt });
    },
    read(id) {
      const entry = kept.get(id);
      if (entry !== undefined && Math.abs(clock() - entry.readAt) < ageMsMax) return entry.event;
      return reading.get(id) ?? readNow(id);
    },
  };
}

function sentOf(row: Row | undefined): SentEvent | undefined {
  return row === undefined ? undefined : sentFrom(row);
}

function sentFrom({ doc, owner, createdAt }: SentEvent): SentEvent {
  const event = { doc: withoutCause(doc), owner, createdAt };
  const traceparent = traceparentOf(doc);
  return traceparent === undefined ? event : { ...event, traceparent };
}

/** The text, with one or two octets per character, and the body. */
const octetsPerCharacter = 3;

/** `bodyBytesMax`: of a body that has another form than the event. */
type Wanted = { readonly eventId: string; readonly bodyBytesMax: number; readonly signal: AbortSignal };

/**
 * Returns the event after the lease has room for it. While it waits, no memory is held, and the event is read again
 * afterwards; a drain ends the wait. The wait is behind attempts of the same party only.
 *
 * @throws StoreUnavailable
 */
export function readWithin(
  lease: MemoryLease,
  events: Pick<EventSource, 'read'>,
  { eventId, bodyBytesMax, signal }: Wanted,
): MaybePromise<SentEvent | undefined> {
  return whenKnown(events.read(eventId), (event) => {
    if (event === undefined) return undefined;
    const octets = octetsPerCharacter * event.doc.length + bodyBytesMax;
    if (lease.grow(octets)) return event;
    return lease.untilRoom(octets, signal).then(() => events.read(eventId));
  });
}

/*
 * Reads parts of an event's document without parsing it: deliveries of `standard` endpoints carry the resource alone
 * (§2.7), which is cut out of the stored text. It requires the member order of model/event.ts, with or without a
 * `tenant` before `data`.
 */

const before = ',"data":{"object":';
const after = '}}';

/**
 * Returns the event's resource as JSON text; undefined if the document holds none. Before `data` there are only texts
 * and a number. A quotation mark inside a JSON text is escaped, so this sequence cannot occur inside a text: the first
 * occurrence is the right one.
 */
export function objectOf(doc: string): string | undefined {
  const at = doc.indexOf(before);
  return at < 0 || !doc.endsWith(after) ? undefined : doc.slice(at + before.length, -after.length);
}

/** Returns true if the payload was removed on request and only the envelope is left. */
export function isExpunged(doc: string): boolean {
  // The resource may have such a member too, so the document must be parsed to decide.
  if (!doc.includes('"expunged":true')) return false;
  return (JSON.parse(doc) as { readonly expunged?: unknown }).expunged === true;
}

/*
 * The Standard Webhooks message (§2.7) of an event, with its `v1a` signatures. One event often goes to many endpoints
 * in the same second: they share body, id and time, and also the signatures of the instance's keys, which cost twenty
 * times those of a secret.
 */

export type StandardMessage = {
  readonly body: Buffer;
  /** In base64, one for each key. @param timestamp Unix seconds */
  signatures(id: string, timestamp: number): Promise<readonly string[]>;
};

/**
 * @param shaped the event as the endpoint's owner may see it; messages of whole events are shared
 * @returns undefined if the event has no resource
 */
export type StandardMessages = (
  event: SentEvent,
  type: string,
  shaped: ShapedEvent,
) => StandardMessage | undefined;

export function createStandardMessages(keys: Pick<WebhookKeys, 'sign'>): StandardMessages {
  // For as long as the event is in memory.
  const shared = new WeakMap<SentEvent, StandardMessage>();
  return (event, type, { doc, text }) => {
    if (text !== undefined) return new Message(text, keys);
    const isWhole = doc === event.doc;
    const found = isWhole ? shared.get(event) : undefined;
    if (found !== undefined) return found;
    const object = objectOf(doc);
    if (object === undefined) return undefined;
    // The time of the event, the same for each attempt; `webhook-timestamp` has that of the attempt.
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
