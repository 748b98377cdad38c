/**
 * Builds the resources that serve a collection, with the caches that all collections share: the collection, its members,
 * bulk creation and bulk deletion (§4.1). Declared and built-in collections (accounts, keys, the audit trail) use the
 * same operations; a `Variant` holds the differences.
 */
import { formatHttpDate } from '../../http/syntax/http-date.ts';
import { formatLink } from '../../http/syntax/link.ts';
import { formatDeprecation } from '../../http/syntax/structured-field.ts';
import { contentShape } from '../../kernel/content/content-shape.ts';
import { parseContent, parsePatch } from '../../kernel/content/parse-content.ts';
import { compileValidator } from '../../kernel/content/validator.ts';
import {
  type CollectionDocumentation,
  type CollectionOperation,
  type CollectionVariant,
  pascalCase,
  pathParameter,
} from '../../kernel/documentation.ts';
import type { Operation, Resource } from '../../kernel/resource.ts';
import { type Permission, permission } from '../../model/access.ts';
import { type Collection, tagFieldOf, visibleWhere } from '../../model/collection.ts';
import { rankFieldOf } from '../../model/field.ts';
import { anonymous, isAdministrator, type Principal } from '../../model/principal.ts';
import { patchLimitsOf } from '../document/json-patch.ts';
import { createReadRelated } from '../relations/related.ts';
import { createRelations } from '../relations/relations.ts';
import { bulkOperation, exportOperation } from './bulk.ts';
import { importOperation } from './import.ts';
import { listOperation } from './list-answer.ts';
import { createListCaches, type Listable, Listing, type ListSources } from './listing.ts';
import { readOperation } from './member.ts';
import { queryOperation } from './query.ts';
import { bulkDeleteOperation, removeOperation, restoreOperation } from './remove.ts';
import type { Served, Serving, WriteLogic } from './served-collection.ts';
import { createStoredQueries } from './stored-queries.ts';
import { updateManyOperation } from './update-many.ts';
import { aggregatedFields, createViews, showDocs, type View } from './view.ts';
import { countDependants, createReaches, unseenReference } from './visible-references.ts';
import { createOperation, patchOperation, replaceOperation } from './write-operations.ts';

export type ServingOptions = Omit<
  Serving,
  'logic' | 'storedQueries' | 'queriesPath' | 'listingOf' | 'relations' | 'readRelated' | 'viewOf' | 'reaches'
> &
  Pick<ListSources, 'mac' | 'slowLists'> & {
    /** The functions of an application within writes; absent: no collection has any. */
    readonly logic?: (serving: Serving) => WriteLogic;
  };

