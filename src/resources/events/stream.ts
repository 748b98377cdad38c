/**
 * The event stream (§6; HTML, server-sent events): `id`, `event` and `data` per event, in log order, from
 * Last-Event-ID or from now on.
 *
 * A stream is in one of three modes: `reading` a batch from the log; `writing` it to a client, which may be slow
 * and is then waited for; or `waiting` for the log to grow. It never holds more than one batch. An unknown
 * Last-Event-ID (it may have been purged) starts at the oldest event kept: rather twice than never.
 */
import type { Filter } from '../../model/filter.ts';
import type { LogPosition, MaybePromise, Store } from '../../store/store.ts';
import type { EventStream } from '../resource.ts';
import { eventsTable } from './visibility.ts';

type Sink = Parameters<EventStream['open']>[0];

export type StreamLimits = {
  /** Events read from the log at once. */
  readonly batchEventsMax: number;
  /** A comment is sent after this much silence, so that dead connections are noticed. */
  readonly heartbeatMs: number;
};

const beginning: LogPosition = { rev: 0, id: '' };

/** @param lastEventId where the client stopped; undefined: only what comes from now on */
export async function openEventStream(
  store: Store,
  filter: Filter,
  lastEventId: string | undefined,
  limits: StreamLimits,
): Promise<EventStream> {
  const from = lastEventId === undefined ? await store.head() : await positionOf(store, lastEventId);
  return { open: (sink) => run(store, filter, from, sink, limits) };
}

async function positionOf(store: Store, id: string): Promise<LogPosition> {
  const row = await store.read(eventsTable, id);
  return row === undefined ? beginning : { rev: row.rev, id: row.id };
}

function run(store: Store, filter: Filter, from: LogPosition, sink: Sink, limits: StreamLimits): () => void {
  let position = from;
  let mode: 'reading' | 'writing' | 'waiting' = 'waiting';
  let grown = false;
  let open = true;

  const stopListening = store.onAppend(() => {
    grown = true;
    if (mode === 'waiting') pump();
  });
  const heartbeat = setInterval(() => {
    if (mode === 'waiting') sink.write(':\n\n');
  }, limits.heartbeatMs);
  heartbeat.unref();

  function pump(): void {
    mode = 'reading';
    grown = false;
    const batch: MaybePromise<readonly { id: string; rev: number; type: string; doc: string }[]> = store.tail(
      position,
      filter,
      limits.batchEventsMax,
    );
    if (batch instanceof Promise) batch.then(deliver, fail);
    else deliver(batch);
  }

  function deliver(batch: readonly { id: string; rev: number; type: string; doc: string }[]): void {
    if (!open) return;
    mode = 'writing';
    let text = '';
    for (const event of batch) {
      text += `id: ${event.id}\nevent: ${event.type}\ndata: ${event.doc}\n\n`;
      position = { rev: event.rev, id: event.id };
    }
    const more = batch.length === limits.batchEventsMax || grown;
    const next = () => {
      if (!open) return;
      mode = 'waiting';
      if (more || grown) setImmediate(() => open && mode === 'waiting' && pump());
    };
    if (text === '' || sink.write(text)) next();
    else sink.onReady(next);
  }

  function fail(): void {
    if (open) sink.end();
  }

  // The comment makes the header section arrive at once, before the first event.
  sink.write(': comity events\n\n');
  pump();

  return () => {
    open = false;
    stopListening();
    clearInterval(heartbeat);
  };
}
