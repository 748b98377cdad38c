/**
 * The event stream (§6; HTML, server-sent events): `id`, `event` and `data` of each event, in log order, from
 * Last-Event-ID or from now on.
 *
 * What follows the log is in one of four modes: `reading` a batch of it, as soon as there is memory for it; `taking` it, at the
 * pace of the client; `waiting` for the log to grow; or `over`. It holds at most one batch, which is bounded in octets and in
 * number and shared with similar readers (shared-batches.ts). A place in the log that is unknown or expired
 * is answered with a reset, and the stream goes on with the next event.
 */
import type { ContentSink } from '../../http/message.ts';
import type { EventStream } from '../../kernel/resource.ts';
import type { Known } from '../../model/principal.ts';
import { type LogPosition, type MaybePromise, type Store, whenKnown } from '../../store/store.ts';
import { type LogPlaces, resetText } from './log-places.ts';
import type { Batch, BatchReader, SharedBatches } from './shared-batches.ts';

type Sink = Parameters<EventStream['open']>[0];

type StreamLimits = {
  /** A batch ends with the event that reaches this many octets. */
  readonly batchBytesMax: number;
  /** A comment is sent after this much silence, to detect dead connections. */
  readonly heartbeatMs: number;
};

/** Before every event. */
export const beginning: LogPosition = { rev: 0, id: '' };
/** Bounds of memory reserved before a read: a batch may exceed its bound by its last event, and events may be long. */
export const batchesReserved = 4;

/** The log with what all that follow it share. */
export type SharedLog = {
  readonly store: Store;
  readonly batches: SharedBatches;
  readonly turns: WriteTurns;
  readonly places: LogPlaces;
  readonly limits: StreamLimits;
};

/** Who follows the log, with a stream or page by page. */
export type Follower = {
  readonly reader: BatchReader;
  /** Calls back when the credential ends; undefined: there is no credential. */
  readonly onEnd: Known['onEnd'] | undefined;
  readonly stands?: Known['stands'];
  /** Lists it among the open connections. @param octets returns the octets sent so far @returns a function that removes it */
  readonly enter: (octets: () => number) => () => void;
};

/** @param after the last event that the client received, or another place in the log; `now`: only later events are sent; empty: all events */
export async function openEventStream(
  log: SharedLog,
  follower: Follower,
  after: string,
): Promise<EventStream> {
  const head = await log.store.head();
  const from = await positionAfter(log.places, after, () => head);
  return { open: (sink) => stream(log, follower, { from, head }, sink) };
}

/** @returns undefined for a place that is unknown or expired */
export function positionAfter(
  places: LogPlaces,
  after: string,
  head: () => MaybePromise<LogPosition>,
): MaybePromise<LogPosition | undefined> {
  if (after === '') return beginning;
  return after === 'now' ? head() : places.find(after);
}

/**
 * Reads a batch for a caller whose rights may have been lost before what it has was committed: it is then empty.
 * @throws StoreUnavailable
 */
export function readStanding(
  { batches }: Pick<SharedLog, 'batches'>,
  { reader, stands }: Pick<Follower, 'reader' | 'stands'>,
  after: LogPosition,
): MaybePromise<Batch> {
  return whenKnown(batches.read(reader, after), (batch) =>
    batch.octets.length === 0 || stands === undefined
      ? batch
      : whenKnown(stands(), (good) => (good ? batch : { octets: nothing, to: after, isFull: false })),
  );
}

const nothing = new Uint8Array(0);

type Following = {
  readonly from: LogPosition;
  /** What came before may have become unreadable since, and what comes after is read as it happens; undefined: nothing is. */
  readonly head?: LogPosition;
  /** Takes what was read. @param goOn reads what follows */
  readonly take: (batch: Batch, goOn: () => void) => void;
  /** The log cannot be read, has lost units, or the credential has ended: the client comes again. */
  readonly fail: () => void;
};

/**
 * Follows the log for a client: reads a batch as soon as there is memory for it, the next one when that was taken, and
 * again when the log has grown. A batch that another reader has read or is reading needs no memory of its own.
 */
export function followBatches(
  log: SharedLog,
  follower: Follower,
  sink: ContentSink,
  { from, head, take, fail }: Following,
): { readonly start: () => void; readonly stop: () => void } {
  const { store, batches, limits } = log;
  const live = { ...follower, reader: { ...follower.reader, withholds: undefined } };
  let position = from;
  let reading = head !== undefined && from.rev >= head.rev ? live : follower;
  let mode: 'reading' | 'taking' | 'waiting' | 'over' = 'waiting';
  let grown = false;
  let stopWatching: (() => void) | undefined;
  const grow = (): void => {
    grown = true;
    if (mode === 'waiting') pump();
  };
  const stops = [store.onAppend(grow), store.onLost(fail)];

  function pump(): void {
    mode = 'reading';
    const isKnown = batches.known(reading.reader, position) !== undefined;
    sink.memory.whenRoom(isKnown ? 0 : batchesReserved * limits.batchBytesMax, () => {
      if (mode === 'reading') read();
    });
  }

  /** Delivers synchronously if the store answers synchronously; fails for any error of the store. */
  function read(): void {
    grown = false;
    try {
      const batch = readStanding(log, reading, position);
      if (batch instanceof Promise) batch.then(deliver, fail);
      else deliver(batch);
    } catch {
      fail();
    }
  }

  function deliver(batch: Batch): void {
    if (mode === 'over') return;
    mode = 'taking';
    position = batch.to;
    if (head !== undefined && (!batch.isFull || position.rev >= head.rev)) reading = live;
    take(batch, () => {
      if (mode === 'over') return;
      mode = 'waiting';
      if (batch.isFull || grown) setImmediate(() => mode === 'waiting' && pump());
    });
  }

  return {
    start() {
      // If the credential ended meanwhile, this calls back immediately.
      stopWatching = follower.onEnd?.(fail);
      if (mode === 'waiting') pump();
    },
    stop() {
      mode = 'over';
      stopWatching?.();
      for (const stop of stops) stop();
    },
  };
}

