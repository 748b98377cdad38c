/**
 * Lists: from a request to a page of representations (§4.2, §4.9). GET, QUERY, stored queries and the event log share
 * this file, so visibility, cursors, links and caches are the same for all.
 *
 * Three caches, bounded in octets, last between requests: compiled texts; the store's plans, one for each audience; and
 * finished pages under the version of the table, which every write changes. They take in what is asked a second time.
 */
import type { Request } from '../../http/message.ts';
import { OctetCache, octetsOfText, octetsOfValue, SeenBefore } from '../../memory/octet-cache.ts';
import type { OctetLine } from '../../memory/program-memory.ts';
import type { Party } from '../../model/fair-queue.ts';
import type { Fields } from '../../model/field.ts';
import { allOf, type Filter, isRelated, never, tablesOf } from '../../model/filter.ts';
import { audienceOf, isAdministrator, type Principal } from '../../model/principal.ts';
import {
  type ListQuery,
  type MaybePromise,
  type Page,
  type Plan,
  type Position,
  type Store,
  whenKnown,
} from '../../store/store.ts';
import { createLogPlaces } from '../events/log-places.ts';
import { openCursor } from '../query/cursor.ts';
import type { Asked, Compiled, Fault, Target } from '../query/list-query.ts';
import { shapeOf } from '../query/shape.ts';
import type { ReadRelated } from '../relations/related.ts';
import { readRelatedPage, versionOfList } from '../relations/related-page.ts';
import { readGroups } from './group-page.ts';
import { finish, inOctets, inText, type ListPage, readInLine, tagOf, textBytesMax } from './list-page.ts';
import { planWords } from './plan-words.ts';
import { type ShowDocs, showPage } from './show-docs.ts';
import type { SlowLists } from './slow-lists.ts';

export type Listable = Target & {
  readonly visibility: (principal: Principal) => Filter;
  /** Which fields, and which parts of the rows, the principal sees; undefined: those of the target, and all. */
  readonly view?: (principal: Principal) => ListView | undefined;
  /** What the list rests on beyond its table; absent: nothing. */
  readonly related?: RelatedRows;
};

export type RelatedRows = {
  /** Limits the filter of a query to those rows of other tables that the principal may read. */
  readonly seen: (filter: Filter, principal: Principal) => Filter;
};

export type ListView = {
  /** Distinguishes views with different fields; empty if all are visible. */
  readonly mark: string;
  /** Fields that queries may name. */
  readonly fields: Fields;
  /** The fields that aggregates may name; absent: those that queries may name. */
  readonly aggregated?: Fields | undefined;
  readonly through?: Target['through'];
  /** Removes hidden members from representations; undefined if none are hidden. */
  readonly show: ShowDocs | undefined;
};

/** A compiled query. */
export type Prepared = {
  readonly asked: Asked;
  /** Table, filter, order and selection, to which cursors are bound. */
  readonly shape: string;
  /** The same text was asked before, and lately: its plan and its pages are cached. */
  readonly isRepeated: boolean;
  /** The filter looks at rows of other tables. */
  readonly isRelated: boolean;
  /** The token of a QUERY, computed once. */
  token?: string;
};

export type PageReading = {
  /** For whom the store reads. */
  readonly party: Party;
  /** Caches the page of a first request as well, because `Content-Location` names it. */
  readonly keepsFirst?: boolean;
  /** Versions of what the page includes, if they are known. */
  readonly included?: readonly string[] | undefined;
  /** Whose client may leave before the page is read. */
  readonly request?: Pick<Request, 'isGone'> | undefined;
};

