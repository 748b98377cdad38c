/**
 * Batches of the event log, read and encoded once for all streams of one audience with the same query and position
 * (§6). A thousand readers of one event then cost one read and hold one buffer (decision 0055).
 *
 * A batch is cached until the log changes, by an append or a removal, within the bound of `eventBatches` in
 * src/memory/bounds.ts; a stream that still writes it keeps it longer. Empty batches are not cached.
 */
import { memoryBounds } from '../../memory/bounds.ts';
import { OctetCache } from '../../memory/octet-cache.ts';
import { type Filter, isRelated } from '../../model/filter.ts';
import { isTailFull } from '../../store/page-of-rows.ts';
import type { LogPosition, MaybePromise, Store, TailEntry } from '../../store/store.ts';
import { whenKnown } from '../../store/when-known.ts';
import { leftText, type Reach } from './leaving.ts';
import { type LogView, seenEvent } from './seen-event.ts';
import { type Telling, told } from './telling.ts';
import { type Withholds, withoutText } from './withheld-text.ts';

export type Batch = {
  /** As sent in the stream; empty if there are no events. */
  readonly octets: Uint8Array;
  /** The position of the last event; undefined for an empty batch. */
  readonly last: LogPosition | undefined;
  /** More events may follow. */
  readonly isFull: boolean;
};

/** A stream's view of the log. */
export type BatchReader = {
  /** Equal for streams with the same filter and view: the audience and the text of the query. */
  readonly key: string;
  readonly filter: Filter;
  readonly view: LogView;
  /** Which events of the filter its principal may read: of others the stream says that their document left. */
  readonly reach: Reach;
  /** Of events that it may have missed, those whose text it may no longer read; undefined: none, or they are read as they happen. */
  readonly withholds?: Withholds | undefined;
  /** The party for which the log is read. */
  readonly party: string;
};

export type SharedBatches = {
  /** Returns the batch after the position if it is cached or another stream is reading it. */
  known(reader: BatchReader, after: LogPosition): MaybePromise<Batch> | undefined;
  /** @throws StoreUnavailable */
  read(reader: BatchReader, after: LogPosition): MaybePromise<Batch>;
};

export type SharedBatchesOptions = {
  readonly store: Pick<Store, 'tail' | 'onAppend' | 'read'>;
  /** Events of one batch. */
  readonly batchEventsMax: number;
  /** A batch ends with the event that reaches this many octets. */
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
  // Registered before the listeners of the streams, so a stream that wakes up finds no batch from before the change.
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
      const batch = whenKnown(tail, (entries) =>
        whenKnown(told(store, reader, entries), (telling): Batch => {
          const isFull = isTailFull(entries, batchEventsMax, batchBytesMax);
          const octets = encode(entries, reader, telling);
          const made = { octets, last: positionOf(entries.at(-1)), isFull };
          // Rows of other tables change without an event too.
          const isLasting = changesBefore === changes && !isRelated(reader.filter);
          if (isLasting && entries.length > 0) kept.set(key, made);
          return made;
        }),
      );
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

function keyOf({ key, withholds }: BatchReader, { rev, id }: LogPosition): string {
  return `${rev} ${id} ${withholds === undefined ? '' : 'withheld '}${key}`;
}

function positionOf(entry: TailEntry | undefined): LogPosition | undefined {
  return entry === undefined ? undefined : { rev: entry.rev, id: entry.id };
}

/**
 * Writes `id`, `event` and `data` of each event (HTML, "Server-sent events"). Documents are JSON without line breaks.
 */
function encode(
  entries: readonly TailEntry[],
  { view }: BatchReader,
  telling: readonly Telling[],
): Uint8Array {
  if (entries.length === 0) return nothing;
  const parts: Buffer[] = [];
  let text = '';
  for (const [at, entry] of entries.entries()) {
    const { id, type, owner } = entry;
    if (telling[at] === 'left') {
      text += `id: ${id}\nevent: left\ndata: ${leftText(entry)}\n\n`;
      continue;
    }
    const whole = telling[at] === 'withheld' ? withoutText(entry.doc) : entry.doc;
    const doc = seenEvent(view, type, whole, owner);
    text += `id: ${id}\nevent: ${type}\ndata: `;
    if (doc.length > joinedCharactersMax) {
      // Joining it would copy it once more.
      parts.push(Buffer.from(text), Buffer.from(doc));
      text = '\n\n';
    } else text += `${doc}\n\n`;
  }
  if (text !== '') parts.push(Buffer.from(text));
  const [only] = parts;
  return parts.length === 1 && only !== undefined ? only : Buffer.concat(parts);
}

const joinedCharactersMax = 16 * 1024;
