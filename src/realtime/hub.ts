/**
 * The hub reads the event log for all WebSockets of the process (§4.13): it reads each event once, in log order, and
 * passes it to the subscribed listeners. It does not know sockets.
 *
 * Modes: `stopped` while there is no listener; `waiting` for the log to grow; `reading` a batch; `announcing` one, over
 * several turns of the event loop if there are many listeners. Its position is that of the last announced event.
 *
 * It keeps the events announced last, so that a catch-up reads the end of the log from here: without a read of the
 * store, and without a gap between that end and the live events.
 */

import { patternsOfType } from '../model/event.ts';
import { always } from '../model/filter.ts';
import { type LooksStore, ParentLooks } from '../resources/events/parent-looks.ts';
import type { BatchBounds } from '../resources/events/shared-batches.ts';
import { isAfter } from '../store/follow-log.ts';
import { isTailFull } from '../store/page-of-rows.ts';
import type { LogPosition, MaybePromise, Store, TailEntry } from '../store/store.ts';
import { beginning, type ChildFrame, LoggedEvent, type Readers } from './readers.ts';

/**
 * Listeners by pattern, then by audience: an event costs one lookup for each segment of its type, one decision for each
 * audience, and one call for each socket.
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

  /** Listeners for the type, by pattern: one with several matching patterns comes several times. */
  *of(type: string): Iterable<readonly [Readers, ReadonlySet<Socket>]> {
    for (const pattern of patternsOfType(type)) {
      const byReaders = this.#byPattern.get(pattern);
      if (byReaders !== undefined) yield* byReaders;
    }
  }

  /** Number of patterns with a subscription, for tests. */
  get patterns(): number {
    return this.#byPattern.size;
  }
}

/** A socket, as the hub sees it. */
export type Listener = {
  /**
   * Leaves at once if it may not hear what was read from the log until now. Undefined: it would have left by itself.
   * @throws StoreUnavailable
   */
  readonly confirm: (() => MaybePromise<void>) | undefined;
  /** Takes an event of one of its patterns, with its frame for the subscribed readers; may repeat the last one. */
  hear(event: LoggedEvent, frame: Buffer): void;
  /** Takes a frame about documents that refer to that of the event, before the event. */
  hearOfChildren(event: LoggedEvent, frame: Buffer): void;
  /** The log cannot be read; the listener must leave at once. */
  fail(): void;
};

type HubStore = LooksStore & Pick<Store, 'onAppend' | 'onLost'>;

/** Bounds of the kept events: their number, and the characters of their documents. */
const recentEventsMax = 256;
const recentCharactersMax = 1024 * 1024;
/** Frames passed to sockets in one turn of the event loop: about 20 ms. */
const framesPerTurnMax = 10_000;
/** Listeners asked in one turn: at most 9 ms on PostgreSQL, where 10,000 with a credential each took 86 ms. */
const confirmationsPerTurnMax = 1_000;
/** Decisions that are made before the first event is passed on, so that what they lack is read together. */
const decisionsAheadMax = 2_500;

const noTypes: readonly string[] = [];

/** Events that were read together, and what rules find in other tables to decide about them. */
type Batch = {
  readonly events: readonly LoggedEvent[];
  readonly looks: ParentLooks;
  /** Those who were asked since it was read. */
  readonly confirmed: Set<Listener>;
};

export class Hub {
  readonly #store: HubStore;
  /** For each collection, the types by which readers ask for messages about documents that refer to its documents. */
  readonly #typesByParent: ReadonlyMap<string, readonly string[]>;
  readonly #bounds: BatchBounds;
  readonly #subscribers = new Subscribers<Listener>();
  readonly #listeners = new Set<Listener>();
  /** How many of them are asked. */
  #asked = 0;
  #mode: 'stopped' | 'waiting' | 'reading' | 'announcing' = 'stopped';
  #position: LogPosition = beginning;
  #grown = false;
  /** Distinguishes work that began before a stop from later work. */
  #run = 0;
  #stopListening: () => void = () => undefined;
  #recent: LoggedEvent[] = [];
  #recentCharacters = 0;
  /** Every event announced after this position is kept. */
  #recentFrom: LogPosition = beginning;

