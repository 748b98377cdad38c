/**
 * Documents that leave what a reader may see (§6.10): an update after which the reader may not read the document, and before which it
 * could. Streams say `left` instead of the event. Both states are judged by the rules of now: the one before is kept with the event.
 *
 * A stream asks the store for both kinds of events, and distinguishes them here, by the same filter that the store evaluates.
 */
import { valueAt } from '../../http/syntax/json-members.ts';
import { permission, visibleTo } from '../../model/access.ts';
import type { Collection } from '../../model/collection.ts';
import { eventType } from '../../model/event.ts';
import { type Field, ownerField } from '../../model/field.ts';
import { allOf, anyOf, type Filter, never } from '../../model/filter.ts';
import { type Matchable, matches } from '../../model/matches.ts';
import { isAdministrator, type Principal } from '../../model/principal.ts';
import type { RelatedRows } from '../../store/related-rows.ts';
import type { TailEntry } from '../../store/store.ts';
import { hasFormer, inFormer, ofType } from './event-filters.ts';
import { type ParentRules, parentRulesOf } from './parent-rules.ts';
import { visibleEvents } from './visibility.ts';

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
  const member = (name: string): Field => {
    const field = collection.fields.get(name);
    if (field === undefined) throw new Error(`the rule of ${collection.name} names an unknown field ${name}`);
    return field;
  };
  return allOf([
    ofType(eventType(collection.name, 'updated')),
    hasFormer,
    inFormer(visibleTo(rule, principal, ownerField, member)),
  ]);
}

/** True for an event of the reach that the principal may not read: its document has left. */
export function hasLeft({ visible, formerly }: Reach, event: Matchable): boolean {
  return formerly.op !== 'never' && !matches(visible, event);
}

/** What a stream sends in place of the event. */
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
export function matchableEvent(entry: TailEntry, related: RelatedRows['find']): Matchable {
  return { value: (field) => valueOfEvent(entry, field), search: null, related };
}
