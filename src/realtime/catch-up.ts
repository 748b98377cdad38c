/**
 * What one socket missed, read from the log (§4.13): events after the id that a client gave, for the patterns that it named with it, until
 * the hub can take over. Nothing is lost and nothing comes twice, in log order.
 *
 * A catch-up has two stretches. Up to `until`, where the hub stood when the socket left it, only the new patterns are wanted, and of
 * those no event that an older one has brought already. From there on the socket's whole list is. The cursor stands where everything wanted before
 * has been sent.
 *
 * It is in one of three modes: `reading` the store, as soon as there is memory for a batch; `waiting` for a client that has enough to take,
 * without holding on to what was read; or `over`. It ends in the very turn in which it finds nothing more among what the hub has announced.
 */
import type { HeldMemory } from '../http/message.ts';
import { allOf } from '../model/filter.ts';
import { isTailFull } from '../store/page-of-rows.ts';
import {
  eventsTable,
  type LogPosition,
  type MaybePromise,
  type Store,
  type TailEntry,
} from '../store/store.ts';

import type { Hub } from './hub.ts';
import { beginning, isAfter, laterOf } from './logged-event.ts';
import type { Readers } from './readers.ts';
import { covers, ofTypes, type Subscription } from './subscriptions.ts';

/** A batch ends with the event that reaches its bound, and events may be long: so many bounds are asked for before it is read. */
const batchesReserved = 4;

export type CatchUpOptions = {
  readonly store: Pick<Store, 'read' | 'tail'>;
  readonly hub: Pick<Hub, 'position' | 'recentAfter' | 'find'>;
  readonly readers: Readers;
  /** Events read from the store at once; what of them the client does not take is read again. */
  readonly batchEventsMax: number;
  /** Octets of events after which it reads no further one. */
  readonly batchBytesMax: number;
  readonly memory: HeldMemory;
  /** Everything that the socket is subscribed to, now. */
  readonly all: () => Iterable<Subscription>;
  /** Those of them that are caught up with. */
  readonly fresh: ReadonlySet<Subscription>;
  readonly after: string;
  /** False: the client has enough to take; `goOn` tells when it has less. */
  readonly send: (id: string, frame: string | Buffer) => boolean;
  /** Everything up to here was sent. Synchronous: the hub has announced nothing since. */
  readonly done: (cursor: LogPosition) => void;
  readonly fail: () => void;
};

export class CatchUp {
  readonly #options: CatchUpOptions;
  readonly #until: LogPosition;
  /** Older patterns as they stood at the beginning: what they covered up to `until` has been sent. */
  readonly #covered: readonly Subscription[];
  #cursor: LogPosition = beginning;
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

  /** The client can take more. */
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
      for (const event of recent) {
        const frame = this.#wants(event.entry.type, event.position) ? readers.frameOf(event) : undefined;
        this.#cursor = event.position;
        if (frame !== undefined && !this.#send(event.entry.id, frame)) return;
      }
      this.#mode = 'over';
      this.#options.done(this.#cursor);
      return;
    }
    const isFirstStretch = isAfter(this.#until, this.#cursor);
    const wanted = isFirstStretch ? this.#fresh() : this.#options.all();
    const filter = allOf([readers.visible, ofTypes(wanted)]);
    // What the hub has announced is visible to this read.
    const announced = isFirstStretch ? this.#until : hub.position;
    memory.whenRoom(batchesReserved * batchBytesMax, () => {
      if (this.#mode !== 'reading') return;
      this.#whenRead(
        () => store.tail(this.#cursor, filter, batchEventsMax, { bytesMax: batchBytesMax }),
        (batch) => {
          this.#take(batch, announced, isFirstStretch);
          // What of it waits for the client is counted where it waits.
          memory.set(0);
        },
      );
    });
  }

  #take(batch: readonly TailEntry[], announced: LogPosition, isFirstStretch: boolean): void {
    const { readers, batchEventsMax, batchBytesMax } = this.#options;
    let isWhole = !isTailFull(batch, batchEventsMax, batchBytesMax);
    for (const entry of batch) {
      const position = { rev: entry.rev, id: entry.id };
      if (isFirstStretch && isAfter(position, this.#until)) {
        isWhole = true;
        break;
      }
      const isWanted = this.#wants(entry.type, position);
      this.#cursor = position;
      if (isWanted && !this.#send(entry.id, readers.textOf(entry))) return;
    }
    if (isWhole) this.#cursor = laterOf(this.#cursor, announced);
    // Others have their turn between two batches.
    setImmediate(() => {
      if (this.#mode === 'reading') this.#read();
    });
  }

  /** False: nothing more now. */
  #send(id: string, frame: string | Buffer): boolean {
    const hasRoom = this.#options.send(id, frame);
    // To send may have been the end of it.
    if (!hasRoom && this.#mode === 'reading') this.#mode = 'waiting';
    return this.#mode === 'reading';
  }

  #wants(type: string, position: LogPosition): boolean {
    if (isAfter(position, this.#until)) return covers(this.#options.all(), type, position);
    return covers(this.#fresh(), type, position) && !covers(this.#covered, type, position);
  }

  /** Without those that the client unsubscribed from meanwhile. */
  #fresh(): readonly Subscription[] {
    return [...this.#options.all()].filter((subscription) => this.#options.fresh.has(subscription));
  }

  /** Goes on at once where the store answers at once. */
  #whenRead<T>(read: () => MaybePromise<T>, use: (found: T) => void): void {
    const fail = (): void => {
      if (this.#mode !== 'over') this.#options.fail();
    };
    let found: MaybePromise<T>;
    try {
      found = read();
    } catch {
      // The store cannot answer, for whatever reason: the client resumes.
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

/** An event that is not there may have been purged: then from the oldest kept, rather twice than never. */
function placeOf(row: { readonly rev: number; readonly id: string } | undefined): LogPosition {
  return row === undefined ? beginning : { rev: row.rev, id: row.id };
}
