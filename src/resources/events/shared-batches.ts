/**
 * Batches of the event log, read and encoded once for all streams of one audience with the same query and position
 * (§6). A thousand readers of one event then cost one read and hold one buffer (decision 0055).
 *
 * A batch is cached until the log changes, by an append or a removal, within the bound of `eventBatches` in
 * src/memory/bounds.ts; a stream that still writes it keeps it longer. Empty batches are not cached.
 */
import { memoryBounds } from '../../memory/bounds.ts';
import { OctetCache } from '../../memory/octet-cache.ts';
import { allOf, always, anyOf, type Filter, isRelated } from '../../model/filter.ts';
import { matches } from '../../model/matches.ts';
import { isTailFull } from '../../store/page-of-rows.ts';
import type { LogPosition, MaybePromise, Store, TailEntry } from '../../store/store.ts';
import { whenKnown } from '../../store/when-known.ts';
import { wantedChildren } from './child-messages.ts';
import { leftText, type Reach, valueOfEvent } from './leaving.ts';
import type { LooksStore } from './parent-looks.ts';
import { type ParentRule, parentEvents, typeOfChildren } from './parent-rules.ts';
import { type LogView, seenEvent } from './seen-event.ts';
import { type Judge, type Told, told } from './telling.ts';
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
  /** The filter of the query; absent: all events. */
  readonly requested?: Filter;
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
  readonly store: LooksStore & Pick<Store, 'onAppend'>;
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
        whenKnown(told(store, judgeOf(reader), entries), (tellings): Batch => {
          const isFull = isTailFull(entries, batchEventsMax, batchBytesMax);
          const octets = encode(entries, reader, tellings);
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

/** Selects, for a stream, the events of the principal's reach that were requested, and those of parents of documents that were. */
export function streamFilter({ both, parents }: Reach, requested: Filter): Filter {
  const rules = [...(parents?.values() ?? [])].flat();
  const isWanted = (rule: ParentRule): boolean => mayWant(requested, typeOfChildren(rule));
  return anyOf([allOf([both, requested]), parentEvents(rules.filter(isWanted))]);
}

/** False if no event of the type passes the filter. */
function mayWant(filter: Filter, type: string): boolean {
  if (filter.op === 'and') return filter.filters.every((part) => mayWant(part, type));
  if (filter.op === 'or') return filter.filters.some((part) => mayWant(part, type));
  const isOfType = 'field' in filter && filter.field.column === 'type';
  return !isOfType || matches(filter, { search: null, value: () => type });
}

function judgeOf(reader: BatchReader): Judge {
  const { requested = always } = reader;
  return {
    ...reader,
    wanted: (rule, entry) => wantedChildren(requested, rule, (field) => valueOfEvent(entry, field)),
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
function encode(entries: readonly TailEntry[], { view }: BatchReader, tellings: readonly Told[]): Uint8Array {
  if (entries.length === 0) return nothing;
  const parts: Buffer[] = [];
  let text = '';
  for (const [at, entry] of entries.entries()) {
    const { id, type, owner } = entry;
    const { telling, children } = tellings[at] ?? unknown;
    // A client resumes after an id, so only the last message about an event has it.
    for (const [index, message] of children.entries()) {
      const isLast = telling === 'nothing' && index === children.length - 1;
      text += `${isLast ? `id: ${id}\n` : ''}event: ${message.kind}\ndata: ${message.text}\n\n`;
    }
    if (telling === 'nothing') continue;
    if (telling === 'left') {
      text += `id: ${id}\nevent: left\ndata: ${leftText(entry)}\n\n`;
      continue;
    }
    const whole = telling === 'withheld' ? withoutText(entry.doc) : entry.doc;
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

const unknown: Told = { telling: 'nothing', children: [] };

const joinedCharactersMax = 16 * 1024;
