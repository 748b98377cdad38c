/**
 * Lists: from a request to a page of representations (§4.2, §4.9). GET, QUERY, stored queries and the event log share
 * this file, so visibility, cursors, links and caches are the same for all.
 *
 * Three caches, bounded in octets, last between requests: compiled texts; the store's plans, one for each audience; and
 * finished pages under the version of the table, which every write changes. They take in what is asked a second time.
 */
import { hash } from 'node:crypto';
import type { Request } from '../../http/message.ts';
import type { Ask } from '../../kernel/resource.ts';
import { OctetCache, octetsOfText, octetsOfValue, SeenBefore } from '../../memory/octet-cache.ts';
import type { OctetLine } from '../../memory/program-memory.ts';
import type { Permission } from '../../model/access.ts';
import type { Party } from '../../model/fair-queue.ts';
import type { Fields } from '../../model/field.ts';
import { allOf, type Filter, isRelated, never, tablesOf } from '../../model/filter.ts';
import { audienceOf, isAdministrator, type Principal } from '../../model/principal.ts';
import type { Services } from '../../store/capabilities.ts';
import type { ListQuery, MaybePromise, Page, Plan, Position, Store } from '../../store/store.ts';
import { whenKnown } from '../../store/store.ts';
import type { Way } from '../../store/store-report.ts';
import { createLogPlaces } from '../events/log-places.ts';
import { openCursor } from '../query/cursor.ts';
import {
  type Asked,
  askedAt,
  type Compiled,
  type Fault,
  isRelativeQuery,
  type QueryTextLimits,
  shapeOf,
  type Target,
} from '../query/list-query.ts';
import { type ListVersion, type ReadRelated, readRelatedPage, versionOfList } from '../relations/related.ts';
import {
  finish,
  inOctets,
  inText,
  type ListPage,
  readGroups,
  readInLine,
  tagOf,
  textBytesMax,
} from './list-page.ts';
import type { SlowLists } from './slow-lists.ts';
import { type ShowDocs, showPage } from './view.ts';

export type Listable = Target & {
  /** Path at which GET returns the list. */
  readonly path: string;
  readonly cacheControl: string;
  readonly permission: (principal: Principal) => Permission;
  /** Absent: the settings. */
  readonly limits?: QueryTextLimits;
  readonly visibility: (principal: Principal) => Filter;
  /** Which fields, and which parts of the rows, the principal sees; undefined: those of the target, and all. */
  readonly view?: (principal: Principal) => ListView | undefined;
  /** What the list rests on beyond its table; absent: nothing. */
  readonly related?: RelatedRows;
  /** Changes what every query asks for; absent: nothing does. */
  readonly narrowed?: Narrowed;
};

export type Narrowed = {
  /** Names the change, for caches. */
  readonly key: string;
  readonly compiled: (compiled: Asked) => Compiled;
};

type RelatedRows = {
  /** Limits the filter of a query to those rows of other tables that the principal may read. */
  readonly seen: (filter: Filter, principal: Principal) => Filter;
};

type ListView = Pick<Target, 'fields' | 'through'> & {
  /** Distinguishes views with different fields; empty if all are visible. */
  readonly mark: string;
  /** The fields that aggregates may name; absent: those that queries may name. */
  readonly aggregated?: Fields | undefined;
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
  /** Present for a query with times relative to the present: a digest of the values that they have in this request, by which its tag differs. */
  readonly moment?: string;
  /** The token of a QUERY, computed once. */
  token?: string;
};

/** One that was compiled: its relative times have no values yet. */
type CompiledOnce = Omit<Prepared, 'moment'> & { readonly isRelative: boolean };

/** 48 bits distinguish the moments of one query. */
const momentCharacters = 8;
const noStore = /\bno-store\b/i;
const isPrivate = /\bprivate\b/i;

type PageReading = {
  /** For whom the store reads. */
  readonly party: Party;
  /** Caches the page of a first request as well, because `Content-Location` names it. */
  readonly keepsFirst?: boolean;
  /** Versions of what the page includes, if they are known. */
  readonly included?: readonly string[] | undefined;
  /** Whose client may leave before the page is read. */
  readonly request?: Pick<Request, 'isGone'> | undefined;
};

