/**
 * Events as a principal sees them (§6): without the members of the resource that are hidden from it, by the rules
 * applied to the snapshot in the event. If nothing is hidden from the principal, events are served as stored.
 */
import { memberSpan, valueAt } from '../../http/syntax/json-members.ts';
import { type Cause, type CauseShown, causeOf, withCauseShown } from '../../model/actor.ts';
import { type Collection, tagFieldOf } from '../../model/collection.ts';
import { eventType } from '../../model/event.ts';
import { type Field, tagField } from '../../model/field.ts';
import type { MadeMembers } from '../../model/logic/collection-calls.ts';
import { isAdministrator, type Principal } from '../../model/principal.ts';
import type { LoopTurns } from '../../observe/event-loop.ts';
import {
  eventsTable,
  type MaybePromise,
  type RowHead,
  type Store,
  type TailEntry,
  whenKnown,
} from '../../store/store.ts';
import { type SeenDocs, type ShowDocs, showEach, withOwners } from '../collection/show-docs.ts';
import { createViews, seenBy, tagMember, tagOfSeen, type View } from '../collection/view.ts';
import { type Withholds, withoutText } from './withheld-text.ts';

/** An event as a principal sees it. The mark is that of its resource; undefined: the resource is not shown as it is served. */
export type SeenEvent = { readonly doc: string; readonly mark: string | undefined };

type SeeEvent = (type: string, doc: string, owner: string | null) => SeenEvent;

/** Returns the text of an event for a principal; undefined if the principal sees events as stored. */
export function createEventViews(
  collections: Iterable<Collection>,
): (principal: Principal) => ((...event: Parameters<SeeEvent>) => string) | undefined {
  const views = createSeenEvents(collections);
  return (principal) => {
    const see = views(principal);
    return see && ((...event) => see(...event).doc);
  };
}

/**
 * Call once, for all streams and reads.
 * @param onFailure receives what `afterRead` of a collection throws, where no response can tell: the event then has only
 * the members of its resource that the server sets. Absent: the view throws
 */
function createSeenEvents(
  collections: Iterable<Collection>,
  onFailure?: (error: unknown) => void,
): (principal: Principal) => SeeEvent | undefined {
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
      return view === undefined ? { doc, mark: '' } : withoutHiddenOf(view, { doc, owner, onFailure });
    };
  };
}

type Shown = {
  readonly doc: string;
  readonly owner: string | null;
  readonly onFailure: ((error: unknown) => void) | undefined;
};

function withoutHiddenOf(view: View, { doc, owner, onFailure }: Shown): SeenEvent {
  const data = memberSpan(doc, 'data');
  const object = data === undefined ? undefined : memberSpan(doc, 'object', data.start);
  if (object === undefined) return { doc, mark: undefined };
  const whole = doc.slice(object.start, object.end);
  let shown: SeenEvent;
  try {
    shown = seenBy(view, whole, owner);
  } catch (error) {
    if (onFailure === undefined) throw error;
    onFailure(error);
    const { id, createdAt, updatedAt } = JSON.parse(whole) as MadeMembers;
    shown = { doc: JSON.stringify({ id, createdAt, updatedAt }), mark: undefined };
  }
  if (shown.doc === whole) return { ...shown, doc };
  return { ...shown, doc: `${doc.slice(0, object.start)}${shown.doc}${doc.slice(object.end)}` };
}

/** The log as a principal sees it. */
export type LogView = {
  /** Removes hidden members of the resource; undefined: none are hidden. */
  readonly hides: SeeEvent | undefined;
  /** How much of the event's cause it is shown. */
  readonly shows: (type: string, cause: Cause) => CauseShown;
  /** Names the entity tag that the event's resource has from its commit on; undefined: it has none, or was deleted. */
  readonly tagOf: (type: string) => Field | undefined;
};

/**
 * The views of the log for its readers (§2.9): administrators see who caused an event, and in which request; others see that of what they
 * caused themselves, and the actor where the collection shows actors to its readers.
 */
