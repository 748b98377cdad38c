/**
 * Builds the resources that serve a collection, with the caches that all collections share. Declared and built-in
 * collections (accounts, keys, the audit trail) use the same operations; a `Variant` holds the differences.
 */
import type { MediaType } from '../../http/syntax/media-type.ts';
import { type ContentLimits, contentShape } from '../../kernel/content/content-shape.ts';
import { parseContent, parsePatch } from '../../kernel/content/parse-content.ts';
import { compileValidator } from '../../kernel/content/validator.ts';
import type { CollectionOperation, CollectionVariant } from '../../kernel/documentation.ts';
import type { CallerAddress } from '../../kernel/rate-limit/caller-address.ts';
import type { Operation, Resource } from '../../kernel/resource.ts';
import type { OctetLine } from '../../memory/program-memory.ts';
import { type Permission, permission, permits, visibleTo } from '../../model/access.ts';
import { type Collection, tagFieldOf } from '../../model/collection.ts';
import { ownerField, rankFieldOf } from '../../model/field.ts';
import { anonymous, isAdministrator, type Principal } from '../../model/principal.ts';
import type { LoopTurns } from '../../observe/event-loop.ts';
import type { Services } from '../../store/capabilities.ts';
import { judged, RelatedRows } from '../../store/related-rows.ts';
import { type MaybePromise, type NextRow, type Row, type Store, whenKnown } from '../../store/store.ts';
import type { ContentThreads } from '../content-threads/content-threads.ts';
import { type PatchLimits, patchLimitsDefault } from '../document/json-patch.ts';
import type { HeldReference } from '../document/representation.ts';
import { createStoredQueries, type StoredQueries } from '../queries/stored-queries.ts';
import { createReadRelated, type ReadRelated } from '../relations/related.ts';
import { createRelations, type Relations } from '../relations/relations.ts';
import { collectionResources } from './collection-routes.ts';
import { countDependants } from './dependants.ts';
import type { ListOptions } from './list-answer.ts';
import { createListCaches, createListing, type Listing } from './listing.ts';
import type { QueryOptions, QueryTextLimits } from './query.ts';
import { createReaches, type Reaches } from './reach.ts';
import type { Served, WriteLogic } from './served.ts';
import { showDocs } from './show-docs.ts';
import type { SlowLists } from './slow-lists.ts';
import { subjectOf } from './standing.ts';
import { aggregatedFields, createViews, fieldNamed, type View } from './view.ts';

export type ServingOptions = Pick<Services, 'store' | 'clock' | 'newId'> & {
  /** Asked between two steps of a loop over rows or over functions of the application. */
  readonly turns: LoopTurns;
  readonly base: string;
  readonly collections: ReadonlyMap<string, Collection>;
  /** Accounts, to which fields of the collections may refer. */
  readonly accounts?: { readonly users: Collection };
  /** Keyed with the store's own secret. */
  readonly mac: (text: string) => string;
  readonly queryLimits: QueryTextLimits;
  readonly contentLimits: ContentLimits;
  /** Absent: the event loop processes all content. */
  readonly longContent?: ContentThreads;
  readonly validationErrorsMax: number;
  readonly patchOperationsMax: number;
  readonly bulkDeleteIdsMax: number;
  readonly cascadeMax: number;
  readonly bulkItemsMax: number;
  readonly bulkBytesMax: number;
  readonly documentCharactersMax: number;
  readonly resultCacheBytesMax: number;
  readonly planCacheBytesMax: number;
  readonly storedQuerySeconds: number;
  readonly pageBytesMax: number;
  readonly expandDocumentsMax: number;
  readonly expandBytesMax: number;
  readonly storedQueryBytesMax: number;
  readonly storedQueriesPerOwnerBytesMax: number;
  readonly storedQueriesBytesMax: number;
  readonly targetBytesMax: number;
  /** The address for which the stored queries of an anonymous caller count. */
  readonly addressOf: CallerAddress;
  /** The functions of an application within writes; absent: no collection has any. */
  readonly logic?: (serving: Serving) => WriteLogic;
  /** Notes slow reads of pages; absent: none. */
  readonly slowLists?: SlowLists;
  /** Everyone may learn how lists are read (`Prefer: plan`); absent: administrators only. */
  readonly development?: boolean;
  /** Queues reads of pages from a shared store, of which any number could otherwise run; absent: no queue. */
  readonly pageLine?: OctetLine;
  /** Size of the memory budget; absent: it bounds no content. */
  readonly memoryBytes?: number;
};

/** What all collections share; built once. */
export type Serving = Omit<ServingOptions, 'logic'> & {
  readonly logic: WriteLogic | undefined;
  readonly storedQueries: StoredQueries;
  readonly queriesPath: string;
  readonly listingOf: (listable: Listing['listable']) => Listing;
  readonly relations: ReadonlyMap<string, Relations>;
  readonly readRelated: ReadRelated;
  readonly viewOf: (collection: Collection) => (principal: Principal) => View;
  readonly reaches: Reaches;
};

