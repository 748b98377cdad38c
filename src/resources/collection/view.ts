/**
 * A principal's view of a collection that hides fields (`hidden`, §5.1): the fields that queries may name, and
 * representations without hidden members. If nothing is hidden from the principal, the stored text is served unparsed.
 *
 * A rule that depends on the resource hides a member in some resources only. Such a field can be read but not named: a
 * filter or an order by it would reveal the resources in which it is hidden. `afterRead` changes what is read, and
 * nothing about what queries may name.
 */
import { hash } from 'node:crypto';
import { kindOf } from '../../config/inspection.ts';
import { cutMembers, valueAt } from '../../http/syntax/json-members.ts';
import { entityTag } from '../../kernel/preconditions.ts';
import { memoryBounds } from '../../memory/bounds.ts';
import { permission, type Subject } from '../../model/access.ts';
import { toRulePrincipal } from '../../model/access-function.ts';
import { type Collection, visibleWhere, withOwner } from '../../model/collection.ts';
import { type Field, type Fields, madeFields } from '../../model/field.ts';
import { allOf, always, type Filter } from '../../model/filter.ts';
import type { MadeMembers } from '../../model/logic/collection-calls.ts';
import { matches } from '../../model/matches.ts';
import {
  administratorRole,
  audienceOf,
  authenticated,
  isAdministrator,
  operatorId,
  type Principal,
} from '../../model/principal.ts';
import type { LoopTurns } from '../../observe/event-loop.ts';
import { callAs } from '../../observe/running-function.ts';
import type { RelatedRows } from '../../store/related-rows.ts';
import type { MaybePromise, Page, Row, RowHead, Store } from '../../store/store.ts';
import { whenKnown } from '../../store/store.ts';

export type View = {
  /** Identifies the hidden fields; empty if none are hidden. */
  readonly mark: string;
  /** The fields that are visible in every resource; for an administrator, the owner among them, which representations do not contain. */
  readonly fields: Fields;
  /** Members that are never visible, with their positions among the hidden fields. */
  readonly never: readonly Member[];
  /** Members that are visible in the resources that match the filter. */
  readonly perhaps: readonly (Member & { readonly where: Filter })[];
  /** One of the filters depends on the owner, which representations do not contain. */
  readonly byOwner: boolean;
  /** `afterRead` of the collection, for this principal. */
  readonly read: ((doc: string) => string) | undefined;
};

type Member = { readonly name: string; readonly place: number };

/** A representation as one principal sees it. */
export type Seen = {
  readonly doc: string;
  /** Identifies the removed members: representations with different members must not share an entity tag. */
  readonly mark: string;
};

/** Cached views of a collection, one for each audience; the oldest is dropped. */
const viewsMax = memoryBounds.views.entries;

/** @param isOwned administrators may name the owner of its resources */
export function createViews(collection: Collection, isOwned = false): (principal: Principal) => View {
  const whole = wholeView(collection);
  const owned = isOwned ? { ...whole, fields: withOwner(collection) } : whole;
  if (collection.hidden.size === 0 && collection.hooks?.afterRead === undefined)
    return (principal) => (isAdministrator(principal) ? owned : whole);
  const known = new Map<string, View>();
  return (principal) => {
    const audience = audienceOf(principal);
    const kept = known.get(audience);
    if (kept !== undefined) return kept;
    const view = viewOf(collection, principal, isAdministrator(principal) ? owned : whole);
    const oldest = known.size < viewsMax ? undefined : known.keys().next().value;
    if (oldest !== undefined) known.delete(oldest);
    known.set(audience, view);
    return view;
  };
}

/** Representations as they are stored. */
export function wholeView({ fields }: Collection): View {
  return { mark: '', fields, never: [], perhaps: [], byOwner: false, read: undefined };
}

function viewOf(collection: Collection, principal: Principal, whole: View): View {
  const read = readerOf(collection, principal);
  const never: Member[] = [];
  const perhaps: (Member & { where: Filter })[] = [];
  for (const [place, [name, rule]] of [...collection.hidden].entries()) {
    const answer = permission(rule, 'read', principal);
    if (answer === 'granted') continue;
    if (answer === 'denied') never.push({ name, place });
    else {
      perhaps.push({ name, place, where: visibleWhere(collection, rule, principal) });
    }
  }
  const left = [...never, ...perhaps];
  if (left.length === 0) return read === undefined ? whole : { ...whole, mark: 'r', read };
  const names = new Set(left.map(({ name }) => name));
  return {
    mark: read === undefined ? markOf(left) : `${markOf(left)}r`,
    read,
    fields: new Map([...whole.fields].filter(([, { path }]) => !names.has(path[0] ?? ''))),
    never,
    perhaps,
    byOwner: perhaps.some(({ where }) => looksAtOwner(where)),
  };
}

