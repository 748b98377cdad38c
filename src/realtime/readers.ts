/**
 * Everybody of one audience, for whom the same events are visible and look the same (§6, resources/events): whether an event is, and its
 * frame, is found once for all their sockets.
 *
 * What the store answers by SQL in a catch-up is evaluated here on the event itself; test/realtime holds both to the same.
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

/** Names of collections for which the rule is kept; declared ones are fewer. */
const rulesMax = 1024;

export class Readers {
  readonly audience: string;
  /** What they may see, for the store. */
  readonly visible: Filter;
  /** Sockets that hold on to this; with none it is forgotten. */
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

  /** What they are sent of the event; undefined: it is none of theirs. Asked again for the same event it costs nothing. */
  frameOf(event: LoggedEvent): Buffer | undefined {
    if (this.#last === event) return this.#lastFrame;
    this.#last = event;
    this.#lastFrame = this.#sees(event) ? this.#seen(event) : undefined;
    return this.#lastFrame;
  }

  /** The same of an event that the store found visible. */
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
  /** What of an event a principal sees; undefined: all. */
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

/** The filter for events of one collection, in which most rules are settled without a look at the event. */
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
