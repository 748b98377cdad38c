/**
 * Lists: from what was asked to a page of representations (§4.2, §4.9). GET, QUERY, stored queries and the event log all list
 * through here, so visibility, cursors, links and caches are the same for each.
 *
 * Three things are kept between requests, each in a cache bounded in octets: what a text compiled to, the store's plan of it for each
 * audience, and finished pages under the table's version, which a write changes and so invalidates.
 */
import { hash } from 'node:crypto';
import { valueAt } from '../../http/syntax/json-members.ts';
import { OctetCache, octetsOfText, octetsOfValue } from '../../memory/octet-cache.ts';
import type { OctetLine } from '../../memory/octet-line.ts';
import type { Fields } from '../../model/field.ts';
import { allOf, type Filter } from '../../model/filter.ts';
import { audienceOf, isAdministrator, type Principal } from '../../model/principal.ts';
import type { MaybePromise, Page, Plan, Position, Row, Store } from '../../store/store.ts';
import { whenKnown } from '../../store/when-known.ts';
import { openCursor, sealCursor } from '../query/cursor.ts';
import type { Asked, Compiled, Fault, Target } from '../query/list-query.ts';
import { projection } from '../query/project.ts';
import { shapeOf } from '../query/shape.ts';

import { seenBy, type View } from './view.ts';

/** A table whose rows can be listed. */
export type Listable = Target & {
  /** The rows that the principal may read. */
  readonly visibility: (principal: Principal) => Filter;
  /** What of the fields and of the rows it is shown; absent: all. */
  readonly view?: (principal: Principal) => ListView;
};

export type ListView = {
  /** Tells the views apart that know other fields; empty for all of them. */
  readonly mark: string;
  /** Those that may be named. */
  readonly fields: Fields;
  /** Takes out of representations what is not shown; undefined where nothing is. */
  readonly show: ShowDocs | undefined;
};

/** A text that was compiled. */
export type Prepared = {
  readonly asked: Asked;
  /** Table, filter, order and selection: what a cursor is bound to. */
  readonly shape: string;
};

export type ListPage = {
  /** Octets where it is long: several clients are then sent it without a copy. */
  readonly body: string | Buffer;
  /** The validator of this page in the snapshot it was read from. */
  readonly tag: string;
  readonly nextCursor: string | null;
  readonly previousCursor: string | null;
};

export type Listing = {
  readonly listable: Listable;
  /** Compiles through the cache against the fields that the principal may name; `key` holds everything else that the compiler looks at. */
  prepare(
    key: string,
    principal: Principal,
    compile: (target: Target) => Compiled,
  ): Prepared | { readonly faults: readonly Fault[] };
  /** The position that was asked for; undefined: the cursor is not one of ours for this query. */
  position(prepared: Prepared): Position | undefined;
  /** From the finished pages where the table has not changed since, else from the store. */
  page(prepared: Prepared, principal: Principal, position: Position, party: string): MaybePromise<ListPage>;
  /** The tag that `page` would give now, without reading the page. */
  tag(principal: Principal): MaybePromise<string>;
  /** A finished page under an earlier tag, while it is still kept. */
  kept(prepared: Prepared, position: Position, tag: string): ListPage | undefined;
  count(prepared: Prepared, principal: Principal, party: string): MaybePromise<number>;
};

/** What all listings of a program share. */
export type ListCaches = {
  readonly pages: OctetCache<ListPage>;
  readonly prepared: OctetCache<Weighed<Prepared>>;
  readonly plans: OctetCache<Weighed<Plan>>;
};

/** A value with the octets that it holds. */
type Weighed<Value> = { readonly value: Value; readonly octets: number };

export type ListCacheSettings = { readonly resultCacheBytesMax: number; readonly planCacheBytesMax: number };

/** Objects, closures and short texts of one page, compiled text or plan, besides what is counted of it. */
const entryOctets = 1024;

export function createListCaches({ resultCacheBytesMax, planCacheBytesMax }: ListCacheSettings): ListCaches {
  const octetsMax = planCacheBytesMax / 2;
  return {
    pages: new OctetCache({
      octetsMax: resultCacheBytesMax,
      octetsOf: ({ body, nextCursor, previousCursor }) =>
        (typeof body === 'string' ? octetsOfText(body) : body.length) +
        2 * octetsOfText(`${nextCursor}${previousCursor}`),
    }),
    prepared: new OctetCache({ octetsMax, octetsOf: ({ octets }) => octets }),
    plans: new OctetCache({ octetsMax, octetsOf: ({ octets }) => octets }),
  };
}

