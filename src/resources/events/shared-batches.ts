/**
 * Batches of the event log, read and encoded once for all streams that need the same (§6): streams of one audience with one query
 * that stand at one position. A thousand readers of one event then cost one read and hold one buffer
 * (decision 0055).
 *
 * A batch is kept until the log changes, by an append or by removal, within the bound of `eventBatches` in src/memory/bounds.ts; and as
 * long as a stream still writes it, by that stream. An empty batch is not kept: it says only that nothing was there.
 */
import { memoryBounds } from '../../memory/bounds.ts';
import { OctetCache } from '../../memory/octet-cache.ts';
import type { Filter } from '../../model/filter.ts';
import { isTailFull } from '../../store/page-of-rows.ts';
import type { LogPosition, MaybePromise, Store, TailEntry } from '../../store/store.ts';
import { whenKnown } from '../../store/when-known.ts';
import type { EventView } from './seen-event.ts';

export type Batch = {
  /** As the stream sends them; empty where nothing was there. */
  readonly octets: Uint8Array;
  /** Of the last event in it; undefined where it is empty. */
  readonly last: LogPosition | undefined;
  /** Whether events may remain beyond it. */
  readonly isFull: boolean;
};

/** What one stream reads of the log. */
export type BatchReader = {
  /** Equal for streams with the same filter and view: the audience and the text of the query. */
  readonly key: string;
  readonly filter: Filter;
  /** What of an event is shown; undefined: all. */
  readonly view: EventView | undefined;
  /** Whom the log is read for. */
  readonly party: string;
};

export type SharedBatches = {
  /** The batch after the position, where it needs no read of its own: it is kept, or another stream is reading it. */
  known(reader: BatchReader, after: LogPosition): MaybePromise<Batch> | undefined;
  /** @throws StoreUnavailable */
  read(reader: BatchReader, after: LogPosition): MaybePromise<Batch>;
};

export type SharedBatchesOptions = {
  readonly store: Pick<Store, 'tail' | 'onAppend'>;
  /** Events read from the log at once. */
  readonly batchEventsMax: number;
  /** Octets of events after which a batch takes no further one. */
  readonly batchBytesMax: number;
};

const nothing = new Uint8Array(0);

/** Listens to the store for as long as the store lives. */
export function createSharedBatches(options: SharedBatchesOptions): SharedBatches {
  const { store, batchEventsMax, batchBytesMax } = options;
  const kept = new OctetCache<Batch>({
    octetsMax: memoryBounds.eventBatches.octets,
    octetsOf: ({ octets }) => octets.length,
  });
  const underWay = new Map<string, Promise<Batch>>();
  let changes = 0;
  // Registered before those of the streams: whoever is woken by a change finds nothing of before.
  store.onAppend(() => {
    changes += 1;
    kept.clear();
    underWay.clear();
  });

  function known(reader: BatchReader, after: LogPosition): MaybePromise<Batch> | undefined {
    const key = keyOf(reader, after);
    return kept.get(key) ?? underWay.get(key);
  }

  return {
    known,
    read(reader, after) {
      const found = known(reader, after);
      if (found !== undefined) return found;
      const key = keyOf(reader, after);
      const changesBefore = changes;
      const tail = store.tail(after, reader.filter, batchEventsMax, {
        bytesMax: batchBytesMax,
        party: reader.party,
      });
      const batch = whenKnown(tail, (entries): Batch => {
        const isFull = isTailFull(entries, batchEventsMax, batchBytesMax);
        const made = { octets: encode(entries, reader.view), last: positionOf(entries.at(-1)), isFull };
        if (changesBefore === changes && entries.length > 0) kept.set(key, made);
        return made;
      });
      if (batch instanceof Promise) {
        underWay.set(key, batch);
        const forget = (): void => {
          if (underWay.get(key) === batch) underWay.delete(key);
        };
        batch.then(forget, forget);
      }
      return batch;
    },
  };
}

function keyOf({ key }: BatchReader, { rev, id }: LogPosition): string {
  return `${rev} ${id} ${key}`;
}

function positionOf(entry: TailEntry | undefined): LogPosition | undefined {
  return entry === undefined ? undefined : { rev: entry.rev, id: entry.id };
}

/** `id`, `event` and `data` of each (HTML, "Server-sent events"). Documents are JSON of one line. */
function encode(entries: readonly TailEntry[], view: EventView | undefined): Uint8Array {
  if (entries.length === 0) return nothing;
  const parts: Buffer[] = [];
  let text = '';
  for (const { id, type, doc: whole, owner } of entries) {
    const doc = view === undefined ? whole : view(type, whole, owner);
    text += `id: ${id}\nevent: ${type}\ndata: `;
    if (doc.length > joinedCharactersMax) {
      // To join it would copy it once more.
      parts.push(Buffer.from(text), Buffer.from(doc));
      text = '\n\n';
    } else text += `${doc}\n\n`;
  }
  if (text !== '') parts.push(Buffer.from(text));
  const [only] = parts;
  return parts.length === 1 && only !== undefined ? only : Buffer.concat(parts);
}

const joinedCharactersMax = 16 * 1024;
