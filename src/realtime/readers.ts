/**
 * The readers of one audience, who see the same events in the same form (§6, resources/events): visibility and frame of
 * an event are computed once for all their sockets.
 *
 * A catch-up evaluates visibility in SQL, the hub evaluates it here on the event; test/realtime checks that both agree.
 */

import { type Cause, type CauseShown, causeOf, withCauseShown } from '../model/actor.ts';
import type { Collection } from '../model/collection.ts';
import { eventType } from '../model/event.ts';
import type { Field } from '../model/field.ts';
import { allOf, always, anyOf, type Filter, isRelated, never } from '../model/filter.ts';
import { type Matchable, matches } from '../model/matches.ts';
import { audienceOf, type Principal } from '../model/principal.ts';
import { childMessages, parentEvents, typeOfChildren } from '../resources/events/child-messages.ts';
import {
  leftText,
  type Reach,
  reachOf,
  type Told,
  told,
  valueOfEvent,
} from '../resources/events/disclosure.ts';
import type { LooksStore, ParentLooks } from '../resources/events/parent-looks.ts';
import {
  type LogView,
  taggedEvent,
  tagText,
  type Withholds,
  type WithholdsFrom,
} from '../resources/events/seen-event.ts';
import type { RelatedRows } from '../store/related-rows.ts';
import type { LogPosition, MaybePromise, TailEntry } from '../store/store.ts';
import { eventFrame } from './subprotocol.ts';

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
  #lastChildren: ChildFrames | undefined;
  #lastFrame: Buffer | undefined;

  constructor(audience: string, { reach, view, withholds }: ReadersParts) {
    this.audience = audience;
    this.#reach = reach;
    this.#view = view;
    this.#withholds = withholds;
  }

  /**
   * Selects, for the store, the events that they get, or of which they get that a document left.
   * @param ofTypes those of the types that they ask for
   * @param isAsked for one of these types
   */
  reach(ofTypes: Filter, isAsked: (type: string) => boolean): Filter {
    const rules = [...(this.#reach.parents?.values() ?? [])]
      .flat()
      .filter((rule) => isAsked(typeOfChildren(rule)));
    return anyOf([allOf([this.#reach.both, ofTypes]), parentEvents(rules)]);
  }

  /**
   * Returns the frames about documents that refer to that of the event, each with the type by which it is asked for. The last result that
   * lacked nothing is cached: the hub asks again while others lack something.
   */
  childFrames(event: LoggedEvent, looks: ParentLooks): readonly ChildFrame[] {
    const { entry, value } = event;
    const rules = this.#reach.parents?.get(entry.collection);
    if (rules === undefined) return noFrames;
    const last = this.#lastChildren;
    if (last?.event === event && last.token === looks.token) return last.frames;
    const { lacked } = looks;
    const messages = childMessages(rules, { entry, value }, looks, () => always);
    const frames =
      messages.length === 0
        ? noFrames
        : messages.map(({ type, text }) => ({ type, frame: Buffer.from(text) }));
    const isDecided = looks.lacked === lacked && !rules.some(({ looksFurther }) => looksFurther);
    if (isDecided) this.#lastChildren = { event, token: looks.token, frames };
    return frames;
  }

  /**
   * Returns the frame that they get; undefined: they may not see the event. The last result is cached, unless rows of other tables decide.
   * @param related finds those rows, which `look` has found and their owner loaded
   * @param isReadable false: its document became unreadable to them with a later event
   */
  frameOf(event: LoggedEvent, related: Related, isReadable = true): Buffer | undefined {
    if (!isReadable && this.sees(event, related)) return Buffer.from(this.textOf(event.entry, 'withheld'));
    if (this.#last === event) return this.#lastFrame;
    const saw = () => holds(this.#rulesOf(event).formerly, event, related);
    const frame = this.sees(event, related) ? this.#seen(event) : saw() ? event.left : undefined;
    if (this.#rulesOf(event).areRelated) return frame;
    this.#last = event;
    this.#lastFrame = frame;
    return frame;
  }

  /** Finds the rows of other tables that decide what they get of the event. */
  look(event: LoggedEvent, related: Related): void {
    const { areRelated, visible, formerly } = this.#rulesOf(event);
    if (areRelated && !holds(visible, event, related)) holds(formerly, event, related);
  }

  /** Returns the frame of an event within their reach. */
  textOf(entry: TailEntry, telling: Exclude<Told['telling'], 'nothing'>): string {
    if (telling === 'left') return leftText(entry);
    const { doc, text } = taggedEvent(this.#view, entry, telling === 'withheld');
    return eventFrame(doc, text);
  }

  /** Decides how much of each event within their reach they get. */
  told(store: LooksStore, entries: readonly TailEntry[]): MaybePromise<readonly Told[]> {
    return told(store, { reach: this.#reach, withholds: this.#withholds }, entries);
  }

  sees(event: LoggedEvent, related: Related): boolean {
    return holds(this.#rulesOf(event).visible, event, related);
  }

  #seen(event: LoggedEvent): Buffer {
    const { hides, shows, tagOf } = this.#view;
    const { type, owner, rev } = event.entry;
    const whole = tagOf(type) && tagText(rev, '');
    const { doc, frame } = event.shown(event.cause === undefined ? 'whole' : shows(type, event.cause), whole);
    const seen = hides?.(type, doc, owner);
    if (seen === undefined || (seen.doc === doc && seen.mark === '')) return frame;
    const tag = seen.mark === undefined ? undefined : whole && tagText(rev, seen.mark);
    return Buffer.from(eventFrame(seen.doc, tag));
  }

  #rulesOf({ entry: { collection } }: LoggedEvent): Rules {
    let rules = this.#rules.get(collection);
    if (rules === undefined) {
      if (this.#rules.size >= rulesMax) this.#rules.clear();
      const visible = within(this.#reach.visible, collection);
      const formerly = within(this.#reach.formerly, collection);
      rules = { visible, formerly, areRelated: isRelated(visible) || isRelated(formerly) };
      this.#rules.set(collection, rules);
    }
    return rules;
  }
}

/** A frame about documents that refer to another. */
export type ChildFrame = { readonly type: string; readonly frame: Buffer };

type ChildFrames = {
  readonly event: LoggedEvent;
  /** Names the state of the looks by which the frames were decided. */
  readonly token: object;
  readonly frames: readonly ChildFrame[];
};

const noFrames: readonly ChildFrame[] = [];

type Rules = Pick<Reach, 'visible' | 'formerly'> & {
  /** Rows of other tables decide. */
  readonly areRelated: boolean;
};

/** Finds a row that a reference names, as it is now. */
type Related = RelatedRows['find'];

type ReadersParts = {
  readonly reach: Reach;
  readonly view: LogView;
  readonly withholds: Withholds | undefined;
};

function holds(rule: Filter, event: LoggedEvent, related: Related): boolean {
  if (rule.op === 'always' || rule.op === 'never') return rule.op === 'always';
  return matches(rule, { search: null, related, value: (field) => event.value(field) });
}

type ReadersByAudience = {
  /** Held until `release`. */
  hold(principal: Principal): Readers;
  release(readers: Readers): void;
};

/** @param withholds absent: nothing is withheld from those who missed events */
export function createReaders(
  collections: readonly Collection[],
  views: (principal: Principal) => LogView,
  withholds?: WithholdsFrom,
): ReadersByAudience {
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

// An event of the log on its way to many sockets: each member that a rule reads is parsed once, and one frame serves every socket that
// may see the whole event. Positions in the log are ordered by revision, then by id as stores compare it: by code point.

export class LoggedEvent implements Matchable {
  readonly entry: TailEntry;
  readonly position: LogPosition;
  readonly search = null;
  readonly #values = new Map<string, unknown>();
  readonly #shown = new Map<CauseShown, Shown>();
  #left: Buffer | undefined;
  #cause: Cause | undefined | null = null;

  constructor(entry: TailEntry) {
    this.entry = entry;
    this.position = { rev: entry.rev, id: entry.id };
  }

  readonly value = (field: Field): unknown =>
    field.column === undefined ? this.#valueAt(field) : valueOfEvent(this.entry, field);

  /** Caches members, since the rules of many readers use the same few. */
  #valueAt(field: Field): unknown {
    const key = `${field.within ?? ''}\0${field.path.join('\0')}`;
    if (!this.#values.has(key)) this.#values.set(key, valueOfEvent(this.entry, field));
    return this.#values.get(key);
  }

  /** The frame for those whom the document has left. */
  get left(): Buffer {
    this.#left ??= Buffer.from(leftText(this.entry));
    return this.#left;
  }

  /** Parsed once for all readers. */
  get cause(): Cause | undefined {
    if (this.#cause === null) this.#cause = causeOf(this.entry.doc);
    return this.#cause;
  }

  /** The event with so much of its cause, made once for all readers to whom it shows that. @param tag of its document, as JSON */
  shown(much: CauseShown, tag: string | undefined): Shown {
    let shown = this.#shown.get(much);
    if (shown === undefined) {
      const { cause } = this;
      const doc = cause === undefined ? this.entry.doc : withCauseShown(this.entry.doc, cause, much);
      shown = { doc, frame: Buffer.from(eventFrame(doc, tag)) };
      this.#shown.set(much, shown);
    }
    return shown;
  }
}

type Shown = {
  readonly doc: string;
  /** As UTF-8. */
  readonly frame: Buffer;
};

/** Before every event. */
export const beginning: LogPosition = { rev: 0, id: '' };
