/**
 * The event stream (§6; HTML, server-sent events): `id`, `event` and `data` per event, in log order, from
 * Last-Event-ID or from now on.
 *
 * A stream is in one of three modes: `reading` a batch from the log, as soon as there is memory for one; `writing` it to a
 * client, which may be slow and is then waited for; or `waiting` for the log to grow. It never holds more than one batch, which
 * ends by octets as well as by count and which it shares with streams like it (shared-batches.ts). An unknown
 * Last-Event-ID (it may have been purged) starts at the oldest event kept: rather twice than never.
 */

import type { ContentSink } from '../../http/message.ts';
import type { EventStream } from '../../kernel/resource.ts';
import type { Known } from '../../model/principal.ts';
import { eventsTable, type LogPosition, type MaybePromise, type Store } from '../../store/store.ts';
import type { Batch, BatchReader, SharedBatches } from './shared-batches.ts';

type Sink = Parameters<EventStream['open']>[0];

export type StreamLimits = {
  /** Octets of events after which a batch takes no further one. */
  readonly batchBytesMax: number;
  /** A comment is sent after this much silence, so that dead connections are noticed. */
  readonly heartbeatMs: number;
};

const beginning: LogPosition = { rev: 0, id: '' };
/** A batch ends with the event that reaches its bound, and events may be long: so many bounds are asked for before it is read. */
const batchesReserved = 4;

export type StreamOptions = {
  /** What the client asked for, of what it may see. */
  readonly reader: BatchReader;
  readonly batches: SharedBatches;
  readonly turns: WriteTurns;
  /** Where the client stopped; undefined: only what comes from now on. */
  readonly lastEventId: string | undefined;
  /** Tells of the end of the credential that the stream was opened with; undefined: without one. */
  readonly onEnd: Known['onEnd'] | undefined;
  readonly limits: StreamLimits;
};

export async function openEventStream(store: Store, options: StreamOptions): Promise<EventStream> {
  const { lastEventId } = options;
  const from = lastEventId === undefined ? await store.head() : await positionOf(store, lastEventId);
  return { open: (sink) => run(store, options, from, sink) };
}

/** Goes on at once where the store answers at once, and fails where it cannot answer, for whatever reason. */
function whenRead(read: () => MaybePromise<Batch>, deliver: (batch: Batch) => void, fail: () => void): void {
  try {
    const batch = read();
    if (batch instanceof Promise) batch.then(deliver, fail);
    else deliver(batch);
  } catch {
    // The client resumes where it was.
    fail();
  }
}

async function positionOf(store: Store, id: string): Promise<LogPosition> {
  const row = await store.read(eventsTable, id);
  return row === undefined ? beginning : { rev: row.rev, id: row.id };
}

function run(store: Store, options: StreamOptions, from: LogPosition, sink: Sink): () => void {
  const { batches, limits, reader } = options;
  let position = from;
  let mode: 'reading' | 'writing' | 'waiting' = 'waiting';
  let grown = false;
  let open = true;
  let stopWatching: (() => void) | undefined;
  const writer = createPieceWriter(sink, options.turns);
  const stopListening = store.onAppend(() => {
    grown = true;
    if (mode === 'waiting') pump();
  });
  const heartbeat = setInterval(() => {
    if (mode !== 'writing') sink.write(':\n\n');
  }, limits.heartbeatMs);
  heartbeat.unref();

  /** What another stream has read, or is reading, needs no memory of its own. */
  function pump(): void {
    mode = 'reading';
    const isKnown = batches.known(reader, position) !== undefined;
    sink.memory.whenRoom(isKnown ? 0 : batchesReserved * limits.batchBytesMax, () => open && read());
  }

  function read(): void {
    grown = false;
    whenRead(() => batches.read(reader, position), deliver, fail);
  }

  function deliver({ octets, last, isFull }: Batch): void {
    if (!open) return;
    mode = 'writing';
    sink.memory.share(octets.length === 0 ? undefined : octets);
    if (last !== undefined) position = last;
    writer.write(octets, () => {
      sink.memory.share(undefined);
      mode = 'waiting';
      if (isFull || grown) setImmediate(() => open && mode === 'waiting' && pump());
    });
  }

  function close(): void {
    open = false;
    stopWatching?.();
    writer.close();
    stopListening();
    clearInterval(heartbeat);
  }

  /** The client comes back with what is good then, and resumes where it was. */
  function fail(): void {
    if (!open) return;
    close();
    sink.end();
  }

  // The comment makes the header section arrive at once, before the first event.
  sink.write(': comity events\n\n');
  // The credential may have ended while the stream was being opened: then this calls back at once.
  stopWatching = options.onEnd?.(fail);
  if (open) pump();

  return close;
}

/** Of what is written at once, and what a client must take within the bound for a stalled answer. */
const pieceBytesMax = 16 * 1024;

type PieceWriter = {
  /** Calls `done` when the client has taken all octets but the last piece. One call at a time. */
  write(octets: Uint8Array, done: () => void): void;
  /** Nothing more is written, and no `done` is called. */
  close(): void;
};

/**
 * Writes octets to a client that may be slow (§6): piece by piece, waiting wherever the client is slower than we. A batch
 * of events may be larger than what may wait for one client; in pieces it passes any link, and a client that takes little is told from
 * one that takes nothing. Pieces are views of the octets and no copies.
 */
function createPieceWriter(sink: ContentSink, turns: WriteTurns): PieceWriter {
  let open = true;
  /** Used once: a full socket may also empty of a comment that somebody else wrote. */
  let goOn: (() => void) | undefined;

  sink.onReady(() => {
    const next = goOn;
    goOn = undefined;
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
      if (sink.write(piece)) next();
      else goOn = next;
      return piece.length;
    });
  }

  return {
    write(octets, done) {
      if (octets.length === 0) done();
      else writeFrom(octets, 0, done);
    },
    close: () => {
      open = false;
    },
  };
}

const turnBytesMax = 2 * 1024 * 1024;
/** What a short write costs, in octets of a long one. */
const writeBytesMin = 16 * 1024;

/** Writes, and says how many octets. */
type Write = () => number;

/**
 * Turns in which event streams write: so much in one turn of the event loop and no more, whoever wants to, in the order in which
 * they came. What is handed to a socket costs when it is sent, after the call that wrote it, so octets are counted and not time: 2 MiB
 * took 1 to 3 ms on a two-core machine.
 */
export class WriteTurns {
  #waiting: Write[] = [];
  #isScheduled = false;

  /** Calls back in a later turn of the event loop, once. */
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
