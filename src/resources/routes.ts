/**
 * Lists the resources of the program's collections and of its store, in the order of the OpenAPI document.
 * collection/serving.ts turns a collection into resources.
 */

import { json, pageSchema } from '../kernel/documentation.ts';
import { operationResources, operationSchema } from '../kernel/operations/operation-routes.ts';
import { operationsTable } from '../kernel/operations/stored-request.ts';
import type { Operation, Resource } from '../kernel/resource.ts';
import { permission } from '../model/access.ts';
import { madeFields } from '../model/field.ts';
import type { Filter } from '../model/filter.ts';
import { isAdministrator, type Principal } from '../model/principal.ts';
import type { Observe } from '../observe/observation.ts';
import type { OpenConnections } from '../observe/open-connections.ts';
import { eventsTable } from '../store/store.ts';
import { type ListOptions, listOperation } from './collection/list-answer.ts';
import type { QueryOptions } from './collection/query.ts';
import { restoreResource } from './collection/restore.ts';
import {
  createServing,
  type ServedCollection,
  type Serving,
  type ServingOptions,
  serveCollection,
} from './collection/serving.ts';
import type { ShowDocs } from './collection/show-docs.ts';
import { eventResources } from './events/event-log-routes.ts';
import { historyResource } from './events/history.ts';
import { createLogPlaces } from './events/log-places.ts';
import { createLogViews, eventTag, showEvents } from './events/seen-event.ts';
import type { StreamLimits } from './events/stream.ts';
import { allEventFields, eventFields, visibleEvents } from './events/visibility.ts';
import { createWithholds } from './events/withheld-text.ts';
import { queryResources } from './queries/stored-query-routes.ts';

export type RoutesOptions = ServingOptions & {
  /** Receives failures of hooks that no response can tell. */
  readonly observe?: Observe;
  readonly streamLimits: StreamLimits;
  readonly eventsWaitSecondsMax: number;
  readonly connections: Pick<OpenConnections, 'enter'>;
  /** The built-in collections, which emit no events, and further resources. */
  readonly builtIn?: (serving: Serving) => readonly (ServedCollection | Resource)[];
  /** Publishing events: POST to the event log, and paths below it. */
  readonly postedEvents?: (serving: Serving) => {
    readonly post: Operation;
    readonly resources: readonly Resource[];
  };
};

export function createRoutes(options: RoutesOptions): readonly Resource[] {
  const { store, base, collections } = options;
  const serving = createServing(options);
  const declared = [...collections.values()].map((collection) => serveCollection(serving, collection));
  const served = [...declared, ...(options.builtIn?.(serving) ?? [])];
  const queries = new Map<string, QueryOptions>(
    served.flatMap((each) => ('query' in each ? [[each.query.collection.name, each.query] as const] : [])),
  );
  const posted = options.postedEvents?.(serving);
  const logViews = createLogViews(collections.values());
  const withholds = createWithholds(store, collections.values());
  const events = {
    table: eventsTable,
    fields: eventFields,
    tag: eventTag,
    searched: false,
    visibility: (principal: Principal) => visibleEvents(collections.values(), principal),
    // No path of a query leads from an event, but rules may lead beyond references.
    ...(isRelating(collections) ? { related: { seen: (filter: Filter) => filter } } : {}),
    view: (principal: Principal) => {
      const view = logViews(principal);
      const isAdmin = isAdministrator(principal);
      const show = showEvents(serving, view, withholds(principal));
      return {
        mark: isAdmin ? 'a' : '',
        fields: isAdmin ? allEventFields : eventFields,
        show: isAdmin && view.hides === undefined ? asStored(show) : show,
      };
    },
  };
  return [
    ...served.flatMap((each) => ('query' in each ? each.resources : [each])),
    ...declared.map(({ served: of }) => historyResource({ serving, served: of, views: logViews })),
    ...declared
      .filter(({ served: of }) => of.collection.softDelete)
      .map(({ served: of }) => restoreResource(of)),
    ...queryResources(serving.queriesPath, serving.storedQueries, queries),
    operationListResource(serving),
    ...operationResources(store, `${base}/operations`),
    ...eventResources({
      store,
      path: `${base}/events`,
      collections: [...collections.values()],
      views: logViews,
      withholds,
      streamViews: createLogViews(collections.values(), (error) =>
        options.observe?.({ kind: 'hook-failed', error }),
      ),
      list: { listing: serving.listingOf(events), limits: options.queryLimits },
      streamLimits: options.streamLimits,
      eventsWaitSecondsMax: options.eventsWaitSecondsMax,
      places: createLogPlaces(store, options.mac),
      connections: options.connections,
      post: posted?.post,
    }),
    ...(posted?.resources ?? []),
  ];
}

/** Shows events as they are stored, without looking at them unless their entity tags are asked for. */
function asStored(show: ShowDocs): ShowDocs {
  return (docs, heads) => (heads === undefined ? { docs } : show(docs, heads));
}

function isRelating(collections: RoutesOptions['collections']): boolean {
  return collections.values().some(({ relates }) => relates === true);
}

// GET /operations (§4.12.6): the asynchronous requests of all callers, for administrators. Everyone reads the own ones by their `Location`. A
// sort by another member than the id reads all that are kept (`operationSeconds`).

const fields = new Map(madeFields.map((field) => [field.name, field]));

const example = {
  id: 'op_01k1jx7v2mh5s8b4c9d0e6f3ga',
  status: 'pending',
  createdAt: '2026-08-01T09:30:00.000Z',
  updatedAt: '2026-08-01T09:30:00.000Z',
};

function operationListResource(serving: Serving): Resource {
  const { queryLimits: limits } = serving;
  const path = `${serving.base}/operations`;
  const list: ListOptions = {
    path,
    limits,
    listing: serving.listingOf({
      ...{ table: operationsTable, fields, searched: false },
      visibility: () => ({ op: 'always' }),
    }),
    cacheControl: 'private, no-store',
    permission: (principal) => permission('administrator', 'read', principal),
  };
  const page = pageSchema('Operations', 'A page of asynchronous requests.', operationSchema);
  const operation = {
    ...listOperation(list),
    documentation: {
      id: 'listOperations',
      summary: 'List asynchronous requests',
      description: 'Administrators only. `sort=-id` returns the newest first.',
      listed: { fields, limits },
      gives: { representation: json(page, { items: [example], nextCursor: null }) },
      representationFields: ['Comity-Plan', 'Comity-Position', 'Link', 'X-Total-Count'] as const,
      codes: ['query_parameter_invalid'] as const,
    },
  };
  return {
    pattern: path,
    documentation: {
      name: 'OperationList',
      noun: 'the asynchronous requests',
      tag: { name: 'operations', description: 'Asynchronous requests: answered 202 and carried out later.' },
    },
    operations: new Map([['GET', operation as Operation]]),
    constantFields: [],
    offers: ['application/json'],
  };
}
