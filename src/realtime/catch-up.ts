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
import type { Told } from '../resources/events/disclosure.ts';
import { type LogPlaces, resetText } from '../resources/events/log-places.ts';
import { type LooksStore, ParentLooks } from '../resources/events/parent-looks.ts';
import type { BatchBounds } from '../resources/events/shared-batches.ts';
import { type FollowedLog, isAfter, type LogRead, laterOf, readLog } from '../store/follow-log.ts';
import { type LogPosition, type MaybePromise, whenKnown } from '../store/store.ts';
import type { Hub } from './hub.ts';
import { beginning, type LoggedEvent, type Readers } from './readers.ts';
import { covers, matchesAny, ofTypes, type Subscription } from './subprotocol.ts';

/** Memory for this many batch bounds is reserved: the event that exceeds the bound ends a batch, and may be long. */
const batchesReserved = 4;

/** The log as all sockets follow it. */
export type RealtimeLog = {
  readonly store: LooksStore & FollowedLog;
  readonly hub: Hub;
  readonly places: LogPlaces;
  /** Those of a catch-up, which reads again what its client did not take. */
  readonly bounds: BatchBounds;
};

/** The socket that catches up. */
type CaughtUp = {
  readonly readers: Readers;
  readonly memory: HeldMemory;
  /** Its current subscriptions. */
  readonly all: () => Iterable<Subscription>;
  /** Returns false if the client is too slow; `goOn` continues. Without an id for a frame that the client cannot resume after. */
  readonly send: (id: string | undefined, frame: string | Buffer) => boolean;
  /** As the hub asks a listener. */
  readonly confirm: () => MaybePromise<void>;
  /** Everything up to `cursor` was sent. Synchronous: the hub has announced nothing since. */
  readonly done: (cursor: LogPosition) => void;
  readonly fail: () => void;
};

/** Subscriptions that catch up. */
export type Missed = {
  /** A place in the log. */
  readonly after: string;
  readonly fresh: ReadonlySet<Subscription>;
};

export class CatchUp {
  readonly #log: RealtimeLog;
  readonly #socket: CaughtUp;
  readonly #missed: Missed;
  readonly #until: LogPosition;
  /** The older subscriptions at the start: their events up to `until` have been sent. */
  readonly #covered: readonly Subscription[];
  #cursor: LogPosition = beginning;
  /** The events that the hub keeps up to here were read before the socket was asked if it may hear them. */
  #confirmedTo: LogPosition = beginning;
  /** Rows of other tables that it loaded for the events that the hub keeps. */
  #looks: ParentLooks | undefined;
  #mode: 'reading' | 'waiting' | 'over' = 'reading';

  constructor(log: RealtimeLog, socket: CaughtUp, missed: Missed) {
    this.#log = log;
    this.#socket = socket;
    this.#missed = missed;
    this.#until = log.hub.position;
    this.#covered = [...socket.all()].filter((subscription) => !missed.fresh.has(subscription));
  }