type Places = {
  /** Undefined: unknown. The stream begins at the head, and says so. */
  readonly from: LogPosition | undefined;
  readonly head: LogPosition;
};

function stream(log: SharedLog, follower: Follower, { from, head }: Places, sink: Sink): () => void {
  let open = true;
  let isWriting = false;
  const writer = createPieceWriter(sink, log.turns);
  const leave = follower.enter(writer.octets);
  const following = followBatches(log, follower, sink, {
    ...{ from: from ?? head, head, fail },
    take({ octets }, goOn) {
      isWriting = true;
      sink.memory.share(octets.length === 0 ? undefined : octets);
      writer.write(octets, () => {
        sink.memory.share(undefined);
        isWriting = false;
        goOn();
      });
    },
  });
  const heartbeat = setInterval(() => {
    if (!isWriting) sink.write(':\n\n');
  }, log.limits.heartbeatMs);
  heartbeat.unref();

  function close(): void {
    open = false;
    following.stop();
    writer.close();
    leave();
    clearInterval(heartbeat);
  }

  /** Ends the stream. The client reconnects with the credential it then has, and resumes at its last event. */
  function fail(): void {
    if (!open) return;
    close();
    sink.end();
  }

  // The comment sends the header section immediately, before the first event.
  sink.write(': comity events\n\n');
  if (from === undefined) sink.write(resetMessage(log.places.textOf(head)));
  following.start();
  return close;
}

/** With the id, a client that reconnects does not ask for what is unknown again. */
function resetMessage(place: string): string {
  return `id: ${place}\nevent: reset\ndata: ${resetText(place)}\n\n`;
}

/** Octets of one write, which a client must take within the timeout for stalled responses. */
const pieceBytesMax = 16 * 1024;

type PieceWriter = {
  /** Calls `done` when the client has taken all octets except the last piece. One call at a time. */
  write(octets: Uint8Array, done: () => void): void;
  /** Octets that were written. */
  octets(): number;
  /** Stops writing; `done` is not called afterwards. */
  close(): void;
};

/**
 * Writes octets to a client that may be slow (§6), piece by piece, at the client's pace. A batch of events may exceed
 * the buffer of one client; in pieces it passes any link, and a slow client differs from a stalled one. Pieces are
 * views of the octets, not copies.
 */
export function createPieceWriter(sink: ContentSink, turns: WriteTurns): PieceWriter {
  let open = true;
  let written = 0;
  /** Cleared before each call: the socket may also drain after a comment of the heartbeat. */
  let resume: (() => void) | undefined;

  sink.onReady(() => {
    const next = resume;
    resume = undefined;
    next?.();
  });

  function writeFrom(octets: Uint8Array, from: number, done: () => void): void {
    turns.enter(() => {
      if (!open) return 0;
      const piece = octets.subarray(from, from + pieceBytesMax);
      const next = (): void => {
        if (from + piece.length < octets.length) writeFrom(octets, from + piece.length, done);
        else if (open) done();
      };
      written += piece.length;
      if (sink.write(piece)) next();
      else resume = next;
      return piece.length;
    });
  }

  return {
    write(octets, done) {
      if (octets.length === 0) done();
      else writeFrom(octets, 0, done);
    },
    octets: () => written,
    close: () => {
      open = false;
    },
  };
}

const turnBytesMax = 2 * 1024 * 1024;
/** Counted for a short write, whose fixed cost is that of so many octets. */
const writeBytesMin = 16 * 1024;

/** Writes, and returns the number of octets. */
type Write = () => number;

/**
 * Limits how much event streams write in one turn of the event loop; the rest follows in later turns, in order of
 * arrival. The cost of a write arises when the socket sends, after the call, so octets are counted instead of time: 2
 * MiB took 1 to 3 ms on a two-core machine.
 */
export class WriteTurns {
  #waiting: Write[] = [];
  #isScheduled = false;

  /** Calls `write` once, in a later turn of the event loop. */
  enter(write: Write): void {
    this.#waiting.push(write);
    this.#schedule();
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(this.#run);
  }

  readonly #run = (): void => {
    this.#isScheduled = false;
    const writes = this.#waiting;
    this.#waiting = [];
    let bytes = 0;
    let at = 0;
    for (; at < writes.length && bytes < turnBytesMax; at += 1) {
      bytes += Math.max(writeBytesMin, writes[at]?.() ?? 0);
    }
    if (at < writes.length) this.#waiting = [...writes.slice(at), ...this.#waiting];
    if (this.#waiting.length > 0) this.#schedule();
  };
}
