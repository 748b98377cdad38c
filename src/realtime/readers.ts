/**
 * The readers of one audience, who see the same events in the same form (§6, resources/events): visibility and frame of
 * an event are computed once for all their sockets.
 *
 * A catch-up evaluates visibility in SQL, the hub evaluates it here on the event; test/realtime checks that both agree.
 */
import type { Collection } from '../model/collection.ts';
import { eventType } from '../model/event.ts';
import { allOf, always, anyOf, type Filter, never } from '../model/filter.ts';
import { matches } from '../model/matches.ts';
import { audienceOf, type Principal } from '../model/principal.ts';
import { hasLeft, leftText, matchableEvent, type Reach, reachOf } from '../resources/events/leaving.ts';
import { type LogView, seenEvent } from '../resources/events/seen-event.ts';
import { type Withholds, type WithholdsFrom, withoutText } from '../resources/events/withheld-text.ts';
import type { MaybePromise, TailEntry } from '../store/store.ts';
import { eventFrame } from './frames.ts';
import type { LoggedEvent } from './logged-event.ts';

/** Collections whose rule is cached; fewer are declared. */
const rulesMax = 1024;

export class Readers {
  readonly audience: string;
  readonly #reach: Reach;
  /** Number of sockets that hold it; at 0 it is removed. */
  sockets = 0;
  readonly #view: LogView;
  readonly #withholds: Withholds | undefined;
  readonly #rules = new Map<string, Rules>();
  #last: LoggedEvent | undefined;
  #lastFrame: Buffer | undefined;

  constructor(audience: string, { reach, view, withholds }: ReadersParts) {
    this.audience = audience;
    this.#reach = reach;
    this.#view = view;
    this.#withholds = withholds;
  }

  /** Selects the events that they get, or of which they get that the document left, for the store. */
  get reach(): Filter {
    return this.#reach.both;
  }

  /**
   * Returns the frame that they get; undefined: they may not see the event. The last result is cached.
   * @param isReadable false: its document became unreadable to them with a later event
   */
  frameOf(event: LoggedEvent, isReadable = true): Buffer | undefined {
    if (!isReadable && this.sees(event)) return Buffer.from(this.textOf(event.entry, true));
    if (this.#last === event) return this.#lastFrame;
    this.#last = event;
    this.#lastFrame = this.sees(event) ? this.#seen(event) : this.#saw(event) ? event.left : undefined;
    return this.#lastFrame;
  }

  /** Returns the frame of an event within their reach. */
  textOf(entry: TailEntry, isWithheld: boolean): string {
    if (hasLeft(this.#reach, matchableEvent(entry))) return leftText(entry);
    const { type, doc, owner } = entry;
    return eventFrame(seenEvent(this.#view, type, isWithheld ? withoutText(doc) : doc, owner));
  }

  /** Tells of each event if they may no longer read its text. */
  withheld(entries: readonly TailEntry[]): MaybePromise<readonly boolean[]> {
    return this.#withholds === undefined || entries.length === 0 ? none : this.#withholds(entries);
  }

  sees(event: LoggedEvent): boolean {
    return holds(this.#rulesOf(event.entry.collection).visible, event);
  }

  /** They could read the document before the event, which they may not read. */
  #saw(event: LoggedEvent): boolean {
    return holds(this.#rulesOf(event.entry.collection).formerly, event);
  }

  #seen(event: LoggedEvent): Buffer {
    const { hides, shows } = this.#view;
    const { type, owner } = event.entry;
    const { doc, frame } = event.shown(event.cause === undefined ? 'whole' : shows(type, event.cause));
    const seen = hides === undefined ? doc : hides(type, doc, owner);
    return seen === doc ? frame : Buffer.from(eventFrame(seen));
  }

  #rulesOf(collection: string): Rules {
    let rules = this.#rules.get(collection);
    if (rules === undefined) {
      if (this.#rules.size >= rulesMax) this.#rules.clear();
      const { visible, formerly } = this.#reach;
      rules = { visible: within(visible, collection), formerly: within(formerly, collection) };
      this.#rules.set(collection, rules);
    }
    return rules;
  }
}

type Rules = Pick<Reach, 'visible' | 'formerly'>;

type ReadersParts = {
  readonly reach: Reach;
  readonly view: LogView;
  readonly withholds: Withholds | undefined;
};

const none: readonly boolean[] = [];

function holds(rule: Filter, event: LoggedEvent): boolean {
  return rule.op === 'always' || (rule.op !== 'never' && matches(rule, event));
}

export type ReadersOptions = {
  readonly collections: readonly Collection[];
  readonly views: (principal: Principal) => LogView;
  /** Absent: nothing is withheld from those who missed events. */
  readonly withholds?: WithholdsFrom;
};

export type ReadersByAudience = {
  /** Held until `release`. */
  hold(principal: Principal): Readers;
  release(readers: Readers): void;
};

export function createReaders({ collections, views, withholds }: ReadersOptions): ReadersByAudience {
  const held = new Map<string, Readers>();
  return {
    hold(principal) {
      const audience = audienceOf(principal);
      let readers = held.get(audience);
      if (readers === undefined) {
        readers = new Readers(audience, {
          reach: reachOf(collections, principal),
          view: views(principal),
          withholds: withholds?.(principal),
        });
        held.set(audience, readers);
      }
      readers.sockets += 1;
      return readers;
    },
    release(readers) {
      readers.sockets -= 1;
      if (readers.sockets === 0) held.delete(readers.audience);
    },
  };
}

/** Simplifies the filter for events of one collection; most rules then need no look at the event. */
function within(filter: Filter, collection: string): Filter {
  switch (filter.op) {
    case 'and':
      return allOf(filter.filters.map((part) => within(part, collection)));
    case 'or':
      return anyOf(filter.filters.map((part) => within(part, collection)));
    case 'eq':
      if (filter.field.column === 'type' && filter.value !== eventType(collection, 'updated')) return never;
      if (filter.field.column !== 'collection') return filter;
      return filter.value === collection ? always : never;
    default:
      return filter;
  }
}