export function createServing(options: ServingOptions): Serving {
  const { store, mac } = options;
  const caches = createListCaches(options);
  const pageLine = store.shared ? options.pageLine : undefined;
  const relations = createRelations(referableOf(options).values());
  const readRelated = createReadRelated({
    ...{ store, relations, line: pageLine },
    limits: options,
  });
  const viewOf = viewsByCollection(options);
  const serving: Serving = {
    ...options,
    logic: undefined,
    storedQueries: createStoredQueries(options),
    queriesPath: `${options.base}/queries`,
    viewOf,
    reaches: createReaches({ collections: referableOf(options), viewOf }),
    listingOf: (listable) =>
      createListing({
        ...{ store, listable, caches, mac, pageBytesMax: options.pageBytesMax },
        ...{ pageLine, readRelated, development: options.development, slowLists: options.slowLists },
      }),
    ...{ relations, readRelated },
  };
  return { ...serving, logic: options.logic?.(serving) };
}

/** One cache of views for each collection, whichever asks for it. */
function viewsByCollection(options: Pick<Serving, 'collections'>): Serving['viewOf'] {
  const known = new Map<Collection, (principal: Principal) => View>();
  return (collection) => {
    const views = known.get(collection) ?? createViews(collection, isOwned(options, collection));
    known.set(collection, views);
    return views;
  };
}

/** How a built-in collection differs from a declared one. */
export type Variant = {
  /** Writes append events. Default true. */
  readonly announced?: boolean;
  readonly accompany?: Served['accompany'];
  /** Who may list, QUERY, repeat stored queries and delete in bulk. Default: the access rules. */
  readonly listPermission?: (principal: Principal) => Permission;
  /** The available operations. Default all. */
  readonly operations?: ReadonlySet<CollectionOperation>;
  /** Replaces the POST to the collection. */
  readonly create?: (served: Served) => Operation;
  readonly documentation?: CollectionVariant;
};

export type ServedCollection = {
  readonly served: Served;
  /** In the order of the OpenAPI document: the collection, its members, bulk deletion. */
  readonly resources: readonly Resource[];
  /** For the routes that repeat its stored queries (routes.ts). */
  readonly query: QueryOptions;
};

export function serveCollection(
  serving: Serving,
  collection: Collection,
  variant: Variant = {},
): ServedCollection {
  const served = servedOf(serving, collection, variant);
  const list = listOptionsOf(serving, served, variant);
  const query = queryOptionsOf(serving, served, variant);
  const { operations, create, listPermission } = variant;
  const { bulkDeleteIdsMax, bulkItemsMax, bulkBytesMax, memoryBytes } = serving;
  const limits = { ...serving.queryLimits, bulkDeleteIdsMax, bulkItemsMax };
  const resources = collectionResources(served, list, query, {
    documentation: { ...variant.documentation, collection, limits, owned: isOwned(serving, collection) },
    ...(operations === undefined ? {} : { operations }),
    ...(create === undefined ? {} : { create: create(served) }),
    // A built-in collection has creations of its own.
    ...(served.longContent && create === undefined && operations === undefined
      ? { bulk: { bulkItemsMax, bulkBytesMax, memoryBytes } }
      : {}),
    ...(listPermission === undefined ? {} : { bulkDeletePermission: listPermission }),
  });
  return { served, resources, query };
}

export function servedOf(serving: Serving, collection: Collection, variant: Variant = {}): Served {
  const shape = contentShape(collection);
  const { contentLimits, store } = serving;
  const collections = referableOf(serving);
  const view = serving.viewOf(collection);
  return {
    collection,
    store,
    path: `${serving.base}/${collection.name}`,
    validator: compileValidator(collection, serving.validationErrorsMax),
    threads: serving.longContent?.of(collection),
    listing: serving.listingOf(listableOf(serving, collection)),
    relations: serving.relations.get(collection.name),
    readRelated: serving.readRelated,
    expansionLimits: serving.queryLimits,
    view,
    countDependants: (dependence, principal) => countDependants(store, collections, dependence, principal),
    unseenReference: (principal, change) =>
      unseenReference(store, collections, collection, principal, change),
    parse: (bytes: Uint8Array, mediaType: MediaType) => parseContent(bytes, mediaType, shape, contentLimits),
    parsePatch: (bytes: Uint8Array, mediaType: MediaType) => parsePatch(bytes, mediaType, contentLimits),
    patchLimits: patchLimitsOf(serving),
    longContent: serving.collections.get(collection.name) === collection,
    newId: serving.newId,
    clock: serving.clock,
    turns: serving.turns,
    announced: variant.announced ?? true,
    stamps: collection.stamp,
    logic: collection.hooks?.beforeWrite === undefined && !isFollowed(collection) ? undefined : serving.logic,
    ...(variant.accompany === undefined ? {} : { accompany: variant.accompany }),
    bulkDeleteIdsMax: serving.bulkDeleteIdsMax,
    dependantsMax: isFollowed(collection) ? serving.cascadeMax : 0,
    documentCharactersMax: serving.documentCharactersMax,
    pageBytesMax: serving.pageBytesMax,
  };
}