  constructor(store: HubStore, typesByParent: ReadonlyMap<string, readonly string[]>, bounds: BatchBounds) {
    this.#store = store;
    this.#typesByParent = typesByParent;
    this.#bounds = bounds;
  }

  /** Position of the last announced event; meaningless while the hub is stopped. */
  get position(): LogPosition {
    return this.#position;
  }

  /** Number of listeners, for tests and gauges. */
  get listeners(): number {
    return this.#listeners.size;
  }

  /** Position at which a listener that enters now begins. @throws StoreUnavailable */
  head(): MaybePromise<LogPosition> {
    return this.#mode === 'stopped' ? this.#store.head() : this.#position;
  }

  /** The first listener starts the hub. @param head an earlier result of `head` */
  enter(listener: Listener, head: LogPosition): void {
    this.#listeners.add(listener);
    if (listener.confirm !== undefined) this.#asked += 1;
    if (this.#mode === 'stopped') this.#start(head);
  }

  /** The last listener stops the hub. It must have unsubscribed. */
  leave(listener: Listener): void {
    if (!this.#listeners.delete(listener)) return;
    if (listener.confirm !== undefined) this.#asked -= 1;
    if (this.#listeners.size === 0) this.#stop();
  }

  subscribe(pattern: string, readers: Readers, listener: Listener): void {
    this.#subscribers.add(pattern, readers, listener);
  }

  unsubscribe(pattern: string, readers: Readers, listener: Listener): void {
    this.#subscribers.delete(pattern, readers, listener);
  }

  /** Returns all events announced after the position, of every type; undefined if not all of them are kept. */
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

  /** Returns the position of a kept event. */
  find(id: string): LogPosition | undefined {
    return this.#recent.findLast(({ entry }) => entry.id === id)?.position;
  }

  #start(head: LogPosition): void {
    this.#run += 1;
    this.#position = head;
    this.#recentFrom = head;
    const stopListening = this.#store.onAppend(() => {
      this.#grown = true;
      if (this.#mode === 'waiting') this.#pumpSoon();
    });
    // Who heard of units that were lost finds out when it resumes after them.
    const stopDoubting = this.#store.onLost(() => this.#fail());
    this.#stopListening = () => {
      stopListening();
      stopDoubting();
    };
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
      const batch = this.#store.tail(this.#position, always, this.#bounds.batchEventsMax, {
        bytesMax: this.#bounds.batchBytesMax,
        refusesLost: true,
      });
      const looks = new ParentLooks(this.#store);
      const announce = (entries: readonly TailEntry[]): void =>
        this.#announceFrom(
          run,
          { events: entries.map((entry) => new LoggedEvent(entry)), looks, confirmed: new Set() },
          0,
        );
      if (batch instanceof Promise) batch.then(announce, fail);
      else announce(batch);
    } catch {
      // Whatever the cause, clients resume where they were.
      fail();
    }
  }

  #announceFrom(run: number, batch: Batch, first: number): void {
    if (run !== this.#run) return;
    this.#mode = 'announcing';
    const { events, looks } = batch;
    let decided = 0;
    for (const event of events.slice(first)) {
      decided += this.#look(event, looks);
      if (decided >= decisionsAheadMax) break;
    }
    let frames = 0;
    for (let at = first; at < events.length; at += 1) {
      if (frames >= framesPerTurnMax) {
        setImmediate(() => this.#announceFrom(run, batch, at));
        return;
      }
      const event = events[at];
      // Those who subscribed meanwhile may need further rows.
      if (event !== undefined) frames += this.#look(event, looks);
      const loading = looks.load() ?? (event && this.#confirm(event, batch));
      if (loading !== undefined) {
        loading.then(
          () => this.#announceFrom(run, batch, at),
          () => run === this.#run && this.#fail(),
        );
        return;
      }
      if (event !== undefined) frames += this.#announce(event, looks);
      if (run !== this.#run) return;
    }
    this.#mode = 'waiting';
    const entries = events.map(({ entry }) => entry);
    const { batchEventsMax, batchBytesMax } = this.#bounds;
    if (this.#grown || isTailFull(entries, batchEventsMax, batchBytesMax)) this.#pumpSoon();
  }

  /** Asks those who are about to hear of the event. @returns undefined: all may; otherwise it has to be called again */
  #confirm(event: LoggedEvent, { looks, confirmed }: Batch): Promise<unknown> | undefined {
    if (this.#asked === 0) return undefined;
    const waiting: Promise<void>[] = [];
    let asked = 0;
    for (const listener of this.#hearersOf(event, looks)) {
      if (listener.confirm === undefined || confirmed.has(listener)) continue;
      if (asked === confirmationsPerTurnMax) {
        waiting.push(new Promise((resolve) => void setImmediate(resolve)));
        break;
      }
      asked += 1;
      confirmed.add(listener);
      const confirming = listener.confirm();
      if (confirming !== undefined) waiting.push(confirming);
    }
    return waiting.length === 0 ? undefined : Promise.all(waiting);
  }

  *#hearersOf(event: LoggedEvent, looks: ParentLooks): Iterable<Listener> {
    for (const [readers, listeners] of this.#subscribers.of(event.entry.type))
      if (readers.frameOf(event, looks.rows.find) !== undefined) yield* listeners;
    for (const type of this.#typesOfChildren(event))
      for (const [readers, listeners] of this.#subscribers.of(type))
        if (readers.childFrames(event, looks).some((each) => each.type === type)) yield* listeners;
  }

  /**
   * Finds the rows of other tables that decide who sees the event.
   * @returns number of decisions about documents that refer to that of the event, each about as long as passing on a frame
   */
  #look(event: LoggedEvent, looks: ParentLooks): number {
    let decided = 0;
    for (const [readers] of this.#subscribers.of(event.entry.type)) readers.look(event, looks.rows.find);
    for (const type of this.#typesOfChildren(event)) {
      for (const [readers] of this.#subscribers.of(type)) {
        // The rest is decided when what these lack has been read.
        if (looks.isFull) return decided;
        readers.childFrames(event, looks);
        decided += 1;
      }
    }
    return decided;
  }

  /** The types by which readers ask for messages about documents that refer to that of the event. */
  #typesOfChildren({ entry: { collection } }: LoggedEvent): readonly string[] {
    return this.#typesByParent.get(collection) ?? noTypes;
  }

  /** Reads in a later turn: the writer gets its response first, and further writes of this turn are read together. */
  #pumpSoon(): void {
    const run = this.#run;
    setImmediate(() => {
      if (run === this.#run && this.#mode === 'waiting') this.#pump();
    });
  }

  /** @returns number of frames passed on */
  #announce(event: LoggedEvent, looks: ParentLooks): number {
    let frames = 0;
    // The position changes first: a listener that reads it while hearing the event must find the event announced.
    this.#position = event.position;
    this.#keep(event);
    for (const type of this.#typesOfChildren(event)) frames += this.#announceChildren(event, type, looks);
    for (const [readers, listeners] of this.#subscribers.of(event.entry.type)) {
      const frame = readers.frameOf(event, looks.rows.find);
      if (frame === undefined) continue;
      frames += listeners.size;
      for (const listener of listeners) listener.hear(event, frame);
    }
    return frames;
  }

  /** Sends the messages about documents that refer to that of the event to the readers who ask for their type. */
  #announceChildren(event: LoggedEvent, type: string, looks: ParentLooks): number {
    const told = new Map<Readers, readonly ChildFrame[]>();
    // A listener with several matching patterns comes several times.
    const heard = new Set<Listener>();
    let passed = 0;
    for (const [readers, listeners] of this.#subscribers.of(type)) {
      const frames =
        told.get(readers) ?? readers.childFrames(event, looks).filter((each) => each.type === type);
      if (frames.length === 0) continue;
      told.set(readers, frames);
      for (const listener of listeners) {
        if (heard.has(listener)) continue;
        heard.add(listener);
        for (const { frame } of frames) listener.hearOfChildren(event, frame);
        passed += frames.length;
      }
    }
    return passed;
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