  start(): void {
    const { hub, places } = this.#log;
    const { after, fresh } = this.#missed;
    this.#whenRead(
      () => (after === '' ? beginning : (hub.find(after) ?? places.find(after))),
      (found) => {
        const position = found ?? hub.position;
        this.#cursor = position;
        if (found === undefined) this.#sendOne(undefined, resetText(places.textOf(position)));
        for (const subscription of fresh) subscription.since = position;
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
    const { store, hub, bounds } = this.#log;
    const { readers, memory } = this.#socket;
    const { batchEventsMax, batchBytesMax } = bounds;
    const recent = hub.recentAfter(this.#cursor);
    if (recent !== undefined) {
      const looks = this.#looks ?? new ParentLooks(store);
      this.#looks = undefined;
      if (this.#isLoading(recent, looks) || this.#isConfirming(recent, looks)) return;
      const { rows } = looks;
      const newest = new Map(recent.map((event) => [documentOf(event), event] as const));
      for (const event of recent) {
        const last = newest.get(documentOf(event)) ?? event;
        const isWanted = this.#wants(event.entry.type, event.position);
        const isReadable = last === event || readers.sees(last, rows.find);
        const frame = isWanted ? readers.frameOf(event, rows.find, isReadable) : undefined;
        this.#cursor = event.position;
        const children = readers
          .childFrames(event, looks)
          .filter(({ type }) => this.#wants(type, event.position))
          .map((child) => child.frame);
        if (!this.#send(event.entry.id, children, frame)) return;
      }
      this.#mode = 'over';
      this.#socket.done(this.#cursor);
      return;
    }
    const isFirstStretch = isAfter(this.#until, this.#cursor);
    const wanted = isFirstStretch ? this.#fresh() : this.#socket.all();
    const filter = readers.reach(ofTypes(wanted), (type) => matchesAny(wanted, type));
    // This read sees everything that the hub has announced.
    const announced = isFirstStretch ? this.#until : hub.position;
    memory.whenRoom(batchesReserved * batchBytesMax, () => {
      if (this.#mode !== 'reading') return;
      this.#whenRead(
        () =>
          whenKnown(
            readLog(store, this.#cursor, { filter, limit: batchEventsMax, bytesMax: batchBytesMax }),
            (read) =>
              whenKnown(readers.told(store, read.entries), (tellings) => this.#confirmed({ read, tellings })),
          ),
        ({ read, tellings }) => {
          if (this.#mode !== 'reading') return;
          this.#take(read, tellings, { announced, isFirstStretch });
          // Octets that wait for the client are counted by the outbox.
          memory.set(0);
        },
      );
    });
  }

  #confirmed<T extends { readonly read: LogRead }>(found: T): MaybePromise<T> {
    return found.read.entries.length === 0 ? found : whenKnown(this.#socket.confirm(), () => found);
  }

  /** Asks if the socket may hear the events, and continues then; false if it may. */
  #isConfirming(events: readonly LoggedEvent[], looks: ParentLooks): boolean {
    const last = events.at(-1);
    if (last === undefined || !isAfter(last.position, this.#confirmedTo)) return false;
    this.#confirmedTo = last.position;
    const confirming = this.#socket.confirm();
    if (confirming === undefined) return this.#mode !== 'reading';
    this.#whenRead(
      () => confirming,
      () => {
        this.#looks = looks;
        if (this.#mode === 'reading') this.#read();
      },
    );
    return true;
  }

  /** Reads the rows of other tables that decide about the events, and continues then; false if nothing is to be read. */
  #isLoading(events: readonly LoggedEvent[], looks: ParentLooks): boolean {
    const { readers } = this.#socket;
    for (const event of events) {
      readers.look(event, looks.rows.find);
      readers.childFrames(event, looks);
    }
    const loading = looks.load();
    if (loading === undefined) return false;
    this.#whenRead(
      () => loading,
      () => {
        this.#looks = looks;
        if (this.#mode === 'reading') this.#read();
      },
    );
    return true;
  }

  #take(
    { entries, to, isFull }: LogRead,
    tellings: readonly Told[],
    { announced, isFirstStretch }: { readonly announced: LogPosition; readonly isFirstStretch: boolean },
  ): void {
    const { readers } = this.#socket;
    let isWhole = !isFull;
    for (const [at, entry] of entries.entries()) {
      const position = { rev: entry.rev, id: entry.id };
      if (isFirstStretch && isAfter(position, this.#until)) {
        isWhole = true;
        break;
      }
      const { telling, children } = tellings[at] ?? unknown;
      const isWanted = telling !== 'nothing' && this.#wants(entry.type, position);
      this.#cursor = position;
      const frames = children.filter(({ type }) => this.#wants(type, position)).map(({ text }) => text);
      const own = isWanted ? readers.textOf(entry, telling) : undefined;
      if (!this.#send(entry.id, frames, own)) return;
    }
    const end = isWhole ? announced : isFirstStretch && isAfter(to, this.#until) ? this.#until : to;
    this.#cursor = laterOf(this.#cursor, end);
    // Lets other work run between two batches.
    setImmediate(() => {
      if (this.#mode === 'reading') this.#read();
    });
  }

  /**
   * Sends what an event makes, together even if the client is slow, because the catch-up goes on after the event.
   * @param children frames about documents that refer to that of the event
   * @returns false if nothing more may be sent now
   */
  #send(id: string, children: readonly (string | Buffer)[], frame: string | Buffer | undefined): boolean {
    for (const each of children) this.#sendOne(undefined, each);
    if (frame !== undefined) this.#sendOne(id, frame);
    return this.#mode === 'reading';
  }

  /** Sending may close the socket, which ends the catch-up. */
  #sendOne(id: string | undefined, frame: string | Buffer): void {
    if (this.#mode === 'over') return;
    const hasRoom = this.#socket.send(id, frame);
    if (!hasRoom && this.#mode === 'reading') this.#mode = 'waiting';
  }

  #wants(type: string, position: LogPosition): boolean {
    if (isAfter(position, this.#until)) return covers(this.#socket.all(), type, position);
    return covers(this.#fresh(), type, position) && !covers(this.#covered, type, position);
  }

  /** Omits subscriptions that the client has cancelled since. */
  #fresh(): readonly Subscription[] {
    return [...this.#socket.all()].filter((subscription) => this.#missed.fresh.has(subscription));
  }

  /** Calls `use` in the same turn if the store answers synchronously. */
  #whenRead<T>(read: () => MaybePromise<T>, use: (found: T) => void): void {
    const fail = (): void => {
      if (this.#mode !== 'over') this.#socket.fail();
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

/** The document of an event; each event about none is its own. */
function documentOf({ entry: { collection, document, id } }: LoggedEvent): string {
  return document === null ? id : `${collection} ${document}`;
}

const unknown: Told = { telling: 'withheld', children: [] };
