/**
 * Batches of the event log, read and encoded once for all streams, and all readers of the feed, of one audience with the same query and
 * position (§6). A thousand readers of one event then cost one read and hold one buffer (decision 0055).
 *
 * A batch is cached until the log changes, by an append or a removal, within the bound of `eventBatches` in
 * src/memory/bounds.ts; a stream that still writes it keeps it longer.
 */
import { memoryBounds } from '../../memory/bounds.ts';
import { OctetCache } from '../../memory/octet-cache.ts';
import { allOf, always, anyOf, type Filter, isRelated } from '../../model/filter.ts';
import { matches } from '../../model/matches.ts';
import { type FollowedLog, readLog } from '../../store/follow-log.ts';
import type { LogPosition, MaybePromise, Store, TailEntry } from '../../store/store.ts';
import { whenKnown } from '../../store/store.ts';
import { type ParentRule, parentEvents, typeOfChildren, wantedChildren } from './child-messages.ts';
import { type Judge, leftText, type Reach, type Told, told, valueOfEvent } from './disclosure.ts';
import type { LooksStore } from './parent-looks.ts';
import { type LogView, type TaggedEvent, taggedEvent, type Withholds } from './seen-event.ts';

export type Batch = {
  /** As sent in the stream, or the items of a page of the feed; empty if the reader gets nothing. */
  readonly octets: Uint8Array;
  /** The position up to which the log was read. */
  readonly to: LogPosition;
  /** More events may follow. */
  readonly isFull: boolean;
};

/** A view of the log, of a stream or of the feed. */
export type BatchReader = {
  /** Equal for readers with the same filter and view: the audience and the text of the query. */
  readonly key: string;
  /** For the feed: the number of events that a page has at most. Absent: the batch is a piece of a stream. */
  readonly page?: { readonly limit: number } | undefined;
  /** The text of an event as the query selects its members; absent: the whole event. */
  readonly shown?: (event: TaggedEvent) => string;
  readonly filter: Filter;
  readonly view: LogView;
  /** Which events of the filter its principal may read: of others the stream says that their document left. */
  readonly reach: Reach;
  /** The filter of the query; absent: all events. */
  readonly requested?: Filter;
  /** Finds, among events that the reader may have missed, those whose text it may no longer read; undefined: none, or they are read as they happen. */
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

type LogStore = LooksStore & FollowedLog & Pick<Store, 'onAppend'>;

/** A batch ends with the event that reaches one of them. */
export type BatchBounds = { readonly batchEventsMax: number; readonly batchBytesMax: number };

const nothing = new Uint8Array(0);

/** Listens to the store for as long as the store lives. */
export function createSharedBatches(
  store: LogStore,
  { batchEventsMax, batchBytesMax }: BatchBounds,
): SharedBatches {
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
      const { filter, party, page } = reader;
      const limit = page?.limit ?? batchEventsMax;
      const log = readLog(store, after, { filter, limit, bytesMax: batchBytesMax, party });
      const batch = whenKnown(log, ({ entries, to, isFull }) =>
        whenKnown(told(store, judgeOf(reader), entries), (tellings): Batch => {
          const encode = page === undefined ? encodeStream : encodePage;
          const made = { octets: encode(entries, reader, tellings), to, isFull };
          // Rows of other tables change without an event too.
          const isLasting = changesBefore === changes && !isRelated(reader.filter);
          if (isLasting) kept.set(key, made);
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

/** One of the messages that the reader gets for an event. */
type Message = {
  /** The type of the event, `left` or `entered`. */
  readonly name: string;
  readonly text: string;
};

function messagesOf(
  entry: TailEntry,
  { view, shown = whole }: BatchReader,
  { telling, children }: Told,
): readonly Message[] {
  const messages: Message[] = children.map(({ kind, text }) => ({ name: kind, text }));
  if (telling === 'nothing') return messages;
  if (telling === 'left') return [...messages, { name: 'left', text: leftText(entry) }];
  const text = shown(taggedEvent(view, entry, telling === 'withheld'));
  messages.push({ name: entry.type, text });
  return messages;
}

const whole = ({ doc }: TaggedEvent): string => doc;

type Encode = (entries: readonly TailEntry[], reader: BatchReader, tellings: readonly Told[]) => Uint8Array;

/**
 * Writes `id`, `event` and `data` of each event (HTML, "Server-sent events"). Documents are JSON without line breaks.
 */
const encodeStream: Encode = (entries, reader, tellings) => {
  const octets = new Octets();
  for (const [at, entry] of entries.entries()) {
    const messages = messagesOf(entry, reader, tellings[at] ?? unknown);
    for (const [index, { name, text }] of messages.entries()) {
      // A client resumes after an id, so only the last message about an event has it.
      if (index === messages.length - 1) octets.add(`id: ${entry.id}\n`);
      octets.add(`event: ${name}\ndata: `);
      octets.add(text);
      octets.add('\n\n');
    }
  }
  return octets.joined();
};

/** Writes the items of a page of the feed: the data of the same messages, separated by commas. */
const encodePage: Encode = (entries, reader, tellings) => {
  const octets = new Octets();
  let separator = '';
  for (const [at, entry] of entries.entries()) {
    for (const { text } of messagesOf(entry, reader, tellings[at] ?? unknown)) {
      octets.add(separator);
      octets.add(text);
      separator = ',';
    }
  }
  return octets.joined();
};

/** Joins texts as UTF-8. */
class Octets {
  readonly #parts: Buffer[] = [];
  #text = '';

  add(text: string): void {
    if (text.length <= joinedCharactersMax) {
      this.#text += text;
      return;
    }
    // Joining it to the others would copy it once more.
    this.#parts.push(Buffer.from(this.#text), Buffer.from(text));
    this.#text = '';
  }

  joined(): Uint8Array {
    if (this.#text !== '') this.#parts.push(Buffer.from(this.#text));
    const [only] = this.#parts;
    if (only === undefined) return nothing;
    return this.#parts.length === 1 ? only : Buffer.concat(this.#parts);
  }
}

const unknown: Told = { telling: 'nothing', children: [] };

const joinedCharactersMax = 16 * 1024;
