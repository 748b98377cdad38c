/**
 * The readers of one audience, who see the same events in the same form (§6, resources/events): visibility and frame of
 * an event are computed once for all their sockets.
 *
 * A catch-up evaluates visibility in SQL, the hub evaluates it here on the event; test/realtime checks that both agree.
 */
import type { Collection } from '../model/collection.ts';
import { allOf, always, anyOf, type Filter, never } from '../model/filter.ts';
import { matches } from '../model/matches.ts';
import { audienceOf, type Principal } from '../model/principal.ts';
import type { EventView } from '../resources/events/seen-event.ts';
import { visibleEvents } from '../resources/events/visibility.ts';
import type { TailEntry } from '../store/store.ts';
import { eventFrame } from './frames.ts';
import type { LoggedEvent } from './logged-event.ts';

/** Collections whose rule is cached; fewer are declared. */
const rulesMax = 1024;

export class Readers {
  readonly audience: string;
  /** Selects the visible events, for the store. */
  readonly visible: Filter;
  /** Number of sockets that hold it; at 0 it is removed. */
  sockets = 0;
  readonly #view: EventView | undefined;
  readonly #rules = new Map<string, Filter>();
  #last: LoggedEvent | undefined;
  #lastFrame: Buffer | undefined;

  constructor(audience: string, visible: Filter, view: EventView | undefined) {
    this.audience = audience;
    this.visible = visible;
    this.#view = view;
  }

  /** Returns the frame that they get; undefined: they may not see the event. The last result is cached. */
  frameOf(event: LoggedEvent): Buffer | undefined {
    if (this.#last === event) return this.#lastFrame;
    this.#last = event;
    this.#lastFrame = this.#sees(event) ? this.#seen(event) : undefined;
    return this.#lastFrame;
  }

  /** Returns the frame of an event that the store found visible. */
  textOf({ type, doc, owner }: TailEntry): string {
    return eventFrame(this.#view === undefined ? doc : this.#view(type, doc, owner));
  }

  #sees(event: LoggedEvent): boolean {
    const rule = this.#ruleOf(event.entry.collection);
    return rule.op === 'always' || (rule.op !== 'never' && matches(rule, event));
  }

  #seen(event: LoggedEvent): Buffer {
    if (this.#view === undefined) return event.frame;
    const { type, doc, owner } = event.entry;
    const seen = this.#view(type, doc, owner);
    return seen === doc ? event.frame : Buffer.from(eventFrame(seen));
  }

  #ruleOf(collection: string): Filter {
    let rule = this.#rules.get(collection);
    if (rule === undefined) {
      if (this.#rules.size >= rulesMax) this.#rules.clear();
      rule = within(this.visible, collection);
      this.#rules.set(collection, rule);
    }
    return rule;
  }
}

export type ReadersOptions = {
  readonly collections: readonly Collection[];
  /** The view of events for a principal; undefined: whole events. */
  readonly views: (principal: Principal) => EventView | undefined;
};

export type ReadersByAudience = {
  /** Held until `release`. */
  hold(principal: Principal): Readers;
  release(readers: Readers): void;
};

export function createReaders({ collections, views }: ReadersOptions): ReadersByAudience {
  const held = new Map<string, Readers>();
  return {
    hold(principal) {
      const audience = audienceOf(principal);
      let readers = held.get(audience);
      if (readers === undefined) {
        readers = new Readers(audience, visibleEvents(collections, principal), views(principal));
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
      if (filter.field.column !== 'collection') return filter;
      return filter.value === collection ? always : never;
    default:
      return filter;
  }
}
