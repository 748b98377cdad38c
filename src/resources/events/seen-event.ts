/**
 * Events as a principal sees them (§6): without the members of the resource that are hidden from it, by the rules
 * applied to the snapshot in the event. If nothing is hidden from the principal, events are served as stored.
 */
import { memberSpan, valueAt } from '../../http/syntax/json-members.ts';
import type { Collection } from '../../model/collection.ts';
import { eventType } from '../../model/event.ts';
import type { MadeMembers } from '../../model/logic/collection-calls.ts';
import type { Principal } from '../../model/principal.ts';
import { eventsTable, type MaybePromise, type Store } from '../../store/store.ts';
import { type ShowDocs, showEach, withOwners } from '../collection/show-docs.ts';
import { createViews, type View, withoutHidden } from '../collection/view.ts';

/** Returns the event for a principal; undefined if the principal sees events as stored. */
export type EventView = (type: string, doc: string, owner: string | null) => string;

/**
 * Call once, for all streams and reads.
 * @param onFailure receives what `afterRead` of a collection throws, where no response can tell: the event then has only
 * the members of its resource that the server sets. Absent: the view throws
 */
export function createEventViews(
  collections: Iterable<Collection>,
  onFailure?: (error: unknown) => void,
): (principal: Principal) => EventView | undefined {
  const hiding = [...collections]
    .filter(({ hidden, hooks }) => hidden.size > 0 || hooks?.afterRead !== undefined)
    .map((collection) => [collection.name, createViews(collection)] as const);
  if (hiding.length === 0) return () => undefined;
  return (principal) => {
    const byType = new Map<string, View>();
    for (const [name, viewOf] of hiding) {
      const view = viewOf(principal);
      if (view.mark === '') continue;
      for (const change of ['created', 'updated', 'deleted'] as const)
        byType.set(eventType(name, change), view);
    }
    if (byType.size === 0) return undefined;
    return (type, doc, owner) => {
      const view = byType.get(type);
      return view === undefined ? doc : withoutHiddenOf(view, { doc, owner, onFailure });
    };
  };
}

type Shown = {
  readonly doc: string;
  readonly owner: string | null;
  readonly onFailure: ((error: unknown) => void) | undefined;
};

function withoutHiddenOf(view: View, { doc, owner, onFailure }: Shown): string {
  const data = memberSpan(doc, 'data');
  const object = data === undefined ? undefined : memberSpan(doc, 'object', data.start);
  if (object === undefined) return doc;
  const whole = doc.slice(object.start, object.end);
  let shown: string;
  try {
    shown = withoutHidden(view, whole, owner).doc;
  } catch (error) {
    if (onFailure === undefined) throw error;
    onFailure(error);
    const { id, createdAt, updatedAt } = JSON.parse(whole) as MadeMembers;
    shown = JSON.stringify({ id, createdAt, updatedAt });
  }
  return shown === whole ? doc : `${doc.slice(0, object.start)}${shown}${doc.slice(object.end)}`;
}

/** Shows a page of events. The owner of an event's resource is only in the row, so the rows are read as well. */
export function showEvents(store: Store, view: EventView): ShowDocs {
  return (docs): MaybePromise<readonly string[]> =>
    withOwners(store, eventsTable, docs, (owners) =>
      showEach(docs, (doc, index) => view(typeOf(doc), doc, owners[index] ?? null)),
    );
}

export function typeOf(doc: string): string {
  return valueAt(doc, ['type']) as string;
}
