/**
 * Sends one socket the events that it missed (§4.13): reads the log after the id that the client gave, for the patterns
 * that it named with the id, until the hub can take over. It sends every event once, in log order.
 *
 * A catch-up has two stretches. Up to `until`, the position of the hub when the catch-up began, it sends only events of
 * the new patterns, without those that an older pattern has already brought. After `until` it sends events of all
 * patterns of the socket. Every wanted event up to the cursor has been sent.
 *
 * Modes: `reading` the store, as soon as there is memory for a batch; `waiting` for a slow client, without keeping what
 * was read; `over`. It ends in the turn of the event loop in which it finds no further announced event.
 */
import type { HeldMemory } from '../http/message.ts';
import { allOf } from '../model/filter.ts';
import type { Telling } from '../resources/events/telling.ts';
import { isTailFull } from '../store/page-of-rows.ts';
import { RelatedRows } from '../store/related-rows.ts';
import {
  eventsTable,
  type LogPosition,
  type MaybePromise,
  type Store,
  type TailEntry,
} from '../store/store.ts';

import { whenKnown } from '../store/when-known.ts';
import type { Hub } from './hub.ts';
import { beginning, isAfter, type LoggedEvent, laterOf } from './logged-event.ts';
import type { Readers } from './readers.ts';
import { covers, ofTypes, type Subscription } from './subscriptions.ts';

/** Memory for this many batch bounds is reserved: the event that exceeds the bound ends a batch, and may be long. */
const batchesReserved = 4;

export type CatchUpOptions = {
  readonly store: Pick<Store, 'read' | 'tail'>;
  readonly hub: Pick<Hub, 'position' | 'recentAfter' | 'find'>;
  readonly readers: Readers;
  /** Events read from the store at once; those that the client does not take are read again. */
  readonly batchEventsMax: number;
  /** Octets of events after which the batch ends. */
  readonly batchBytesMax: number;
  readonly memory: HeldMemory;
  /** The current subscriptions of the socket. */
  readonly all: () => Iterable<Subscription>;
  /** Those of `all` that catch up. */
  readonly fresh: ReadonlySet<Subscription>;
  readonly after: string;
  /** Returns false if the client is too slow; `goOn` continues. */
  readonly send: (id: string, frame: string | Buffer) => boolean;
  /** Everything up to `cursor` was sent. Synchronous: the hub has announced nothing since. */
  readonly done: (cursor: LogPosition) => void;
  readonly fail: () => void;
};

export class CatchUp {
  readonly #options: CatchUpOptions;
  readonly #until: LogPosition;
  /** The older subscriptions at the start: their events up to `until` have been sent. */
  readonly #covered: readonly Subscription[];
  #cursor: LogPosition = beginning;
  /** Rows of other tables that were loaded for the events that the hub keeps. */
  #rows: RelatedRows | undefined;
  #mode: 'reading' | 'waiting' | 'over' = 'reading';

  constructor(options: CatchUpOptions) {
    this.#options = options;
    this.#until = options.hub.position;
    this.#covered = [...options.all()].filter((subscription) => !options.fresh.has(subscription));
  }

  start(): void {
    const { store, hub, after } = this.#options;
    this.#whenRead(
      () => {
        const known = hub.find(after);
        if (known !== undefined) return known;
        const row = store.read(eventsTable, after);
        return row instanceof Promise ? row.then(placeOf) : placeOf(row);
      },
      (position) => {
        this.#cursor = position;
        for (const subscription of this.#options.fresh) subscription.since = position;
        this.#read();
      },
    );
  }