export type Listing = {
  readonly listable: Listable;
  /** Compiles for the fields that the principal may name, with a cache; `key` holds all other inputs of the compiler. */
  prepare(
    key: string,
    principal: Principal,
    compile: (target: Target) => Compiled,
  ): Prepared | { readonly faults: readonly Fault[] };
  /** The place in the event log that no page is behind which is read from now on (`Comity-Position`). */
  place(): string;
  /** Returns the requested position; undefined if the cursor was altered or belongs to another query. */
  position(prepared: Prepared): Position | undefined;
  /**
   * Returns a cached page if the table has not changed since, otherwise reads it from the store.
   * @throws GroupsExceeded for an aggregate query
   */
  page(
    prepared: Prepared,
    principal: Principal,
    position: Position,
    how: PageReading,
  ): MaybePromise<ListPage>;
  /** A page of another store in front of the same rows, neither cached nor changed by a view. */
  pageFrom(store: Store, prepared: Prepared, principal: Principal, position: Position): Promise<ListPage>;
  /** The tag that `page` would return now, without reading the page. @param prepared absent: the list without a query */
  tag(principal: Principal, prepared?: Prepared): MaybePromise<string>;
  /** A cached page with an earlier tag, if it is still in the cache. */
  kept(prepared: Prepared, position: Position, tag: string): ListPage | undefined;
  count(prepared: Prepared, principal: Principal, party: Party): MaybePromise<number>;
  /** How a page is read, in words; undefined if the principal may not know. */
  plan(prepared: Prepared, principal: Principal, position: Position): string | undefined;
};

/** The caches that all listings of the program share. */
export type ListCaches = {
  readonly pages: OctetCache<ListPage>;
  readonly prepared: OctetCache<Weighed<Prepared>>;
  readonly plans: OctetCache<Weighed<Plan>>;
  readonly asked: SeenBefore;
};

/** About the number of pages that the cache holds by default. A text that is asked again later would not find its page. */
const askedMax = 8192;

type Weighed<Value> = { readonly value: Value; readonly octets: number };

export type ListCacheSettings = { readonly resultCacheBytesMax: number; readonly planCacheBytesMax: number };

/** Estimated octets of an entry's objects, closures and short texts, besides those counted individually. */
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
    asked: new SeenBefore(askedMax),
  };
}

export type ListingOptions = {
  readonly store: Store;
  readonly listable: Listable;
  readonly caches: ListCaches;
  readonly mac: (text: string) => string;
  /** A page ends with the document that reaches this many octets. */
  readonly pageBytesMax: number;
  /** The queue in which reads of pages wait; undefined: each is read immediately. */
  readonly pageLine: OctetLine | undefined;
  /** Notes slow reads; absent: none. */
  readonly slowLists?: SlowLists | undefined;
  /** Everyone may learn how lists are read; absent: administrators only. */
  readonly development?: boolean | undefined;
  /** Reads what queries include; absent: they include nothing. */
  readonly readRelated?: ReadRelated | undefined;
};

export function createListing(options: ListingOptions): Listing {
  const { store, listable, caches, mac } = options;
  const { pages: cache, prepared, asked } = caches;
  const weigh = weigherOf(listable);
  const planOf = createPlans(options, weigh);

  const versionFor = (principal: Principal, entry?: Prepared) => {
    const related = listable.related === undefined ? [] : tablesOf(filterOf(listable, entry, principal));
    return versionOfList(store, { table: listable.table, related, expansion: entry?.asked.expansion });
  };

  const fresh = createTimedPages(options, planOf);
  const keep = (entry: Prepared, position: Position, page: ListPage): ListPage => {
    if (page.fault === undefined) cache.set(pageKey(entry, position, page.tag), page);
    return page;
  };

  const page = (entry: Prepared, principal: Principal, position: Position, how: PageReading) => {
    if (!entry.isRepeated) {
      return whenKnown(fresh(entry, principal, position, how), (made) => {
        if (how.keepsFirst === true) keep(entry, position, inOctets(made));
        return made;
      });
    }
    return whenKnown(versionFor(principal, entry), ({ version, included }) => {
      const tag = tagOf(version, principal);
      const known = cache.get(pageKey(entry, position, tag));
      if (known === undefined) {
        const reading = { ...how, included };
        return whenKnown(fresh(entry, principal, position, reading), (made) => keep(entry, position, made));
      }
      const isLasting = typeof known.body === 'string' || known.body.length > textBytesMax;
      return isLasting ? known : keep(entry, position, inText(known));
    });
  };

  return {
    listable,
    prepare(text, principal, compile) {
      const view = listable.view?.(principal);
      const aggregated = view?.aggregated === undefined ? '' : 'a';
      const mark = `${view?.mark ?? ''}${aggregated}`;
      // Compiled, a text takes as much again: longer ones would not be cached, and a lookup costs as much as a copy.
      const isShort = 4 * text.length <= prepared.entryOctetsMax;
      const key = isShort ? `${listable.table} ${mark} ${text}` : undefined;
      const known = key === undefined ? undefined : prepared.get(key);
      // Looked up first: two texts with one place in `asked` would otherwise keep each other out of the cache.
      if (known !== undefined) return known.value;
      const isRepeated = asked.note(text);
      const compiled = compile(view === undefined ? listable : { ...listable, ...fieldsOf(view) });
      if (!compiled.ok) return { faults: compiled.faults };
      const shape = `${listable.table} ${shapeOf(compiled.asked)}`;
      const entry = { ...compiled, shape, isRepeated, isRelated: isRelated(compiled.asked.filter) };
      if (isRepeated && key !== undefined) {
        // Values may be slices of the text, which keep the whole text in memory.
        prepared.set(key, { value: entry, octets: weigh(entry.asked) + octetsOfText(text) });
      }
      return entry;
    },
    position: (entry) => positionOf(mac, entry),
    ...{ page, place: createLogPlaces(store, mac).now },
    pageFrom: (from, ...asked) => pageFrom(options, from, ...asked),
    tag: (principal, entry) =>
      whenKnown(versionFor(principal, entry), ({ version }) => tagOf(version, principal)),
    kept: (entry, position, tag) => cache.get(pageKey(entry, position, tag)),
    count: (entry, principal, party) =>
      store.count(listable.table, filterOf(listable, entry, principal), party),
    plan: tellPlans(options, planOf),
  };
}