/** The caches that all listings of the program share. */
type ListCaches = {
  readonly pages: OctetCache<ListPage>;
  readonly prepared: OctetCache<Weighed<CompiledOnce>>;
  readonly plans: OctetCache<Weighed<Plan>>;
  readonly asked: SeenBefore;
};

/** About the number of pages that the cache holds by default. A text that is asked again later would not find its page. */
const askedMax = 8192;

type Weighed<Value> = { readonly value: Value; readonly octets: number };

/** Estimated octets of an entry's objects, closures and short texts, besides those counted individually. */
const entryOctets = 1024;

export function createListCaches({
  resultCacheBytesMax,
  planCacheBytesMax,
}: Pick<Services['settings'], 'resultCacheBytesMax' | 'planCacheBytesMax'>): ListCaches {
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

/** The parts that all lists of the program share. */
export type ListSources = Pick<Services, 'store' | 'settings'> & {
  readonly caches: ListCaches;
  /** Keyed with the store's own secret. */
  readonly mac: (text: string) => string;
  /** The queue in which reads of pages wait; undefined: each is read immediately. */
  readonly pageLine: OctetLine | undefined;
  /** Notes slow reads; absent: none. */
  readonly slowLists?: SlowLists | undefined;
  /** Reads what queries include; absent: they include nothing. */
  readonly readRelated?: ReadRelated | undefined;
};

export class Listing {
  readonly listable: Listable;
  readonly limits: QueryTextLimits;
  /** The place in the event log that no page is behind which is read from now on (`Comity-Position`). */
  readonly place: () => string;
  readonly #sources: ListSources;
  /** A page ends with the document that reaches this many octets. */
  readonly #pageBytesMax: number;
  readonly #declared: ReadonlySet<unknown>;

  constructor(sources: ListSources, listable: Listable) {
    this.listable = listable;
    this.limits = listable.limits ?? sources.settings;
    this.place = createLogPlaces(sources.store, sources.mac).now;
    this.#sources = sources;
    this.#pageBytesMax = sources.settings.pageBytesMax;
    this.#declared = new Set(listable.fields.values());
  }

  /**
   * Compiles for the fields that the principal may name, with a cache; `given` holds all other inputs of the compiler. Times relative to the
   * present get their values here, once for the request.
   */
  prepare(
    given: string,
    { principal, now }: Pick<Ask, 'principal' | 'now'>,
    compile: (target: Target) => Compiled,
  ): Prepared | { readonly faults: readonly Fault[] } {
    const prepared = this.#compiled(given, principal, compile);
    if ('faults' in prepared || !prepared.isRelative) return prepared;
    const asked = askedAt(prepared.asked, now);
    const moment = hash('sha256', shapeOf(asked), 'base64url').slice(0, momentCharacters);
    // Neither its plan nor its pages can be used again when the moment has passed.
    return { ...prepared, asked, moment, isRepeated: false };
  }

  #compiled(
    given: string,
    principal: Principal,
    compile: (target: Target) => Compiled,
  ): CompiledOnce | { readonly faults: readonly Fault[] } {
    const { listable } = this;
    const { prepared, asked } = this.#sources.caches;
    const { table, narrowed } = listable;
    const view = listable.view?.(principal);
    const mark = `${view?.mark ?? ''}${view?.aggregated === undefined ? '' : 'a'}`;
    const text = narrowed === undefined ? given : `${narrowed.key} ${given}`;
    // Compiled, a text takes as much again: longer ones would not be cached, and a lookup costs as much as a copy.
    const isShort = 4 * text.length <= prepared.entryOctetsMax;
    const key = isShort ? `${table} ${mark} ${text}` : undefined;
    const known = key === undefined ? undefined : prepared.get(key);
    // Looked up first: two texts with one place in `asked` would otherwise keep each other out of the cache.
    if (known !== undefined) return known.value;
    const isRepeated = asked.note(text);
    const whole = compile(view === undefined ? listable : { ...listable, ...fieldsOf(view) });
    const compiled = whole.ok && narrowed !== undefined ? narrowed.compiled(whole.asked) : whole;
    if (!compiled.ok) return { faults: compiled.faults };
    const shape = `${table} ${shapeOf(compiled.asked)}`;
    const { asked: query } = compiled;
    const facts = { isRelated: isRelated(query.filter), isRelative: isRelativeQuery(query) };
    const entry = { asked: query, shape, isRepeated, ...facts };
    if (isRepeated && key !== undefined) {
      // Values may be slices of the text, which keep the whole text in memory.
      prepared.set(key, { value: entry, octets: this.#weigh(entry.asked) + octetsOfText(text) });
    }
    return entry;
  }

  /** Returns the requested position; undefined if the cursor was altered or belongs to another query. */
  position({ asked, shape }: Prepared): Position | undefined {
    const { position, limit } = asked;
    if (position.from === 'page') return { from: 'offset', offset: (position.page - 1) * limit };
    if (position.from !== 'cursor') return position;
    const opened = openCursor(this.#sources.mac, shape, position.cursor);
    return opened === undefined ? undefined : { from: opened.direction, key: opened.key };
  }

  /**
   * Returns a cached page if the table has not changed since, otherwise reads it from the store.
   * @throws GroupsExceeded for an aggregate query
   */
  page(entry: Prepared, principal: Principal, position: Position, how: PageReading): MaybePromise<ListPage> {
    if (!entry.isRepeated) {
      return whenKnown(this.#readTimed(entry, principal, position, how), (made) => {
        if (how.keepsFirst === true) this.#keep(entry, position, inOctets(made));
        return made;
      });
    }
    return whenKnown(this.#version(principal, entry), ({ version, included }) => {
      const known = this.kept(entry, position, tagOf(version, principal, entry));
      if (known === undefined) {
        const read = this.#readTimed(entry, principal, position, { ...how, included });
        return whenKnown(read, (made) => this.#keep(entry, position, made));
      }
      const isLasting = typeof known.body === 'string' || known.body.length > textBytesMax;
      return isLasting ? known : this.#keep(entry, position, inText(known));
    });
  }

  /** A page of another store in front of the same rows, neither cached nor changed by a view. */
  async pageFrom(store: Store, entry: Prepared, principal: Principal, position: Position): Promise<ListPage> {
    const plan = store.plan(this.#queryOf(entry, principal));
    const page = await this.#inLine(undefined, () => plan.page(position, ''));
    const shown = { docs: page.docs, tag: tagOf(page.version, principal, entry) };
    if (entry.asked.tag === undefined) return this.#finish(entry, position, page, shown);
    const { tags = [] } = await this.#show(principal, page);
    return this.#finish(entry, position, page, { ...shown, tags });
  }

  /** A page of documents as they are stored, with their heads. */
  rows(entry: Prepared, principal: Principal, position: Position, party: Party): MaybePromise<Page> {
    const plan = this.#sources.store.plan({ ...this.#queryOf(entry, principal), heads: true });
    return this.#inLine(undefined, () => plan.page(position, party));
  }

  /** The tag that `page` would return now, without reading the page. @param entry absent: the list without a query */
  tag(principal: Principal, entry?: Prepared): MaybePromise<string> {
    return whenKnown(this.#version(principal, entry), ({ version }) => tagOf(version, principal, entry));
  }

  /** A cached page with an earlier tag, if it is still in the cache. */
  kept(entry: Prepared, position: Position, tag: string): ListPage | undefined {
    return this.#sources.caches.pages.get(pageKey(entry, position, tag));
  }

  /** Cache-Control of a list. A cache may not go on with one whose relative times have passed, however long its documents stay fresh. */
  cacheControl(entry: Prepared | undefined): string {
    const { cacheControl } = this.listable;
    if (entry?.moment === undefined || noStore.test(cacheControl)) return cacheControl;
    return isPrivate.test(cacheControl) ? 'private, no-cache' : 'no-cache';
  }

  count(entry: Prepared, principal: Principal, party: Party): MaybePromise<number> {
    return this.#sources.store.count(this.listable.table, this.#filterOf(entry, principal), party);
  }

  /** How a page is read, in words; undefined if the principal may not know: everyone may in development, else administrators. */
  plan(entry: Prepared, principal: Principal, position: Position): string | undefined {
    return this.#sources.settings.development || isAdministrator(principal)
      ? this.#planWords(entry, principal, position)
      : undefined;
  }

  #planWords(entry: Prepared, principal: Principal, position: Position): string {
    return planWords(() => this.#planOf(entry, principal).way(), entry.asked, position);
  }

  /** Reads a page from the store, and notes one that took long, also if it failed. */
  #readTimed(...asked: Parameters<Listing['page']>): MaybePromise<ListPage> {
    const { slowLists } = this.#sources;
    if (slowLists === undefined) return this.#read(...asked);
    const startedAt = performance.now();
    const note = (hasFailed: boolean): void => {
      const durationMs = performance.now() - startedAt;
      if (durationMs < slowLists.leastMs) return;
      const [entry, principal, position] = asked;
      try {
        const plan = this.#planWords(entry, principal, position);
        slowLists.note({ list: this.listable.table, asked: entry.asked, plan, durationMs, hasFailed });
      } catch {
        // There is no plan, for the reason with which the read has failed.
      }
    };
    const page = this.#read(...asked);
    if (page instanceof Promise) {
      page.then(
        () => note(false),
        () => note(true),
      );
    } else note(false);
    return page;
  }

  #read(
    entry: Prepared,
    principal: Principal,
    position: Position,
    { party, included, request }: PageReading,
  ): MaybePromise<ListPage> {
    const { expansion, aggregation, tag: tagField } = entry.asked;
    if (aggregation !== undefined) return this.#readGroups(entry, principal, position, { party, request });
    const readNow = () => this.#planOf(entry, principal).page(position, party);
    const shown = (page: Page) => this.#show(principal, page);
    if (expansion === undefined) {
      // Shown within the line, too: functions and versions of a history may take long over a page.
      return this.#inLine(request, () =>
        whenKnown(readNow(), (page) => {
          const tag = tagOf(page.version, principal, entry);
          return whenKnown(shown(page), (seen) => this.#finish(entry, position, page, { ...seen, tag }));
        }),
      );
    }
    const read = () => this.#inLine(request, readNow);
    const { store, readRelated } = this.#sources;
    const sources = { store, readRelated, of: this.listable.relations };
    const reading = { principal, party, read, shown, included, tagged: tagField !== undefined };
    return whenKnown(readRelatedPage(sources, expansion, reading), ({ page, version, ...added }) =>
      this.#finish(entry, position, page, { ...added, tag: tagOf(version, principal, entry) }),
    );
  }

  async #readGroups(
    entry: Prepared,
    principal: Principal,
    position: Position,
    { party, request }: PageReading,
  ): Promise<ListPage> {
    const { aggregation, sort, limit } = entry.asked;
    if (aggregation === undefined) throw new Error('the query is no aggregate query');
    const filter = this.#filterOf(entry, principal);
    const reading = { table: this.listable.table, filter, bytesMax: this.#pageBytesMax, party };
    const asked = { aggregation, sort, limit };
    const read = () => readGroups(this.#sources.store, asked, position, reading);
    const page = await this.#inLine(request, read);
    const shown = { docs: page.docs, tag: tagOf(page.version, principal, entry) };
    return { ...this.#finish(entry, position, page, shown), total: page.total };
  }

  #inLine<T>(request: PageReading['request'], read: () => MaybePromise<T>): MaybePromise<T> {
    const { pageLine, settings } = this.#sources;
    return readInLine({ pageLine, pageBytesMax: settings.pageBytesMax }, request, read);
  }

  #finish(entry: Prepared, position: Position, page: Page, shown: Parameters<typeof finish>[4]): ListPage {
    return finish(this.#sources.mac, entry, position, page, shown);
  }

  #show(principal: Principal, page: Page): ReturnType<typeof showPage> {
    return showPage(this.listable, this.listable.view?.(principal)?.show, page);
  }

  #keep(entry: Prepared, position: Position, page: ListPage): ListPage {
    if (page.fault === undefined) this.#sources.caches.pages.set(pageKey(entry, position, page.tag), page);
    return page;
  }

  #version(principal: Principal, entry: Prepared | undefined): MaybePromise<ListVersion> {
    const { table, related: beyond } = this.listable;
    const related = beyond === undefined ? [] : tablesOf(this.#filterOf(entry, principal));
    return versionOfList(this.#sources.store, { table, related, expansion: entry?.asked.expansion });
  }

  /** The store's plan of a query for an audience, with a cache. */
  #planOf(entry: Prepared, principal: Principal): Plan {
    const { store, caches } = this.#sources;
    const key = entry.isRepeated ? `${entry.asked.limit} ${audienceOf(principal)} ${entry.shape}` : undefined;
    const known = key === undefined ? undefined : caches.plans.get(key);
    if (known !== undefined) return known.value;
    const query = this.#queryOf(entry, principal);
    const plan = store.plan(query);
    // The plan holds the values twice: in the filter and as parameters.
    if (key !== undefined) caches.plans.set(key, { value: plan, octets: 2 * this.#weigh(query.filter) });
    return plan;
  }

  #queryOf(entry: Prepared, principal: Principal): ListQuery {
    const { sort, limit, owner, tag } = entry.asked;
    return {
      ...{ table: this.listable.table, filter: this.#filterOf(entry, principal), sort, limit },
      bytesMax: this.#pageBytesMax,
      heads: owner !== undefined || tag !== undefined,
    };
  }

  /** @param entry undefined: the list without a query */
  #filterOf(entry: Prepared | undefined, principal: Principal): Filter {
    const { visibility, related } = this.listable;
    const visible = visibility(principal);
    if (entry === undefined) return visible;
    const { filter } = entry.asked;
    return allOf([visible, entry.isRelated ? (related?.seen(filter, principal) ?? never) : filter]);
  }

  /** Weighs the octets of filters and compiled queries, without declared fields, which exist anyway. */
  #weigh(value: unknown): number {
    return entryOctets + octetsOfValue(value, (object) => this.#declared.has(object));
  }
}

function fieldsOf({ fields, through, aggregated }: ListView): Partial<Target> {
  return { fields, through, aggregated };
}

function pageKey(entry: Prepared, position: Position, tag: string): string {
  const at = position.from === 'start' ? '' : JSON.stringify(position);
  return `${tag} ${entry.asked.limit} ${entry.shape} ${at}`;
}

// Words for people about the way that a list was read, as the value of `Comity-Plan` (§4.21.6): a token that programs can compare, and a
// sentence. It shows the collection's indexes and its rules, so only administrators get it, and everyone in development.

/** Rows that an engine skips at the cost of a page. */
const skippedMax = 1000;

/** A header field has no other characters, and a string of structured fields none of the last two. */
const unfit = /[^ -~]|["\\]/g;

/** @param wayTo not called if groups are computed, which reads every document of the filter */
function planWords(
  wayTo: () => Way,
  asked: Pick<Asked, 'aggregation' | 'expansion'>,
  position: Position,
): string {
  const way = asked.aggregation === undefined ? wayTo() : undefined;
  const sentences = [sentenceOf(way)];
  if (position.from === 'offset' && position.offset > skippedMax && asked.aggregation === undefined)
    sentences.push(
      `It reads and skips ${position.offset} documents before the page; the next link of a page costs the same at any place.`,
    );
  if (asked.expansion !== undefined) sentences.push('The documents that it includes are read by their ids.');
  return `${way?.by ?? 'groups'};words="${sentences.join(' ').replaceAll(unfit, '?')}"`;
}

function sentenceOf(way: Way | undefined): string {
  if (way === undefined) return 'Reads every document that the filter matches, and adds them up in groups.';
  switch (way.by) {
    case 'nothing':
      return 'Reads nothing: no document can match.';
    case 'one':
      return `Looks up at most one document by ${way.fields.join(', ')}.`;
    case 'index':
      return `Walks the index of ${way.fields.join(', ')} in the order of the list: a page costs what it returns.`;
    case 'words':
      return `Finds documents in the index of the words of ${way.fields.join(', ')}, then sorts them.`;
    case 'references':
      return `Begins with the documents of ${way.table} that ${way.field} names, found by an index, then reads those that refer to them.`;
    case 'scan':
      return `Looks at every document until the page is full: no index serves this filter and order.${adviceOf(way.wanted)}`;
  }
}

function adviceOf(wanted: readonly string[] | undefined): string {
  return wanted === undefined ? '' : ` An index of ${wanted.join(', ')} would.`;
}
