/**
 * The one reader of the event log for all WebSockets of the process (§4.13): each event is read once, in log order, and handed to whoever
 * is subscribed to it. It knows no sockets, only what stands for them.
 *
 * It is in one of four modes: `stopped` while there is no socket; `waiting` for the log to grow; `reading` a batch; or `announcing`
 * one, over several turns of the event loop where many are to be told. Its position is that of the last event announced.
 *
 * What was announced last is kept, so that who catches up reads the end of the log from here: without a read of the store, and without a
 * moment between that end and the live events in which something could be missed.
 */

import { patternsOfType } from '../model/event-pattern.ts';
import { always } from '../model/filter.ts';
import { isTailFull } from '../store/page-of-rows.ts';
import type { LogPosition, MaybePromise, Store, TailEntry } from '../store/store.ts';
import { beginning, isAfter, LoggedEvent } from './logged-event.ts';
import type { Readers } from './readers.ts';

/**
 * Who wants events of which types, by pattern and within that by audience: an event costs a look for each segment of its type, one
 * decision for each audience that wants it, and one call for each socket.
 */
class Subscribers<Socket> {
  readonly #byPattern = new Map<string, Map<Readers, Set<Socket>>>();

  add(pattern: string, readers: Readers, socket: Socket): void {
    let byReaders = this.#byPattern.get(pattern);
    if (byReaders === undefined) {
      byReaders = new Map();
      this.#byPattern.set(pattern, byReaders);
    }
    const sockets = byReaders.get(readers);
    if (sockets === undefined) byReaders.set(readers, new Set([socket]));
    else sockets.add(socket);
  }

  delete(pattern: string, readers: Readers, socket: Socket): void {
    const byReaders = this.#byPattern.get(pattern);
    const sockets = byReaders?.get(readers);
    if (byReaders === undefined || sockets === undefined) return;
    sockets.delete(socket);
    if (sockets.size === 0) byReaders.delete(readers);
    if (byReaders.size === 0) this.#byPattern.delete(pattern);
  }

  /** Those who want the type, by pattern: one that is subscribed to several which match comes several times. */
  *of(type: string): Iterable<readonly [Readers, ReadonlySet<Socket>]> {
    for (const pattern of patternsOfType(type)) {
      const byReaders = this.#byPattern.get(pattern);
      if (byReaders !== undefined) yield* byReaders;
    }
  }

  /** Patterns that somebody is subscribed to, for tests. */
  get patterns(): number {
    return this.#byPattern.size;
  }
}

/** What stands for a socket here. */
export type Listener = {
  /** An event of one of its patterns, once, with its frame for the readers that it subscribed with. */
  hear(event: LoggedEvent, frame: Buffer): void;
  /** The log cannot be read. It leaves at once. */
  fail(): void;
};

export type HubOptions = {
  readonly store: Pick<Store, 'tail' | 'head' | 'onAppend'>;
  /** Events read from the log at once. */
  readonly batchEventsMax: number;
  /** Octets of events after which it reads no further one. */
  readonly batchBytesMax: number;
};

/** Kept of what was announced: events, and characters of their documents. */
const recentEventsMax = 256;
const recentCharactersMax = 1024 * 1024;
/** Frames handed to sockets in one turn of the event loop: about 20 ms. */
const framesPerTurnMax = 10_000;

export class Hub {
  readonly #store: HubOptions['store'];
  readonly #batchEventsMax: number;
  readonly #batchBytesMax: number;
  readonly #subscribers = new Subscribers<Listener>();
  readonly #listeners = new Set<Listener>();
  #mode: 'stopped' | 'waiting' | 'reading' | 'announcing' = 'stopped';
  #position: LogPosition = beginning;
  #grown = false;
  /** Tells what was begun before a stop from what began after it. */
  #run = 0;
  #stopListening: () => void = () => undefined;
  #recent: LoggedEvent[] = [];
  #recentCharacters = 0;
  /** After it everything announced is kept. */
  #recentFrom: LogPosition = beginning;

  constructor({ store, batchEventsMax, batchBytesMax }: HubOptions) {
    this.#store = store;
    this.#batchEventsMax = batchEventsMax;
    this.#batchBytesMax = batchBytesMax;
  }

  /** Where everything that was announced ends; of a stopped hub it says nothing. */
  get position(): LogPosition {
    return this.#position;
  }

  /** How many there are, for tests and gauges. */
  get listeners(): number {
    return this.#listeners.size;
  }