/**
 * The fields that aggregates may name; undefined for all that queries may name. Aggregates show stored values, so where
 * `afterRead` changes what is read they take only the fields that it cannot change. An administrator may read all.
 */
export function aggregatedFields(view: View, principal: Principal): Fields | undefined {
  if (view.read === undefined || isAdministrator(principal)) return undefined;
  return new Map(madeFields.filter(({ name }) => view.fields.has(name)).map((field) => [field.name, field]));
}

/** The members that are hidden from the principal in this resource. */
export function hiddenMembers(view: View, doc: string, owner: string | null): readonly Member[] {
  if (view.perhaps.length === 0) return view.never;
  const value = ({ column, path }: Field) => (column === 'owner' ? owner : valueAt(doc, path));
  return [...view.never, ...view.perhaps.filter(({ where }) => !matches(where, { value, search: null }))];
}

/** The entity tag of a representation, without its quotes. @param mark of the representation that the caller sees */
export function tagOfSeen(rev: number, mark: string): string {
  return mark === '' ? String(rev) : `${rev}.${mark}`;
}

/** The entity tag as a member beside others: its name and the text of the ETag field of a response without a content coding. */
export function tagMember({ name }: Pick<Field, 'name'>, tag: string): string {
  return `${JSON.stringify(name)}:${JSON.stringify(entityTag(tag, 'identity'))}`;
}

/** Removes hidden members; returns the text unchanged if it has none. */
export function seenBy(view: View, doc: string, owner: string | null): Seen {
  if (view.mark === '') return { doc, mark: '' };
  const { doc: seen, hidden } = withoutHidden(view, doc, owner);
  if (view.read !== undefined) return { doc: seen, mark: seen === doc ? '' : readMark(seen) };
  return { doc: seen, mark: hidden.length === 0 ? '' : markOf(hidden) };
}

/** Removes hidden members, and returns those that were present. */
export function withoutHidden(
  view: View,
  doc: string,
  owner: string | null,
): { readonly doc: string; readonly hidden: readonly Member[] } {
  const closed = hiddenMembers(view, doc, owner);
  const cut = cutMembers(
    view.read === undefined ? doc : view.read(doc),
    closed.map(({ name }) => name),
  );
  return { doc: cut.json, hidden: closed.filter(({ name }) => cut.names.has(name)) };
}

const readMarkCharacters = 16;

function readMark(doc: string): string {
  return `r${hash('sha256', doc, 'base64url').slice(0, readMarkCharacters)}`;
}

/** Principals with one audience share what is kept for them, and administrators all have the same. */
function readerOf({ name, hooks }: Collection, principal: Principal): View['read'] {
  const afterRead = hooks?.afterRead;
  if (afterRead === undefined) return undefined;
  const known = isAdministrator(principal) ? anyAdministrator : principal;
  const caller = toRulePrincipal(known);
  const by = { named: `the hook afterRead of ${name}` };
  return (doc) => {
    const document = JSON.parse(doc) as MadeMembers & { readonly deletedAt?: string };
    const { id, createdAt, updatedAt, deletedAt } = document;
    let shown: unknown;
    try {
      shown = callAs(by, afterRead, { document: document as never, principal: caller });
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      throw new Error(`the hook afterRead of ${name} failed: ${message}`, { cause: error });
    }
    if (typeof shown !== 'object' || shown === null || Array.isArray(shown) || shown instanceof Promise)
      throw new Error(`the hook afterRead of ${name} must return the document, not ${kindReturned(shown)}`);
    const made = { createdAt, updatedAt, ...(deletedAt === undefined ? {} : { deletedAt }) };
    try {
      // First, as in every representation, and last, so that the hook cannot change it.
      return JSON.stringify({ ...{ id }, ...shown, ...made, id });
    } catch (error) {
      const [why = ''] = (error instanceof Error ? error.message : String(error)).split('\n', 1);
      throw new Error(`the hook afterRead of ${name} returned what is not JSON: ${why}`, { cause: error });
    }
  };
}

function kindReturned(value: unknown): string {
  return value instanceof Promise ? 'a promise of it: it must be synchronous' : kindOf(value);
}

const anyAdministrator = authenticated({
  id: operatorId,
  scopes: ['read', 'write', 'webhooks', 'tunnel', 'admin'],
  roles: [administratorRole],
});

function markOf(members: readonly Member[]): string {
  return `h${members
    .map(({ place }) => place)
    .sort((one, other) => one - other)
    .join('-')}`;
}

function looksAtOwner(filter: Filter): boolean {
  if ('filters' in filter) return filter.filters.some(looksAtOwner);
  if (filter.op === 'not') return looksAtOwner(filter.filter);
  return 'field' in filter && filter.field.column === 'owner';
}

/** The resources that the principal may see with the field in them. */
export function visibleWithField(collection: Collection, { name }: Field, principal: Principal): Filter {
  const rules = [collection.access.read, collection.hidden.get(name)];
  return allOf(
    rules.map((rule) => (rule === undefined ? always : visibleWhere(collection, rule, principal))),
  );
}

