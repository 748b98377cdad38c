/**
 * Lists: from what was asked to a page of representations (§4.2, §4.9). GET, QUERY, stored queries and the event log all list
 * through here, so visibility, cursors, links and caches are the same for each.
 *
 * Three things are kept between requests, all bounded: what a text compiled to, the store's plan of it for each
 * audience, and finished pages under the table's version, which a write changes and so invalidates.
 */
import { hash } from 'node:crypto';
import type { Fields } from '../../model/field.ts';
import { allOf, type Filter } from '../../model/filter.ts';
import { audienceOf, isAdministrator, type Principal } from '../../model/principal.ts';
import type { MaybePromise, Page, Plan, Position, Store } from '../../store/store.ts';
import { whenKnown } from '../../store/when-known.ts';
import type { Asked, Compiled, Fault, Target } from '../query/asked.ts';
import { openCursor, sealCursor } from '../query/cursor.ts';
import { project } from '../query/project.ts';
import { shapeOf } from '../query/shape.ts';
import type { ByteCache } from './byte-cache.ts';
import type { ShowDocs } from './seen-list.ts';

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

/** A text that was compiled before, with the plans made of it since. */
export type Prepared = {
  readonly asked: Asked;
  /** Table, filter, order and selection: what a cursor is bound to. */
  readonly shape: string;
  /** By audience. */
  readonly plans: Map<string, Plan>;
};

export type ListPage = {
  readonly body: string;
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
  page(prepared: Prepared, principal: Principal, position: Position): MaybePromise<ListPage>;
  /** The tag that `page` would give now, without reading the page. */
  tag(principal: Principal): MaybePromise<string>;
  /** A finished page under an earlier tag, while it is still kept. */
  kept(prepared: Prepared, position: Position, tag: string): ListPage | undefined;
  count(prepared: Prepared, principal: Principal): MaybePromise<number>;
};

export type ListingOptions = {
  readonly store: Store;
  readonly listable: Listable;
  readonly cache: ByteCache<ListPage>;
  readonly mac: (text: string) => string;
  readonly preparedMax: number;
};

/** Plans kept for one text; an audience beyond it compiles again. */
const audiencesMax = 64;

export function createListing(options: ListingOptions): Listing {
  const { store, listable, cache, mac } = options;
  const prepared = new Map<string, Prepared>();

  const version = (principal: Principal) =>
    whenKnown(store.version(listable.table), (found) => tagOf(found, principal));

  const fresh = (entry: Prepared, principal: Principal, position: Position) =>
    whenKnown(planOf(store, listable, entry, principal).page(position), (page) => {
      const tag = tagOf(page.version, principal);
      const show = listable.view?.(principal).show;
      if (show === undefined) return finish(mac, entry, position, page, tag);
      return whenKnown(show(page.docs), (docs) => finish(mac, entry, position, { ...page, docs }, tag));
    });

  const page = (entry: Prepared, principal: Principal, position: Position) =>
    whenKnown(version(principal), (tag) => {
      const known = cache.get(pageKey(entry, position, tag));
      if (known !== undefined) return known;
      return whenKnown(fresh(entry, principal, position), (made) => {
        cache.set(pageKey(entry, position, made.tag), made);
        return made;
      });
    });

  return {
    listable,
    prepare(text, principal, compile) {
      const view = listable.view?.(principal);
      const key = view === undefined || view.mark === '' ? text : `${view.mark} ${text}`;
      const known = prepared.get(key);
      if (known !== undefined) return known;
      const compiled = compile(view === undefined ? listable : { ...listable, fields: view.fields });
      if (!compiled.ok) return { faults: compiled.faults };
      const { asked } = compiled;
      const entry = { asked, shape: `${listable.table} ${shapeOf(asked)}`, plans: new Map<string, Plan>() };
      return remember(prepared, key, entry, options.preparedMax);
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
    count: (entry, principal) => store.count(listable.table, filterOf(listable, entry, principal)),
  };
}

function filterOf(listable: Listable, entry: Prepared, principal: Principal): Filter {
  return allOf([listable.visibility(principal), entry.asked.filter]);
}

function planOf(store: Store, listable: Listable, entry: Prepared, principal: Principal): Plan {
  const audience = audienceOf(principal);
  const known = entry.plans.get(audience);
  if (known !== undefined) return known;
  const { sort, limit } = entry.asked;
  const filter = filterOf(listable, entry, principal);
  const plan = store.plan({ table: listable.table, filter, sort, limit });
  return remember(entry.plans, audience, plan, audiencesMax);
}

function finish(
  mac: (text: string) => string,
  entry: Prepared,
  position: Position,
  page: Page,
  tag: string,
): ListPage {
  const seal = (key: Page['last'], direction: 'after' | 'before') =>
    key === null ? null : sealCursor(mac, { shape: entry.shape, key, direction });
  const backwards = position.from === 'before';
  const atStart = position.from === 'start' || (position.from === 'offset' && position.offset === 0);
  const nextCursor = backwards || page.more ? seal(page.last, 'after') : null;
  const previousCursor = (backwards ? page.more : !atStart) ? seal(page.first, 'before') : null;
  const { select } = entry.asked;
  const docs = select === undefined ? page.docs : page.docs.map((doc) => project(doc, select));
  const next = nextCursor === null ? 'null' : `"${nextCursor}"`;
  return { body: `{"items":[${docs.join(',')}],"nextCursor":${next}}`, tag, nextCursor, previousCursor };
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

function remember<T>(map: Map<string, T>, key: string, value: T, sizeMax: number): T {
  if (map.size >= sizeMax) {
    const oldest = map.keys().next();
    if (!oldest.done) map.delete(oldest.value);
  }
  map.set(key, value);
  return value;
}