  /** Where whoever enters next would begin. @throws StoreUnavailable */
  head(): MaybePromise<LogPosition> {
    return this.#mode === 'stopped' ? this.#store.head() : this.#position;
  }

  /** The first to enter starts it. @param head what `head` said before */
  enter(listener: Listener, head: LogPosition): void {
    this.#listeners.add(listener);
    if (this.#mode === 'stopped') this.#start(head);
  }

  /** The last to leave stops it. It has unsubscribed before. */
  leave(listener: Listener): void {
    if (this.#listeners.delete(listener) && this.#listeners.size === 0) this.#stop();
  }

  subscribe(pattern: string, readers: Readers, listener: Listener): void {
    this.#subscribers.add(pattern, readers, listener);
  }

  unsubscribe(pattern: string, readers: Readers, listener: Listener): void {
    this.#subscribers.delete(pattern, readers, listener);
  }

  /** Everything announced after the position, whatever its type; undefined where not all of that is kept. */
  recentAfter(position: LogPosition): readonly LoggedEvent[] | undefined {
    if (!isAfter(this.#position, position)) return [];
    if (isAfter(this.#recentFrom, position)) return undefined;
    let at = this.#recent.length;
    for (; at > 0; at -= 1) {
      const event = this.#recent[at - 1];
      if (event === undefined || !isAfter(event.position, position)) break;
    }
    return this.#recent.slice(at);
  }

  /** Where an event stands that was announced lately. */
  find(id: string): LogPosition | undefined {
    return this.#recent.findLast(({ entry }) => entry.id === id)?.position;
  }

  #start(head: LogPosition): void {
    this.#run += 1;
    this.#position = head;
    this.#recentFrom = head;
    this.#stopListening = this.#store.onAppend(() => {
      this.#grown = true;
      if (this.#mode === 'waiting') this.#pumpSoon();
    });
    this.#pump();
  }

  #stop(): void {
    this.#run += 1;
    this.#mode = 'stopped';
    this.#stopListening();
    this.#recent = [];
    this.#recentCharacters = 0;
  }

  #pump(): void {
    const run = this.#run;
    this.#mode = 'reading';
    this.#grown = false;
    const fail = (): void => {
      if (run === this.#run) this.#fail();
    };
    try {
      const batch = this.#store.tail(this.#position, always, this.#batchEventsMax, {
        bytesMax: this.#batchBytesMax,
      });
      if (batch instanceof Promise) batch.then((entries) => this.#announceFrom(run, entries, 0), fail);
      else this.#announceFrom(run, batch, 0);
    } catch {
      // The store cannot answer, for whatever reason: clients resume where they were.
      fail();
    }
  }

  #announceFrom(run: number, batch: readonly TailEntry[], first: number): void {
    if (run !== this.#run) return;
    this.#mode = 'announcing';
    let frames = 0;
    for (let at = first; at < batch.length; at += 1) {
      if (frames >= framesPerTurnMax) {
        setImmediate(() => this.#announceFrom(run, batch, at));
        return;
      }
      const entry = batch[at];
      if (entry !== undefined) frames += this.#announce(new LoggedEvent(entry));
      if (run !== this.#run) return;
    }
    this.#mode = 'waiting';
    if (this.#grown || isTailFull(batch, this.#batchEventsMax, this.#batchBytesMax)) this.#pumpSoon();
  }

  /** In a later turn: whoever wrote is answered first, and what else is written in this turn is read with it. */
  #pumpSoon(): void {
    const run = this.#run;
    setImmediate(() => {
      if (run === this.#run && this.#mode === 'waiting') this.#pump();
    });
  }

  /** @returns frames handed on */
  #announce(event: LoggedEvent): number {
    let frames = 0;
    // First the place, then the telling: who is told and looks here finds that it was told.
    this.#position = event.position;
    this.#keep(event);
    for (const [readers, listeners] of this.#subscribers.of(event.entry.type)) {
      const frame = readers.frameOf(event);
      if (frame === undefined) continue;
      frames += listeners.size;
      for (const listener of listeners) listener.hear(event, frame);
    }
    return frames;
  }

  #keep(event: LoggedEvent): void {
    this.#recent.push(event);
    this.#recentCharacters += event.entry.doc.length;
    while (this.#recent.length > recentEventsMax || this.#recentCharacters > recentCharactersMax) {
      const oldest = this.#recent.shift();
      if (oldest === undefined) return;
      this.#recentFrom = oldest.position;
      this.#recentCharacters -= oldest.entry.doc.length;
    }
  }

  #fail(): void {
    for (const listener of [...this.#listeners]) listener.fail();
  }
}
