/**
 * Events as a principal sees them (§6): without the members of the resource that are hidden from it, by the rules
 * applied to the snapshot in the event. If nothing is hidden from the principal, events are served as stored.
 */
import { memberSpan, valueAt } from '../../http/syntax/json-members.ts';
import { type Cause, type CauseShown, causeOf, withCauseShown } from '../../model/actor.ts';
import type { Collection } from '../../model/collection.ts';
import { eventType } from '../../model/event.ts';
import type { MadeMembers } from '../../model/logic/collection-calls.ts';
import { isAdministrator, type Principal } from '../../model/principal.ts';
import type { LoopTurns } from '../../observe/loop-turns.ts';
import { eventsTable, type MaybePromise, type Store } from '../../store/store.ts';
import { whenKnown } from '../../store/when-known.ts';
import { type ShowDocs, showEach, withOwners } from '../collection/show-docs.ts';
import { createViews, type View, withoutHidden } from '../collection/view.ts';
import { type Withholds, withoutText } from './withheld-text.ts';

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

/** The log as a principal sees it. */
export type LogView = {
  /** Removes hidden members of the resource; undefined: none are hidden. */
  readonly hides: EventView | undefined;
  /** How much of the event's cause it is shown. */
  readonly shows: (type: string, cause: Cause) => CauseShown;
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
  const eventViews = createEventViews(all, onFailure);
  const open = new Set(
    all
      .filter(({ actors }) => actors === 'readers')
      .flatMap(({ name }) =>
        (['created', 'updated', 'deleted'] as const).map((kind) => eventType(name, kind)),
      ),
  );
  return (principal) => {
    const hides = eventViews(principal);
    if (isAdministrator(principal)) return { hides, shows: () => 'whole' };
    const own = principal.kind === 'authenticated' ? principal.id : undefined;
    return {
      hides,
      shows: (type, { actor }) => {
        if (own !== undefined && actor.id === own && ownKinds.has(actor.kind)) return 'whole';
        return open.has(type) ? 'who' : 'none';
      },
    };
  };
}

/** Kinds whose ids are those of principals. */
const ownKinds: ReadonlySet<string> = new Set(['user', 'key', 'issuer', 'administrator-key']);

export function seenEvent(
  { hides, shows }: LogView,
  type: string,
  doc: string,
  owner: string | null,
): string {
  const seen = hides === undefined ? doc : hides(type, doc, owner);
  const cause = causeOf(seen);
  return cause === undefined ? seen : withCauseShown(seen, cause, shows(type, cause));
}

/** Shows a page of events, without what its reader may no longer read. */
type Showing = { readonly store: Store; readonly turns: LoopTurns };

export function showEvents(showing: Showing, view: LogView, withholds: Withholds | undefined): ShowDocs {
  if (withholds === undefined) return (docs) => showViewed(showing, view, docs);
  return (docs) =>
    whenKnown(withholds(docs.map((doc) => ({ type: typeOf(doc), doc }))), (withheld) =>
      showViewed(showing, view, docs, withheld),
    );
}

/** The owner of an event's resource is only in the row, so the rows are read as well if members are hidden. */
function showViewed(
  { store, turns }: Showing,
  view: LogView,
  docs: readonly string[],
  withheld: readonly boolean[] = [],
): MaybePromise<readonly string[]> {
  const showAll = (owners: readonly (string | null)[]) =>
    showEach(turns, docs, (doc, index) =>
      seenEvent(view, typeOf(doc), withheld[index] === true ? withoutText(doc) : doc, owners[index] ?? null),
    );
  return view.hides === undefined ? showAll([]) : withOwners(store, eventsTable, docs, showAll);
}

export function typeOf(doc: string): string {
  return valueAt(doc, ['type']) as string;
}