function tellPlans(
  { development }: ListingOptions,
  planOf: (entry: Prepared, principal: Principal) => Plan,
): Listing['plan'] {
  return (entry, principal, position) =>
    development === true || isAdministrator(principal)
      ? planWords(() => planOf(entry, principal).way(), entry.asked, position)
      : undefined;
}

/** Reads pages from the store, and notes those that took long, also if they failed. */
function createTimedPages(
  options: ListingOptions,
  planOf: (entry: Prepared, principal: Principal) => Plan,
): Listing['page'] {
  const { slowLists, listable } = options;
  const read = createPages(options, planOf);
  if (slowLists === undefined) return read;
  return (...asked) => {
    const startedAt = performance.now();
    const note = (hasFailed: boolean): void => {
      const durationMs = performance.now() - startedAt;
      if (durationMs < slowLists.leastMs) return;
      const [entry, principal, position] = asked;
      const query = entry.asked;
      try {
        const plan = planWords(() => planOf(entry, principal).way(), query, position);
        slowLists.note({ list: listable.table, asked: query, plan, durationMs, hasFailed });
      } catch {
        // There is no plan, for the reason with which the read has failed.
      }
    };
    const page = read(...asked);
    if (page instanceof Promise) {
      page.then(
        () => note(false),
        () => note(true),
      );
    } else note(false);
    return page;
  };
}

function createPages(
  options: ListingOptions,
  planOf: (entry: Prepared, principal: Principal) => Plan,
): Listing['page'] {
  const { store, listable, mac, readRelated } = options;
  return (entry, principal, position, { party, included, request }) => {
    const readNow = () => planOf(entry, principal).page(position, party);
    const shown = (page: Page) => showPage(listable, listable.view?.(principal)?.show, page);
    const { expansion, aggregation } = entry.asked;
    if (aggregation !== undefined)
      return freshGroups(options, entry, principal, position, { party, request });
    if (expansion === undefined) {
      // Shown within the line, too: functions and versions of a history may take long over a page.
      const readAndShow = () =>
        whenKnown(readNow(), (page) => {
          const tag = tagOf(page.version, principal);
          return whenKnown(shown(page), (seen) => finish(mac, entry, position, page, { ...seen, tag }));
        });
      return readInLine(options, request, readAndShow);
    }
    const read = () => readInLine(options, request, readNow);
    const sources = { store, readRelated, of: listable.relations };
    const reading = { principal, party, read, shown, included, tagged: entry.asked.tag !== undefined };
    return whenKnown(readRelatedPage(sources, expansion, reading), ({ page, version, ...added }) =>
      finish(mac, entry, position, page, { ...added, tag: tagOf(version, principal) }),
    );
  };
}