export type ListingOptions = {
  readonly store: Store;
  readonly listable: Listable;
  readonly caches: ListCaches;
  readonly mac: (text: string) => string;
  /** Octets of documents after which a page takes no further one. */
  readonly pageBytesMax: number;
  /** Where pages wait to be read; undefined: each is read at once. */
  readonly pageLine: OctetLine | undefined;
};

/** A longer page is kept as octets. */
const textBytesMax = 64 * 1024;

export function createListing(options: ListingOptions): Listing {
  const { store, listable, caches, mac } = options;
  const { pages: cache, prepared } = caches;
  const weigh = weigherOf(listable);
  const planOf = createPlans(options, weigh);

  const version = (principal: Principal) =>
    whenKnown(store.version(listable.table), (found) => tagOf(found, principal));

  const fresh = (entry: Prepared, principal: Principal, position: Position, party: string) =>
    whenKnown(readPage(options, planOf(entry, principal), position, party), (page) => {
      const tag = tagOf(page.version, principal);
      const show = listable.view?.(principal).show;
      if (show === undefined) return finish(mac, entry, position, page, page.docs, tag);
      return whenKnown(show(page.docs), (docs) => finish(mac, entry, position, page, docs, tag));
    });

  const page = (entry: Prepared, principal: Principal, position: Position, party: string) =>
    whenKnown(version(principal), (tag) => {
      const known = cache.get(pageKey(entry, position, tag));
      if (known !== undefined) return known;
      return whenKnown(fresh(entry, principal, position, party), (made) => {
        cache.set(pageKey(entry, position, made.tag), made);
        return made;
      });
    });

  return {
    listable,
    prepare(text, principal, compile) {
      const view = listable.view?.(principal);
      const mark = view === undefined ? '' : view.mark;
      // What it compiles to is as long again, so a longer text would not be kept; to look for one costs as much as to copy it.
      const key = 4 * text.length > prepared.entryOctetsMax ? undefined : `${listable.table} ${mark} ${text}`;
      const known = key === undefined ? undefined : prepared.get(key);
      if (known !== undefined) return known.value;
      const compiled = compile(view === undefined ? listable : { ...listable, fields: view.fields });
      if (!compiled.ok) return { faults: compiled.faults };
      const { asked } = compiled;
      const entry = { asked, shape: `${listable.table} ${shapeOf(asked)}` };
      if (key !== undefined) {
        // Values may be slices of the text, which keep it.
        prepared.set(key, { value: entry, octets: weigh(asked) + octetsOfText(text) });
      }
      return entry;
    },
    position({ asked, shape }) {
      const { position, limit } = asked;
      if (position.from === 'page') return { from: 'offset', offset: (position.page - 1) * limit };
      if (position.from !== 'cursor') return position;
      const opened = openCursor(mac, shape, position.cursor);
      return opened === undefined ? undefined : { from: opened.direction, key: opened.key };
    },
    page,
    tag: version,
    kept: (entry, position, tag) => cache.get(pageKey(entry, position, tag)),
    count: (entry, principal, party) =>
      store.count(listable.table, filterOf(listable, entry, principal), party),
  };
}

/** Octets that a filter or what was asked holds; declared fields are held anyway. */
function weigherOf({ fields }: Listable): (value: unknown) => number {
  const declared = new Set<unknown>(fields.values());
  return (value) => entryOctets + octetsOfValue(value, (object) => declared.has(object));
}

/** The store's plan of an entry for an audience. */
function createPlans(
  { store, listable, caches, pageBytesMax }: ListingOptions,
  weigh: (value: unknown) => number,
): (entry: Prepared, principal: Principal) => Plan {
  return (entry, principal) => {
    const { sort, limit } = entry.asked;
    const key = `${limit} ${audienceOf(principal)} ${entry.shape}`;
    const known = caches.plans.get(key);
    if (known !== undefined) return known.value;
    const filter = filterOf(listable, entry, principal);
    const plan = store.plan({ table: listable.table, filter, sort, limit, bytesMax: pageBytesMax });
    // The values stand in the filter, and once more as parameters.
    caches.plans.set(key, { value: plan, octets: 2 * weigh(filter) });
    return plan;
  };
}