export function createServing(options: ServingOptions): Serving {
  const { store, base, settings, memory, mac } = options;
  const caches = createListCaches(settings);
  // Any number of reads from a shared store could otherwise run at once.
  const pageLine = store.shared ? memory?.pages : undefined;
  const relations = createRelations(referableOf(options).values());
  const readRelated = createReadRelated(store, relations, settings, pageLine);
  const viewOf = viewsByCollection(options);
  const sources: ListSources = { ...options, caches, pageLine, readRelated };
  const serving: Serving = {
    ...options,
    logic: undefined,
    storedQueries: createStoredQueries(store, mac, settings),
    queriesPath: `${base}/queries`,
    viewOf,
    reaches: createReaches(referableOf(options), viewOf),
    listingOf: (listable) => new Listing(sources, listable),
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
type Variant = {
  /** Writes append events. Default true. */
  readonly announced?: boolean;
  readonly accompany?: Served['accompany'];
  /** Who may list, QUERY, repeat stored queries and delete in bulk. Default: the access rules. */
  readonly listPermission?: (principal: Principal) => Permission;
  /** The available operations; others are 405, or 404 if a resource has none left. Default all. */
  readonly operations?: ReadonlySet<CollectionOperation>;
  /** Replaces the POST to the collection. */
  readonly create?: (served: Served) => Operation;
  readonly documentation?: CollectionVariant;
  /** The maximum length of its documents. Default: that of all collections. */
  readonly documentCharactersMax?: number;
};

export type ServedCollection = {
  readonly served: Served;
  /** In the order of the OpenAPI document: the collection, its members, bulk creation, bulk deletion. */
  readonly resources: readonly Resource[];
};

type Named = readonly [name: CollectionOperation, method: string, operation: Operation];

export function serveCollection(
  serving: Serving,
  collection: Collection,
  variant: Variant = {},
): ServedCollection {
  const served = servedOf(serving, collection, variant);
  const { operations, create, listPermission } = variant;
  const documentation = {
    ...variant.documentation,
    ...{ collection, limits: serving.settings, owned: isOwned(serving, collection) },
  };
  const constantFields = deprecationFields(collection);
  const resource = (
    part: CollectionDocumentation['part'],
    path: string,
    named: readonly Named[],
  ): readonly Resource[] => {
    const kept = named.filter(([name]) => operations === undefined || operations.has(name));
    const byMethod = new Map(kept.map(([, method, operation]) => [method, operation] as const));
    return byMethod.size === 0
      ? []
      : [
          {
            pattern: `${served.path}${path}`,
            documentation: { ...documentation, part },
            operations: byMethod,
            constantFields,
            offers: ['application/json'],
          },
        ];
  };
  // A built-in collection has creations of its own.
  const takesBulk = served.longContent && create === undefined && operations === undefined;
  const resources = [
    ...resource('collection', '', [
      ['list', 'GET', listOperation(served.listing) as Operation],
      ['create', 'POST', create?.(served) ?? (createOperation(served) as Operation)],
      ['query', 'QUERY', queryOperation(served) as Operation],
      ...(takesBulk ? ([['patch-many', 'PATCH', updateManyOperation(served) as Operation]] as const) : []),
    ]),
    ...resource('member', '/{id}', [
      ['read', 'GET', readOperation(served) as Operation],
      ['replace', 'PUT', replaceOperation(served) as Operation],
      ['patch', 'PATCH', patchOperation(served) as Operation],
      ['remove', 'DELETE', removeOperation(served) as Operation],
    ]),
    ...(takesBulk
      ? resource('bulk', '/bulk', [
          ['export', 'GET', exportOperation(served) as Operation],
          ['bulk', 'POST', bulkOperation(served) as Operation],
        ])
      : []),
    ...(takesBulk
      ? resource('import', '/import', [['import', 'POST', importOperation(served) as Operation]])
      : []),
    ...resource('bulk-delete', '/bulk-delete', [
      ['bulk-delete', 'POST', bulkDeleteOperation(served, listPermission) as Operation],
    ]),
  ];
  return { served, resources };
}

/** POST {member}/restore (§4.7.9). @param served a collection with `softDelete` */
export function restoreResource(served: Served): Resource {
  const { collection } = served;
  return {
    pattern: `${served.path}/{id}/restore`,
    documentation: {
      name: `${pascalCase(collection.name)}Restoration`,
      tag: collection,
      parameters: [pathParameter('id', 'Id of the document.')],
    },
    operations: new Map([['POST', restoreOperation(served) as Operation]]),
    constantFields: deprecationFields(collection),
    offers: ['application/json'],
  };
}

/** Fields of every response of a deprecated collection: Deprecation (RFC 9745) and Sunset (RFC 8594), as declared. */
export function deprecationFields({ deprecation }: Collection): readonly string[] {
  if (deprecation === undefined) return [];
  const fields = ['Deprecation', formatDeprecation(Date.parse(deprecation.since))];
  if (deprecation.sunset !== undefined) {
    fields.push('Sunset', formatHttpDate(Date.parse(deprecation.sunset)));
  }
  if (deprecation.link !== undefined) {
    fields.push('Link', formatLink([{ target: deprecation.link, rel: 'deprecation' }]));
  }
  return fields;
}

export function servedOf(serving: Serving, collection: Collection, variant: Variant = {}): Served {
  const shape = contentShape(collection);
  const { store, settings } = serving;
  const collections = referableOf(serving);
  const isFollowed = collection.dependants.some(({ onDelete }) => onDelete !== 'restrict');
  return {
    ...{ serving, collection, store, newId: serving.newId, clock: serving.clock, turns: serving.turns },
    path: `${serving.base}/${collection.name}`,
    validator: compileValidator(collection, settings.validationErrorsMax),
    threads: serving.longContent?.of(collection),
    listing: serving.listingOf(listableOf(serving, collection, variant)),
    relations: serving.relations.get(collection.name),
    view: serving.viewOf(collection),
    countDependants: (dependence, principal) => countDependants(store, collections, dependence, principal),
    unseenReference: (principal, change) =>
      unseenReference(store, collections, collection, principal, change),
    parse: (bytes, mediaType) => parseContent(bytes, mediaType, shape, settings),
    parsePatch: (bytes, mediaType) => parsePatch(bytes, mediaType, settings),
    patchLimits: patchLimitsOf(settings),
    longContent: isOwned(serving, collection),
    announced: variant.announced ?? true,
    stamps: collection.stamp,
    logic: collection.hooks?.beforeWrite === undefined && !isFollowed ? undefined : serving.logic,
    files: collection.files === undefined ? undefined : serving.files,
    ...(variant.accompany === undefined ? {} : { accompany: variant.accompany }),
    // A deletion deletes or changes documents that refer to the deleted one (§4.7.5).
    dependantsMax: isFollowed ? settings.cascadeMax : 0,
    documentCharactersMax: variant.documentCharactersMax ?? settings.documentCharactersMax,
  };
}

/** Collections whose documents refer to others or are referred to. */
function referableOf({
  collections,
  accounts,
}: Pick<Serving, 'collections' | 'accounts'>): ReadonlyMap<string, Collection> {
  return accounts === undefined
    ? collections
    : new Map([...collections, [accounts.users.name, accounts.users]]);
}

/** Administrators may name the owners of the resources: those of a declared collection. */
function isOwned({ collections }: Pick<Serving, 'collections'>, collection: Collection): boolean {
  return collections.get(collection.name) === collection;
}

/** Lists of a collection that another resource serves, or none does. */
export function listingOf(serving: Serving, collection: Collection): Listing {
  return serving.listingOf(listableOf(serving, collection, {}));
}

function listableOf(serving: Serving, collection: Collection, variant: Variant): Listable {
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
    path: `${serving.base}/${table}`,
    cacheControl: collection.cacheControl,
    permission:
      variant.listPermission ?? ((principal) => permission(collection.access.read, 'read', principal)),
    fields: collection.fields,
    searched: collection.searchFields.length > 0,
    relations: relations.get(table),
    searchIndex: collection.searchIndex,
    rank: collection.searchIndex === undefined ? undefined : rankFieldOf(collection.fields),
    visibility: (principal) => visibleWhere(collection, collection.access.read, principal),
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