/**
 * Reads a member from the text of the document only when a rule needs it.
 * @param rows finds what its references name; absent: no rule asks for that
 */
export function subjectOf(row: Pick<Row, 'doc' | 'owner'>, rows?: RelatedRows): Subject {
  const { owner, doc } = row;
  const member = (name: string): unknown => valueAt(doc, [name]);
  return rows === undefined ? { owner, member } : { owner, member, related: rows.find };
}

// Pages of representations as one principal may see them (view.ts).

export type SeenDocs = {
  readonly docs: readonly string[];
  /** The entity tags of the documents, as members; undefined for what has none. Absent: they were not asked for. */
  readonly tags?: readonly (string | undefined)[];
};

/** @param heads of the rows of the documents, in their order, if the entity tags are asked for */
export type ShowDocs = (
  docs: readonly string[],
  heads: readonly RowHead[] | undefined,
) => MaybePromise<SeenDocs>;

/**
 * Shows a page of representations as one principal may see them. If a rule depends on the owner, which representations
 * do not contain, the rows are read as well, with point reads that are started together, unless their heads are given.
 */
export function showDocs(
  { store, turns }: { readonly store: Store; readonly turns: LoopTurns },
  table: string,
  view: View,
  tag: Field,
): ShowDocs {
  const show = (
    docs: readonly string[],
    heads: readonly RowHead[] | undefined,
    owners: readonly (string | null)[],
  ): MaybePromise<SeenDocs> => {
    if (view.mark === '') return { docs, ...tagsOf(tag, heads, []) };
    const seen = showEach(turns, docs, (doc, index) => seenBy(view, doc, owners[index] ?? null));
    return whenKnown(seen, (all) => ({ docs: all.map(({ doc }) => doc), ...tagsOf(tag, heads, all) }));
  };
  return (docs, heads) => {
    if (!view.byOwner || heads !== undefined)
      return show(docs, heads, heads?.map(({ owner }) => owner) ?? []);
    return withOwners(store, table, docs, (owners) => show(docs, heads, owners));
  };
}

/** Shows a page, with the entity tags if the heads of its rows were read. @param show absent: its documents are served as they are stored */
export function showPage(
  { tag }: { readonly tag?: Field | undefined },
  show: ShowDocs | undefined,
  { docs, heads }: Page,
): MaybePromise<SeenDocs> {
  if (show !== undefined) return show(docs, heads);
  return tag === undefined ? { docs } : { docs, ...tagsOf(tag, heads, []) };
}

/** @param seen the representations; empty: as they are stored */
function tagsOf(
  tag: Field,
  heads: readonly RowHead[] | undefined,
  seen: readonly Seen[],
): Pick<SeenDocs, 'tags'> {
  if (heads === undefined) return {};
  return { tags: heads.map(({ rev }, at) => tagMember(tag, tagOfSeen(rev, seen[at]?.mark ?? ''))) };
}

/**
 * Shows each representation of a page, by rules and functions of the application. A long page takes several turns of the event loop, before
 * any other is begun; pages that were read at the same time arrive in one turn, so the first representation waits for its own, too.
 */
export function showEach<T>(
  turns: LoopTurns,
  docs: readonly string[],
  show: (doc: string, index: number) => T,
): MaybePromise<readonly T[]> {
  const shown: T[] = [];
  const showRest = (): MaybePromise<readonly T[]> => {
    for (const doc of docs.slice(shown.length)) {
      shown.push(show(doc, shown.length));
      const turn = shown.length < docs.length ? turns.nextOfBegun() : undefined;
      if (turn !== undefined) return turn.then(showRest);
    }
    return shown;
  };
  return whenKnown(turns.nextOfBegun(), showRest);
}

/** Calls `use` with the owner of each row; null if the row has been deleted or replaced by another. */
export function withOwners<T>(
  store: Store,
  table: string,
  docs: readonly string[],
  use: (owners: readonly (string | null)[]) => MaybePromise<T>,
): MaybePromise<T> {
  const rows = docs.map((doc) => store.read(table, valueAt(doc, ['id']) as string));
  const owners = (found: readonly (Row | undefined)[]) =>
    found.map((row, index) => ownerOf(row, docs[index]));
  if (rows.some((row) => row instanceof Promise)) {
    return Promise.all(rows).then((found) => use(owners(found)));
  }
  return use(owners(rows as readonly (Row | undefined)[]));
}

/** Since the page was read, the id may have been deleted and created anew; `createdAt` then differs. */
function ownerOf(row: Row | undefined, doc: string | undefined): string | null {
  if (row === undefined || doc === undefined) return null;
  if (row.doc === doc) return row.owner;
  return valueAt(row.doc, ['createdAt']) === valueAt(doc, ['createdAt']) ? row.owner : null;
}