function fieldsOf({
  fields,
  through,
  aggregated,
}: ListView): Pick<Target, 'fields' | 'through' | 'aggregated'> {
  return { fields, through, aggregated };
}

async function freshGroups(
  options: ListingOptions,
  entry: Prepared,
  ...[principal, position, { party, request }]: readonly [Principal, Position, PageReading]
): Promise<ListPage> {
  const { store, listable, pageBytesMax: bytesMax, mac } = options;
  const { aggregation, sort, limit } = entry.asked;
  if (aggregation === undefined) throw new Error('the query is no aggregate query');
  const reading = { table: listable.table, filter: filterOf(listable, entry, principal), bytesMax, party };
  const read = () => readGroups(store, { aggregation, sort, limit }, position, reading);
  const page = await readInLine(options, request, read);
  const shown = { docs: page.docs, tag: tagOf(page.version, principal) };
  return { ...finish(mac, entry, position, page, shown), total: page.total };
}

async function pageFrom(
  options: ListingOptions,
  store: Store,
  ...[entry, principal, position]: readonly [Prepared, Principal, Position]
): Promise<ListPage> {
  const plan = store.plan(queryOf(options, entry, principal));
  const page = await readInLine(options, undefined, () => plan.page(position, ''));
  const shown = { docs: page.docs, tag: tagOf(page.version, principal) };
  if (entry.asked.tag === undefined) return finish(options.mac, entry, position, page, shown);
  const { tags = [] } = await showPage(options.listable, options.listable.view?.(principal)?.show, page);
  return finish(options.mac, entry, position, page, { ...shown, tags });
}

function positionOf(mac: (text: string) => string, { asked, shape }: Prepared): Position | undefined {
  const { position, limit } = asked;
  if (position.from === 'page') return { from: 'offset', offset: (position.page - 1) * limit };
  if (position.from !== 'cursor') return position;
  const opened = openCursor(mac, shape, position.cursor);
  return opened === undefined ? undefined : { from: opened.direction, key: opened.key };
}

/** Weighs the octets of filters and compiled queries, without declared fields, which exist anyway. */
function weigherOf({ fields }: Listable): (value: unknown) => number {
  const declared = new Set<unknown>(fields.values());
  return (value) => entryOctets + octetsOfValue(value, (object) => declared.has(object));
}

/** The store's plan of a query for an audience, with a cache. */
function createPlans(
  { store, listable, caches, pageBytesMax }: ListingOptions,
  weigh: (value: unknown) => number,
): (entry: Prepared, principal: Principal) => Plan {
  return (entry, principal) => {
    const { limit } = entry.asked;
    const key = entry.isRepeated ? `${limit} ${audienceOf(principal)} ${entry.shape}` : undefined;
    const known = key === undefined ? undefined : caches.plans.get(key);
    if (known !== undefined) return known.value;
    const query = queryOf({ listable, pageBytesMax }, entry, principal);
    const plan = store.plan(query);
    if (key === undefined) return plan;
    // The plan holds the values twice: in the filter and as parameters.
    caches.plans.set(key, { value: plan, octets: 2 * weigh(query.filter) });
    return plan;
  };
}

function queryOf(
  { listable, pageBytesMax }: Pick<ListingOptions, 'listable' | 'pageBytesMax'>,
  entry: Prepared,
  principal: Principal,
): ListQuery {
  const { sort, limit, owner, tag } = entry.asked;
  const filter = filterOf(listable, entry, principal);
  const heads = owner !== undefined || tag !== undefined;
  return { table: listable.table, filter, sort, limit, bytesMax: pageBytesMax, heads };
}

/** @param entry undefined: the list without a query */
function filterOf(listable: Listable, entry: Prepared | undefined, principal: Principal): Filter {
  const visible = listable.visibility(principal);
  if (entry === undefined) return visible;
  const { filter } = entry.asked;
  const seen = entry.isRelated ? (listable.related?.seen(filter, principal) ?? never) : filter;
  return allOf([visible, seen]);
}

function pageKey(entry: Prepared, position: Position, tag: string): string {
  const at = position.from === 'start' ? '' : JSON.stringify(position);
  return `${tag} ${entry.asked.limit} ${entry.shape} ${at}`;
}
