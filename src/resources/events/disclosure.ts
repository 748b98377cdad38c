/**
 * Discloses each event to the reader of a stream as far as it may see it (§6.10): the whole event, the event without the text of its
 * resource, that the document left what the reader may see, or nothing. A document leaves by an update after which the
 * reader may not read it, and before which it could; streams then say `left`. Both states are judged by the rules of now.
 *
 * A stream asks the store for both kinds of events, and distinguishes them here, by the same filter that the store evaluates.
 */
import { valueAt } from '../../http/syntax/json-members.ts';
import { permission } from '../../model/access.ts';
import { type Collection, visibleWhere } from '../../model/collection.ts';
import { eventType } from '../../model/event.ts';
import type { Field } from '../../model/field.ts';
import { allOf, always, anyOf, type Filter, never } from '../../model/filter.ts';
import { type Matchable, matches } from '../../model/matches.ts';
import { isAdministrator, type Principal } from '../../model/principal.ts';
import { judged, type RelatedRows } from '../../store/related-rows.ts';
import type { MaybePromise, TailEntry } from '../../store/store.ts';
import { whenKnown } from '../../store/store.ts';
import {
  type ChildMessage,
  childMessages,
  type ParentRule,
  type ParentRules,
  parentRulesOf,
} from './child-messages.ts';
import { type LooksStore, ParentLooks } from './parent-looks.ts';
import type { Withholds } from './seen-event.ts';
import { hasFormer, inFormer, ofType, visibleEvents } from './visible-events.ts';

/** The events that a stream is about, for one principal. */
export type Reach = {
  /** Events that it may read. */
  readonly visible: Filter;
  /** Updates before which it could read the document; `never` if no rule depends on the document. */
  readonly formerly: Filter;
  /** Both. */
  readonly both: Filter;
  /** Its rules over documents of other collections, whose changes may hide or show documents without an event of those. Absent: none. */
  readonly parents?: ParentRules;
};

export function reachOf(collections: Iterable<Collection>, principal: Principal): Reach {
  const all = [...collections];
  const visible = visibleEvents(all, principal);
  const formerly = anyOf(all.map((collection) => formerlyIn(collection, principal)));
  return { visible, formerly, both: anyOf([visible, formerly]), parents: parentRulesOf(all, principal) };
}

function formerlyIn(collection: Collection, principal: Principal): Filter {
  const rule = collection.access.read;
  if (isAdministrator(principal) || permission(rule, 'read', principal) !== 'depends') return never;
  return allOf([
    ofType(eventType(collection.name, 'updated')),
    hasFormer,
    inFormer(visibleWhere(collection, rule, principal)),
  ]);
}

/** True for an event of the reach that the principal may not read: its document has left. */
function hasLeft({ visible, formerly }: Reach, event: Matchable): boolean {
  return formerly.op !== 'never' && !matches(visible, event);
}

/** The content that a stream sends in place of the event. */
export function leftText({ document, collection }: Pick<TailEntry, 'document' | 'collection'>): string {
  return JSON.stringify({ left: { id: document, collection } });
}

/** The members of an event that filters read. */
export function valueOfEvent(entry: TailEntry, { column, path, within }: Field): unknown {
  if (within === 'former') return entry.former === null ? undefined : valueAt(entry.former, path);
  switch (column) {
    case 'id':
    case 'type':
    case 'collection':
    case 'owner':
    case 'rev':
      return entry[column];
    default:
      return valueAt(entry.doc, path);
  }
}

/** @param related finds the rows that references of its resource name */
function matchableEvent(entry: TailEntry, related: RelatedRows['find']): Matchable {
  return { value: (field) => valueOfEvent(entry, field), search: null, related };
}

// Rules over references are judged by the rows that they name now, which are read together.

export type Told = {
  readonly telling: 'whole' | 'withheld' | 'left' | 'nothing';
  /** About documents that refer to that of the event. */
  readonly children: readonly ChildMessage[];
};

export type Judge = {
  readonly reach: Reach;
  /** Undefined: no text is withheld. */
  readonly withholds?: Withholds | undefined;
  /** The filter of the reader's query. Absent: all events. */
  readonly requested?: Filter | undefined;
  /** The children that the reader asks for, as a condition on them, for the event of their parent. Absent: all. */
  readonly wanted?: (rule: ParentRule, entry: TailEntry) => Filter;
};

type Judgement = Omit<Told, 'telling'> & { readonly telling: Exclude<Told['telling'], 'withheld'> };

const none: readonly boolean[] = [];
const noChildren: readonly ChildMessage[] = [];
const whole: Judgement = { telling: 'whole', children: noChildren };

/** In the order of the events, which pass `both` of the reach and what was requested, or are of parents. */
export function told(
  store: LooksStore,
  judge: Judge,
  entries: readonly TailEntry[],
): MaybePromise<readonly Told[]> {
  const { withholds } = judge;
  const withheld = withholds === undefined || entries.length === 0 ? none : withholds(entries);
  return whenKnown(withheld, (withheldAt) =>
    whenKnown(judgements(store, judge, entries), (judgedAt) =>
      entries.map((_, at) => {
        const judgement = judgedAt[at] ?? whole;
        const isWithheld = judgement.telling === 'whole' && withheldAt[at] === true;
        return isWithheld ? { ...judgement, telling: 'withheld' } : judgement;
      }),
    ),
  );
}

function judgements(
  store: LooksStore,
  { reach, requested = always, wanted = () => always }: Judge,
  entries: readonly TailEntry[],
): MaybePromise<readonly Judgement[]> {
  const { parents, visible, formerly } = reach;
  if (formerly.op === 'never' && (parents?.size ?? 0) === 0) return [];
  const looks = new ParentLooks(store);
  const judgementOf = (entry: TailEntry): Judgement => {
    const event = matchableEvent(entry, looks.rows.find);
    const rules = parents?.get(entry.collection);
    if (rules === undefined) return hasLeft(reach, event) ? left : whole;
    const parent = { entry, value: (field: Parameters<typeof event.value>[0]) => valueOfEvent(entry, field) };
    const children = childMessages(rules, parent, looks, (rule) => wanted(rule, entry));
    if (!matches(requested, event)) return { telling: 'nothing', children };
    if (matches(visible, event)) return { telling: 'whole', children };
    return { telling: matches(formerly, event) ? 'left' : 'nothing', children };
  };
  return judged(looks, () => entries.map(judgementOf));
}

const left: Judgement = { telling: 'left', children: noChildren };
