/**
 * Every resource of the program that its collections and its store make: the one list that the router is made of. How a collection
 * becomes resources is in collection/serving.ts.
 */
import type { Principal } from '../model/principal.ts';
import { eventsTable } from '../store/store.ts';
import type { QueryOptions } from './collection/query.ts';
import {
  createServing,
  type ServedCollection,
  type Serving,
  type ServingOptions,
  serveCollection,
} from './collection/serving.ts';
import { eventResources } from './events/resources.ts';
import { createEventViews, showEvents } from './events/seen-event.ts';
import type { StreamLimits } from './events/stream.ts';
import { eventFields, visibleEvents } from './events/visibility.ts';
import { operationResources } from './operations/resources.ts';
import { queryResources } from './queries/resources.ts';
import type { Operation, Resource } from './resource.ts';

export type RoutesOptions = ServingOptions & {
  readonly streamLimits: StreamLimits;
  /** Serves the collections that the program brings itself; they emit no events. */
  readonly builtIn?: (serving: Serving) => readonly ServedCollection[];
  /** What is done with events besides reading them: POST to the log, and paths below it. */
  readonly postedEvents?: (serving: Serving) => {
    readonly post: Operation;
    readonly resources: readonly Resource[];
  };
};

export function createRoutes(options: RoutesOptions): readonly Resource[] {
  const { store, base, collections } = options;
  const serving = createServing(options);
  const served = [
    ...[...collections.values()].map((collection) => serveCollection(serving, collection)),
    ...(options.builtIn?.(serving) ?? []),
  ];
  const queries = new Map<string, QueryOptions>(
    served.map(({ query }) => [query.collection.name, query] as const),
  );
  const posted = options.postedEvents?.(serving);
  const eventViews = createEventViews(collections.values());
  const events = {
    table: eventsTable,
    fields: eventFields,
    searched: false,
    visibility: (principal: Principal) => visibleEvents(collections.values(), principal),
    view: (principal: Principal) => {
      const view = eventViews(principal);
      return { mark: '', fields: eventFields, show: view === undefined ? view : showEvents(store, view) };
    },
  };
  return [
    ...served.flatMap(({ resources }) => resources),
    ...queryResources(serving.queriesPath, serving.storedQueries, queries),
    ...operationResources(store, `${base}/operations`),
    ...eventResources({
      store,
      path: `${base}/events`,
      collections: [...collections.values()],
      views: eventViews,
      list: { listing: serving.listingOf(events), limits: options.queryLimits },
      streamLimits: options.streamLimits,
      post: posted?.post,
    }),
    ...(posted?.resources ?? []),
  ];
}