/** True if a deletion deletes or changes documents that refer to the deleted one (§4.7.5). */
function isFollowed({ dependants }: Collection): boolean {
  return dependants.some(({ onDelete }) => onDelete !== 'restrict');
}

/** Collections whose documents refer to others or are referred to. */
export function referableOf({
  collections,
  accounts,
}: Pick<ServingOptions, 'collections' | 'accounts'>): ReadonlyMap<string, Collection> {
  return accounts === undefined
    ? collections
    : new Map([...collections, [accounts.users.name, accounts.users]]);
}

/** Patches have the depth limit of content. */
export function patchLimitsOf({
  patchOperationsMax: operationsMax,
  contentLimits: { jsonDepthMax: depthMax },
}: Pick<ServingOptions, 'patchOperationsMax' | 'contentLimits'>): PatchLimits {
  return { ...patchLimitsDefault, operationsMax, depthMax };
}

export function listOptionsOf(serving: Serving, served: Served, variant: Variant = {}): ListOptions {
  const { collection, path, listing } = served;
  return {
    path,
    listing,
    limits: serving.queryLimits,
    cacheControl: collection.cacheControl,
    permission: variant.listPermission ?? readPermission(collection),
  };
}

export function queryOptionsOf(serving: Serving, served: Served, variant: Variant = {}): QueryOptions {
  const { collection, listing } = served;
  return {
    collection,
    listing,
    limits: serving.queryLimits,
    storedQueries: serving.storedQueries,
    addressOf: serving.addressOf,
    queriesPath: serving.queriesPath,
    permission: variant.listPermission ?? readPermission(collection),
  };
}

function readPermission(collection: Collection): (principal: Principal) => Permission {
  return (principal) => permission(collection.access.read, 'read', principal);
}

/** Administrators may name the owners of the resources: those of a declared collection. */
function isOwned({ collections }: Pick<Serving, 'collections'>, collection: Collection): boolean {
  return collections.get(collection.name) === collection;
}

function listableOf(serving: Serving, collection: Collection): Listing['listable'] {
  const { store, turns, relations, viewOf, reaches } = serving;
  const table = collection.name;
  const view = viewOf(collection);
  const tag = tagFieldOf(collection);
  const refers = collection.references.length > 0;
  const isWhole = collection.hidden.size === 0 && collection.hooks?.afterRead === undefined;
  const isPlain = isWhole && !reaches.isHiding(collection);
  const hasOwners = isOwned(serving, collection);
  return {
    table,
    tag,
    fields: collection.fields,
    searched: collection.searchFields.length > 0,
    relations: relations.get(table),
    searchIndex: collection.searchIndex,
    rank: collection.searchIndex === undefined ? undefined : rankFieldOf(collection.fields),
    visibility: (principal) =>
      visibleTo(collection.access.read, principal, ownerField, (name) => fieldNamed(collection, name)),
    // No path depends on the caller: the paths of anybody are those of all.
    ...(refers ? { through: reaches.through(collection, anonymous), related: { seen: reaches.seen } } : {}),
    ...(isPlain && !hasOwners
      ? {}
      : {
          view: (principal) => {
            const seesOwners = hasOwners && isAdministrator(principal);
            if (isPlain && !seesOwners) return undefined;
            const seen = view(principal);
            const { fields } = seen;
            return {
              mark: `${seen.mark}${reaches.mark(collection, principal)}${seesOwners ? 'o' : ''}`,
              fields,
              through: reaches.through(collection, principal),
              aggregated: aggregatedFields(seen, principal),
              show: seen.mark === '' ? undefined : showDocs({ store, turns }, table, seen, tag),
            };
          },
        }),
  };
}

/**
 * Finds a reference to a resource that the principal may not see (§5.1). Such a change is refused as if the target did
 * not exist: the response would otherwise reveal it, and the reference would prevent its owner from deleting it.
 * Unchanged references are not checked again.
 *
 * @returns the field of such a reference
 */
function unseenReference(
  store: Store,
  collections: ReadonlyMap<string, Collection>,
  collection: Collection,
  principal: Principal,
  { before, next }: { readonly before: Row | undefined; readonly next: NextRow | null },
): MaybePromise<string | undefined> {
  if (next === null) return undefined;
  const from = (index: number): MaybePromise<string | undefined> => {
    for (let at = index; at < next.references.length; at += 1) {
      const { field, id } = next.references[at] as HeldReference;
      const reference = collection.references.find((each) => each.field === field);
      const target = collections.get(reference?.collection ?? '');
      if (target === undefined || permission(target.access.read, 'read', principal) === 'granted') continue;
      if (before !== undefined && subjectOf(before).member(field) === id) continue;
      return whenKnown(store.read(target.name, id), (row) => {
        if (row === undefined) return from(at + 1);
        const rows = new RelatedRows(store);
        const subject = subjectOf(row, rows);
        const isSeen = judged(rows, () => permits(target.access.read, 'read', principal, subject));
        return whenKnown(isSeen, (seen) => (seen ? from(at + 1) : field));
      });
    }
    return undefined;
  };
  return from(0);
}