  /** Continues when the client can take more. */
  goOn(): void {
    if (this.#mode !== 'waiting') return;
    this.#mode = 'reading';
    this.#read();
  }

  stop(): void {
    this.#mode = 'over';
  }

  #read(): void {
    const { store, hub, readers, batchEventsMax, batchBytesMax, memory } = this.#options;
    const recent = hub.recentAfter(this.#cursor);
    if (recent !== undefined) {
      const rows = this.#rows ?? new RelatedRows(store);
      this.#rows = undefined;
      if (this.#isLoading(recent, rows)) return;
      const newest = new Map(recent.map((event) => [documentOf(event), event] as const));
      for (const event of recent) {
        const last = newest.get(documentOf(event)) ?? event;
        const isWanted = this.#wants(event.entry.type, event.position);
        const isReadable = last === event || readers.sees(last, rows.find);
        const frame = isWanted ? readers.frameOf(event, rows.find, isReadable) : undefined;
        this.#cursor = event.position;
        if (frame !== undefined && !this.#send(event.entry.id, frame)) return;
      }
      this.#mode = 'over';
      this.#options.done(this.#cursor);
      return;
    }
    const isFirstStretch = isAfter(this.#until, this.#cursor);
    const wanted = isFirstStretch ? this.#fresh() : this.#options.all();
    const filter = allOf([readers.reach, ofTypes(wanted)]);
    // This read sees everything that the hub has announced.
    const announced = isFirstStretch ? this.#until : hub.position;
    memory.whenRoom(batchesReserved * batchBytesMax, () => {
      if (this.#mode !== 'reading') return;
      this.#whenRead(
        () =>
          whenKnown(store.tail(this.#cursor, filter, batchEventsMax, { bytesMax: batchBytesMax }), (batch) =>
            whenKnown(readers.told(store, batch), (telling) => ({ batch, telling })),
          ),
        ({ batch, telling }) => {
          this.#take(batch, telling, { announced, isFirstStretch });
          // Octets that wait for the client are counted by the outbox.
          memory.set(0);
        },
      );
    });
  }

  /** Reads the rows of other tables that decide about the events, and continues then; false if nothing is to be read. */
  #isLoading(events: readonly LoggedEvent[], rows: RelatedRows): boolean {
    for (const event of events) this.#options.readers.look(event, rows.find);
    const loading = rows.load();
    if (loading === undefined) return false;
    this.#whenRead(
      () => loading,
      () => {
        this.#rows = rows;
        if (this.#mode === 'reading') this.#read();
      },
    );
    return true;
  }

  #take(
    batch: readonly TailEntry[],
    telling: readonly Telling[],
    { announced, isFirstStretch }: { readonly announced: LogPosition; readonly isFirstStretch: boolean },
  ): void {
    const { readers, batchEventsMax, batchBytesMax } = this.#options;
    let isWhole = !isTailFull(batch, batchEventsMax, batchBytesMax);
    for (const [at, entry] of batch.entries()) {
      const position = { rev: entry.rev, id: entry.id };
      if (isFirstStretch && isAfter(position, this.#until)) {
        isWhole = true;
        break;
      }
      const isWanted = this.#wants(entry.type, position);
      this.#cursor = position;
      if (isWanted && !this.#send(entry.id, readers.textOf(entry, telling[at] ?? 'withheld'))) return;
    }
    if (isWhole) this.#cursor = laterOf(this.#cursor, announced);
    // Lets other work run between two batches.
    setImmediate(() => {
      if (this.#mode === 'reading') this.#read();
    });
  }

  /** Returns false if nothing more may be sent now. */
  #send(id: string, frame: string | Buffer): boolean {
    const hasRoom = this.#options.send(id, frame);
    // Sending may have closed the socket, which ends the catch-up.
    if (!hasRoom && this.#mode === 'reading') this.#mode = 'waiting';
    return this.#mode === 'reading';
  }

  #wants(type: string, position: LogPosition): boolean {
    if (isAfter(position, this.#until)) return covers(this.#options.all(), type, position);
    return covers(this.#fresh(), type, position) && !covers(this.#covered, type, position);
  }

  /** Omits subscriptions that the client has cancelled since. */
  #fresh(): readonly Subscription[] {
    return [...this.#options.all()].filter((subscription) => this.#options.fresh.has(subscription));
  }

  /** Calls `use` in the same turn if the store answers synchronously. */
  #whenRead<T>(read: () => MaybePromise<T>, use: (found: T) => void): void {
    const fail = (): void => {
      if (this.#mode !== 'over') this.#options.fail();
    };
    let found: MaybePromise<T>;
    try {
      found = read();
    } catch {
      // Whatever the cause, the socket is closed and the client resumes.
      fail();
      return;
    }
    if (!(found instanceof Promise)) use(found);
    else {
      found
        .then((value) => {
          if (this.#mode !== 'over') use(value);
        })
        .catch(fail);
    }
  }
}

/** Of events about no document, each its own. */
function documentOf({ entry: { collection, document, id } }: LoggedEvent): string {
  return document === null ? id : `${collection} ${document}`;
}

/** A missing event may have been purged: the catch-up then begins at the oldest kept one, and may send events again. */
function placeOf(row: { readonly rev: number; readonly id: string } | undefined): LogPosition {
  return row === undefined ? beginning : { rev: row.rev, id: row.id };
}
