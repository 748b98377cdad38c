/**
 * Events as a principal sees them (§6): without the members of the resource that are hidden from it, by the rules
 * applied to the snapshot in the event, and without text that it may no longer read (§6.10). If nothing is hidden from the
 * principal, events are served as stored.
 */
import { valueAt } from '../../http/syntax/json-members.ts';
import { entityTag } from '../../kernel/preconditions.ts';
import { permission, permits } from '../../model/access.ts';
import { type Cause, type CauseShown, causeOf, withCauseShown } from '../../model/actor.ts';
import { type Collection, tagFieldOf } from '../../model/collection.ts';
import { eventType, objectSpan } from '../../model/event.ts';
import { type Field, idField, tagField } from '../../model/field.ts';
import type { MadeMembers } from '../../model/logic/collection-calls.ts';
import { isAdministrator, type Principal } from '../../model/principal.ts';
import type { LoopTurns } from '../../observe/event-loop.ts';
import { judged, RelatedRows } from '../../store/related-rows.ts';
import {
  eventsTable,
  type MaybePromise,
  type Row,
  type RowHead,
  type Store,
  type TailEntry,
  whenKnown,
} from '../../store/store.ts';
import {
  createViews,
  type SeenDocs,
  type ShowDocs,
  seenBy,
  showEach,
  subjectOf,
  tagMember,
  tagOfSeen,
  type View,
  withOwners,
} from '../collection/view.ts';

/** An event as a principal sees it. The mark is that of its resource; undefined: the resource is not shown as it is served. */
type SeenEvent = { readonly doc: string; readonly mark: string | undefined };

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
  const object = objectSpan(doc);
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
export type TaggedEvent = {
  readonly doc: string;
  readonly tag: string | undefined;
  /** The text of the tag alone, as JSON. */
  readonly text: string | undefined;
};

export function taggedEvent(
  view: LogView,
  { type, doc, owner, rev }: Pick<TailEntry, 'type' | 'doc' | 'owner' | 'rev'>,
  isWithheld: boolean,
): TaggedEvent {
  const seen = seenOf(view, type, isWithheld ? withoutText(doc) : doc, owner);
  const { doc: shown, mark } = seen;
  const field = isWithheld || mark === undefined ? undefined : view.tagOf(type);
  if (field === undefined || mark === undefined) return { doc: shown, tag: undefined, text: undefined };
  return { doc: shown, tag: tagMember(field, tagOfSeen(rev, mark)), text: tagText(rev, mark) };
}

/** The tag of a document alone, as JSON. */
export function tagText(rev: number, mark: string): string {
  return JSON.stringify(entityTag(tagOfSeen(rev, mark), 'identity'));
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

// Text of the log that its reader may no longer read (§6.10): an event shows its resource only if the reader may read the resource as it
// is now; a deleted one as it was last. Of others the id alone is shown, so that pages and counts stay what they are. It costs a point
// read for each resource of a page, and only where the rule of the collection depends on the resource.

/** Says for each event if its text is withheld. */
export type Withholds = (
  events: readonly { readonly type: string; readonly doc: string }[],
) => MaybePromise<readonly boolean[]>;

/** Undefined for a principal whose rules do not depend on resources. */
export type WithholdsFrom = (principal: Principal) => Withholds | undefined;

type Reads = Pick<Store, 'read' | 'plan'>;

export function createWithholds(store: Reads, collections: Iterable<Collection>): WithholdsFrom {
  const byType = new Map<string, Collection>();
  for (const collection of collections) {
    for (const change of ['created', 'updated', 'deleted'] as const)
      byType.set(eventType(collection.name, change), collection);
  }
  return (principal) => {
    const depends = (collection: Collection): boolean =>
      permission(collection.access.read, 'read', principal) === 'depends';
    const judged = new Map([...byType].filter(([, collection]) => depends(collection)));
    if (judged.size === 0) return undefined;
    return (events) => {
      if (!events.some(({ type }) => judged.has(type))) return events.map(() => false);
      return withheldOf(store, principal, judged, events);
    };
  };
}

async function withheldOf(
  store: Reads,
  principal: Principal,
  judged: ReadonlyMap<string, Collection>,
  events: readonly { readonly type: string; readonly doc: string }[],
): Promise<readonly boolean[]> {
  const known = new Map<string, Promise<boolean>>();
  return Promise.all(
    events.map(({ type, doc }) => {
      const collection = judged.get(type);
      const id = collection === undefined ? undefined : valueAt(doc, ['data', 'object', 'id']);
      if (collection === undefined || typeof id !== 'string') return false;
      const key = `${collection.name} ${id}`;
      const found = known.get(key) ?? isWithheld(store, principal, collection, id);
      known.set(key, found);
      return found;
    }),
  );
}

async function isWithheld(
  store: Reads,
  principal: Principal,
  collection: Collection,
  id: string,
): Promise<boolean> {
  const state = (await store.read(collection.name, id)) ?? (await lastState(store, collection.name, id));
  if (state === undefined) return false;
  const rows = new RelatedRows(store);
  const subject = subjectOf(state, rows);
  return !(await judged(rows, () => permits(collection.access.read, 'read', principal, subject)));
}

const collectionField: Field = { name: 'collection', path: [], type: 'string', column: 'collection' };
const documentField: Field = { name: 'document', path: [], type: 'string', column: 'document' };
const revField: Field = { name: 'rev', path: [], type: 'integer', column: 'rev' };

/** The resource as the newest of its events has it; undefined if its events name no resource, as in earlier versions. */
export async function lastState(
  store: Pick<Store, 'read' | 'plan'>,
  collection: string,
  id: string,
): Promise<Pick<Row, 'doc' | 'owner'> | undefined> {
  const plan = store.plan({
    table: eventsTable,
    filter: {
      op: 'and',
      filters: [
        { op: 'eq', field: collectionField, value: collection },
        { op: 'eq', field: documentField, value: id },
      ],
    },
    sort: [
      { field: revField, direction: 'desc' },
      { field: idField, direction: 'desc' },
    ],
    limit: 1,
  });
  const [doc] = (await plan.page({ from: 'start' })).docs;
  const object = doc === undefined ? undefined : objectSpan(doc);
  if (doc === undefined || object === undefined) return undefined;
  const row = await store.read(eventsTable, String(valueAt(doc, ['id'])));
  return { doc: doc.slice(object.start, object.end), owner: row?.owner ?? null };
}

/** The event with nothing of its resource but the id. */
export function withoutText(doc: string): string {
  const object = objectSpan(doc);
  if (object === undefined) return doc;
  const id = valueAt(doc, ['data', 'object', 'id']);
  return `${doc.slice(0, object.start)}${JSON.stringify({ id })}${doc.slice(object.end)}`;
}