function readPage(
  { pageLine, pageBytesMax }: ListingOptions,
  plan: Plan,
  position: Position,
  party: string,
): MaybePromise<Page> {
  if (pageLine === undefined) return plan.page(position, party);
  return pageInLine(pageLine, pageBytesMax, () => plan.page(position, party));
}

async function pageInLine(line: OctetLine, bytes: number, read: () => MaybePromise<Page>): Promise<Page> {
  await line.enter(bytes);
  try {
    return await read();
  } finally {
    line.leave(bytes);
  }
}

function filterOf(listable: Listable, entry: Prepared, principal: Principal): Filter {
  return allOf([listable.visibility(principal), entry.asked.filter]);
}

/** @param page never copied: to read its first and last key costs a look into a document, and most pages need one or none */
function finish(
  mac: (text: string) => string,
  entry: Prepared,
  position: Position,
  page: Page,
  shown: readonly string[],
  tag: string,
): ListPage {
  const seal = (key: Page['last'], direction: 'after' | 'before') =>
    key === null ? null : sealCursor(mac, { shape: entry.shape, key, direction });
  const backwards = position.from === 'before';
  const atStart = position.from === 'start' || (position.from === 'offset' && position.offset === 0);
  const nextCursor = backwards || page.more ? seal(page.last, 'after') : null;
  const previousCursor = (backwards ? page.more : !atStart) ? seal(page.first, 'before') : null;
  const { select } = entry.asked;
  const docs = select === undefined ? shown : shown.map(projection(select));
  const next = nextCursor === null ? 'null' : `"${nextCursor}"`;
  const text = `{"items":[${docs.join(',')}],"nextCursor":${next}}`;
  const body = text.length > textBytesMax ? Buffer.from(text) : text;
  return { body, tag, nextCursor, previousCursor };
}

function pageKey(entry: Prepared, position: Position, tag: string): string {
  const at = position.from === 'start' ? '' : JSON.stringify(position);
  return `${tag} ${entry.asked.limit} ${entry.shape} ${at}`;
}

/** Version of the table, and a mark of who sees it: two audiences must not share a tag. */
function tagOf(version: string, principal: Principal): string {
  if (principal.kind === 'anonymous') return `${version}.p`;
  if (isAdministrator(principal)) return `${version}.a`;
  return `${version}.${hash('sha256', principal.audience, 'base64url').slice(0, 8)}`;
}

/** How to show the rows of one table. */
export type ShowDocs = (docs: readonly string[]) => MaybePromise<readonly string[]>;

/**
 * A page of representations as one principal sees them. Where a rule looks at the owner, which representations do not tell, the rows are
 * asked for it: point reads, made in one turn.
 *
 * Undefined where everything is shown.
 */
export function showDocs(store: Store, table: string, view: View): ShowDocs | undefined {
  if (view.mark === '') return undefined;
  if (!view.byOwner) return (docs) => docs.map((doc) => seenBy(view, doc, null).doc);
  return (docs) =>
    withOwners(store, table, docs, (owners) =>
      docs.map((doc, index) => seenBy(view, doc, owners[index] ?? null).doc),
    );
}

/** Calls back with the owner of each row; null where the row is another one meanwhile, or gone. */
export function withOwners<T>(
  store: Store,
  table: string,
  docs: readonly string[],
  use: (owners: readonly (string | null)[]) => T,
): MaybePromise<T> {
  const rows = docs.map((doc) => store.read(table, valueAt(doc, ['id']) as string));
  const owners = (found: readonly (Row | undefined)[]) =>
    found.map((row, index) => ownerOf(row, docs[index]));
  if (rows.some((row) => row instanceof Promise)) {
    return Promise.all(rows).then((found) => use(owners(found)));
  }
  return use(owners(rows as readonly (Row | undefined)[]));
}

/** Somebody else may have made a resource of the same id since the page was read; its times tell. */
function ownerOf(row: Row | undefined, doc: string | undefined): string | null {
  if (row === undefined || doc === undefined) return null;
  if (row.doc === doc) return row.owner;
  return valueAt(row.doc, ['createdAt']) === valueAt(doc, ['createdAt']) ? row.owner : null;
}
