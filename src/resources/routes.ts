/**
 * Every resource of the program, from its collections and its store: the one list that the router is made of.
 */
import type { MediaType } from '../http/syntax/media-type.ts';
import { permission, visibleTo } from '../model/access.ts';
import type { Collection } from '../model/collection.ts';
import { type Field, ownerField } from '../model/field.ts';
import type { Principal } from '../model/principal.ts';
import type { Store } from '../store/store.ts';
import { eventsTable } from '../store/store.ts';
import { createByteCache } from './collection/byte-cache.ts';
import type { ListOptions } from './collection/list.ts';
import { createListing, type Listing, type ListPage } from './collection/listing.ts';
import type { QueryOptions } from './collection/query.ts';
import type { QueryTextLimits } from './collection/query-text.ts';
import { collectionResources } from './collection/resources.ts';
import type { Served } from './collection/served.ts';
import type { ContentLimits } from './content/content-limits.ts';
import { contentShape } from './content/form-shape.ts';
import { parseContent, parsePatch } from './content/parse-content.ts';
import { patchLimitsDefault } from './document/json-patch.ts';
import { compileValidator } from './document/validator.ts';
import { eventResources } from './events/resources.ts';
import type { StreamLimits } from './events/stream.ts';
import { eventFields, visibleEvents } from './events/visibility.ts';
import { operationResources } from './operations/resources.ts';
import { queryResources } from './queries/resources.ts';
import { createStoredQueries } from './queries/stored-queries.ts';
import type { Resource } from './resource.ts';

export type RoutesOptions = {
  readonly store: Store;
  readonly base: string;
  readonly collections: ReadonlyMap<string, Collection>;
  readonly newId: () => string;
  readonly clock: () => number;
  /** Keyed with the store's own secret. */
  readonly mac: (text: string) => string;
  readonly queryLimits: QueryTextLimits;
  readonly contentLimits: ContentLimits;
  readonly streamLimits: StreamLimits;
  readonly validationErrorsMax: number;
  readonly patchOperationsMax: number;
  readonly bulkDeleteIdsMax: number;
  readonly documentCharactersMax: number;
  readonly resultCacheCharactersMax: number;
  readonly planCacheEntriesMax: number;
  readonly storedQuerySeconds: number;
};

export function createRoutes(options: RoutesOptions): readonly Resource[] {
  const { store, base, collections } = options;
  const cache = createByteCache<ListPage>(options.resultCacheCharactersMax, ({ body }) => body.length);
  const storedQueries = createStoredQueries({
    store,
    mac: options.mac,
    lifetimeSeconds: options.storedQuerySeconds,
    rememberedMax: options.planCacheEntriesMax * 4,
  });
  const listingOf = (listable: Listing['listable']) =>
    createListing({ store, listable, cache, mac: options.mac, preparedMax: options.planCacheEntriesMax });
  const queries = new Map<string, QueryOptions>();
  const resources: Resource[] = [];
  for (const collection of collections.values()) {
    const listing = listingOf(listableOf(collection));
    const path = `${base}/${collection.name}`;
    const query: QueryOptions = {
      collection,
      listing,
      limits: options.queryLimits,
      storedQueries,
      queriesPath: `${base}/queries`,
    };
    const list: ListOptions = {
      path,
      listing,
      limits: options.queryLimits,
      cacheControl: collection.cacheControl,
      permission: (principal) => permission(collection.access.read, 'read', principal),
    };
    queries.set(collection.name, query);
    resources.push(...collectionResources(servedOf(options, collection, path, listing), list, query));
  }
  const events = {
    table: eventsTable,
    fields: eventFields,
    searched: false,
    visibility: (principal: Principal) => visibleEvents(collections.values(), principal),
  };
  resources.push(
    ...queryResources(`${base}/queries`, storedQueries, queries),
    ...operationResources(store, `${base}/operations`),
    ...eventResources({
      store,
      path: `${base}/events`,
      collections: [...collections.values()],
      list: { listing: listingOf(events), limits: options.queryLimits },
      streamLimits: options.streamLimits,
    }),
  );
  return resources;
}

function listableOf(collection: Collection): Listing['listable'] {
  return {
    table: collection.name,
    fields: collection.fields,
    searched: collection.searchFields.length > 0,
    visibility: (principal) =>
      visibleTo(collection.access.read, principal, ownerField, (name) => memberOf(collection, name)),
  };
}

function memberOf(collection: Collection, name: string): Field {
  const field = collection.fields.get(name);
  if (field === undefined) throw new Error(`the rule of ${collection.name} names an unknown field ${name}`);
  return field;
}

function servedOf(options: RoutesOptions, collection: Collection, path: string, listing: Listing): Served {
  const shape = contentShape(collection);
  return {
    collection,
    store: options.store,
    path,
    validator: compileValidator(collection, options.validationErrorsMax),
    listing,
    parse: (bytes: Uint8Array, mediaType: MediaType) =>
      parseContent(bytes, mediaType, shape, options.contentLimits),
    parsePatch: (bytes: Uint8Array, mediaType: MediaType) =>
      parsePatch(bytes, mediaType, options.contentLimits),
    patchLimits: {
      ...patchLimitsDefault,
      operationsMax: options.patchOperationsMax,
      depthMax: options.contentLimits.jsonDepthMax,
    },
    newId: options.newId,
    clock: options.clock,
    announced: true,
    bulkDeleteIdsMax: options.bulkDeleteIdsMax,
    documentCharactersMax: options.documentCharactersMax,
  };
}
