/**
 * The event stream (§6; HTML, server-sent events): `id`, `event` and `data` per event, in log order, from
 * Last-Event-ID or from now on.
 *
 * A stream is in one of three modes: `reading` a batch from the log, as soon as there is memory for one; `writing` it to a
 * client, which may be slow and is then waited for; or `waiting` for the log to grow. It never holds more than one batch, which
 * ends by octets as well as by count and which it shares with streams like it (shared-batches.ts). An unknown
 * Last-Event-ID (it may have been purged) starts at the oldest event kept: rather twice than never.
 */
import type { Known } from '../../model/credential.ts';
import type { LogPosition, MaybePromise, Store } from '../../store/store.ts';
import { eventsTable } from '../../store/store.ts';
import type { EventStream } from '../resource.ts';
import { createPieceWriter } from './piece-writer.ts';
import type { Batch, BatchReader, SharedBatches } from './shared-batches.ts';
import type { WriteTurns } from './write-turns.ts';

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