export function createLogViews(
  collections: Iterable<Collection>,
  onFailure?: (error: unknown) => void,
): (principal: Principal) => LogView {
  const all = [...collections];
  const eventViews = createSeenEvents(all, onFailure);
  const open = new Set(
    all
      .filter(({ actors }) => actors === 'readers')
      .flatMap(({ name }) =>
        (['created', 'updated', 'deleted'] as const).map((kind) => eventType(name, kind)),
      ),
  );
  const tags = new Map(
    all.flatMap((collection) =>
      (['created', 'updated'] as const).map(
        (kind) => [eventType(collection.name, kind), tagFieldOf(collection)] as const,
      ),
    ),
  );
  const tagOf = (type: string) => tags.get(type);
  return (principal) => {
    const hides = eventViews(principal);
    if (isAdministrator(principal)) return { hides, shows: () => 'whole', tagOf };
    const own = principal.kind === 'authenticated' ? principal.id : undefined;
    return {
      hides,
      tagOf,
      shows: (type, { actor }) => {
        if (own !== undefined && actor.id === own && ownKinds.has(actor.kind)) return 'whole';
        return open.has(type) ? 'who' : 'none';
      },
    };
  };
}

/** Kinds whose ids are those of principals. */
const ownKinds: ReadonlySet<string> = new Set(['user', 'key', 'issuer', 'administrator-key']);

export function seenEvent(view: LogView, type: string, doc: string, owner: string | null): string {
  return seenOf(view, type, doc, owner).doc;
}

function seenOf({ hides, shows }: LogView, type: string, doc: string, owner: string | null): SeenEvent {
  const seen = hides === undefined ? { doc, mark: '' } : hides(type, doc, owner);
  const cause = causeOf(seen.doc);
  if (cause === undefined) return seen;
  return { ...seen, doc: withCauseShown(seen.doc, cause, shows(type, cause)) };
}

/** An event with the entity tag of its resource, as a member of it; undefined: it has none, or its text is withheld. */
export type TaggedEvent = { readonly doc: string; readonly tag: string | undefined };

export function taggedEvent(
  view: LogView,
  { type, doc, owner, rev }: Pick<TailEntry, 'type' | 'doc' | 'owner' | 'rev'>,
  isWithheld: boolean,
): TaggedEvent {
  const seen = seenOf(view, type, isWithheld ? withoutText(doc) : doc, owner);
  const tag = isWithheld || seen.mark === undefined ? undefined : view.tagOf(type);
  return { doc: seen.doc, tag: tag && tagMember(tag, tagOfSeen(rev, seen.mark ?? '')) };
}

/** Names the tag of the resource in an event. */
export const eventTag: Field = { ...tagField, path: ['data', 'object'] };

/** Shows a page of events, without what its reader may no longer read. */
type Showing = { readonly store: Store; readonly turns: LoopTurns };

export function showEvents(showing: Showing, view: LogView, withholds: Withholds | undefined): ShowDocs {
  if (withholds === undefined) return (docs, heads) => showViewed(showing, view, { docs, heads });
  return (docs, heads) =>
    whenKnown(withholds(docs.map((doc) => ({ type: typeOf(doc), doc }))), (withheld) =>
      showViewed(showing, view, { docs, heads, withheld }),
    );
}

/** The owner of an event's resource is only in the row, so the rows are read as well if members are hidden. */
function showViewed(
  { store, turns }: Showing,
  view: LogView,
  {
    docs,
    heads,
    withheld = [],
  }: {
    readonly docs: readonly string[];
    readonly heads: readonly RowHead[] | undefined;
    readonly withheld?: readonly boolean[];
  },
): MaybePromise<SeenDocs> {
  const showAll = (owners: readonly (string | null)[]) => {
    const seen = showEach(turns, docs, (doc, index) => {
      const event = { type: typeOf(doc), doc, owner: owners[index] ?? null, rev: heads?.[index]?.rev ?? 0 };
      return taggedEvent(view, event, withheld[index] === true);
    });
    return whenKnown(seen, (all) => ({
      docs: all.map(({ doc }) => doc),
      ...(heads === undefined ? {} : { tags: all.map(({ tag }) => tag) }),
    }));
  };
  if (heads !== undefined) return showAll(heads.map(({ owner }) => owner));
  return view.hides === undefined ? showAll([]) : withOwners(store, eventsTable, docs, showAll);
}

export function typeOf(doc: string): string {
  return valueAt(doc, ['type']) as string;
}
