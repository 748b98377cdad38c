/**
 * Lists the resources of the program's collections and of its store, in the order of the OpenAPI document.
 * collection/serve-collection.ts turns a collection into resources.
 */

import { json, pageSchema } from '../kernel/documentation.ts';
import { operationResources, operationSchema } from '../kernel/operations/operation-routes.ts';
import { operationsTable } from '../kernel/operations/stored-request.ts';
import type { Operation, Resource } from '../kernel/resource.ts';
import { permission } from '../model/access.ts';
import { madeFields } from '../model/field.ts';
import type { Observe } from '../observe/observation.ts';
import type { OpenConnections } from '../observe/open-connections.ts';
import { listFields, listOperation } from './collection/list-answer.ts';
import { queryResources } from './collection/query.ts';
import {
  createServing,
  restoreResource,
  type ServedCollection,
  type ServingOptions,
  serveCollection,
} from './collection/serve-collection.ts';
import type { Served, Serving } from './collection/served-collection.ts';
import { createEventLog, eventResources } from './events/event-log-routes.ts';
import { historyResource } from './events/history.ts';

export type RoutesOptions = ServingOptions & {
  /** Receives failures of hooks that no response can tell. */
  readonly observe?: Observe;
  readonly connections: Pick<OpenConnections, 'enter'>;
  /** The built-in collections, which emit no events, and further resources. */
  readonly builtIn?: (serving: Serving) => readonly (ServedCollection | Resource)[];
  /** Further resources of the application's collections. */
  readonly ofDeclared?: (declared: readonly Served[]) => readonly Resource[];
  /** Publishing events: POST to the event log, and paths below it. */
  readonly postedEvents?: (serving: Serving) => {
    readonly post: Operation;
    readonly resources: readonly Resource[];
  };
};

export function createRoutes(options: RoutesOptions): readonly Resource[] {
  const serving = createServing(options);
  const declared = [...options.collections.values()].map((each) => serveCollection(serving, each));
  const all = [...declared, ...(options.builtIn?.(serving) ?? [])];
  const collections = all.flatMap((each) => ('served' in each ? [each.served] : []));
  const posted = options.postedEvents?.(serving);
  const log = createEventLog(serving, options);
  const softly = declared.filter(({ served }) => served.collection.softDelete);
  return [
    ...all.flatMap((each) => ('served' in each ? each.resources : [each])),
    ...declared.map(({ served }) => historyResource(served, log.views)),
    ...softly.map(({ served }) => restoreResource(served)),
    ...(options.ofDeclared?.(declared.map(({ served }) => served)) ?? []),
    ...queryResources(serving, collections),
    operationListResource(serving),
    ...operationResources(serving.store, `${serving.base}/operations`),
    ...eventResources(log, posted?.post),
    ...(posted?.resources ?? []),
  ];
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

function operationListResource({ base, settings, listingOf }: Serving): Resource {
  const path = `${base}/operations`;
  const listing = listingOf({
    ...{ table: operationsTable, fields, searched: false, path, cacheControl: 'private, no-store' },
    permission: (principal) => permission('administrator', 'read', principal),
    visibility: () => ({ op: 'always' }),
  });
  const page = pageSchema('Operations', 'A page of asynchronous requests.', operationSchema);
  const operation = {
    ...listOperation(listing),
    documentation: {
      id: 'listOperations',
      audience: 'operator' as const,
      summary: 'List asynchronous requests',
      description: 'Administrators only. `sort=-id` returns the newest first.',
      listed: { fields, limits: settings },
      gives: { representation: json(page, { items: [example], nextCursor: null }) },
      representationFields: listFields,
      codes: ['query_parameter_invalid'] as const,
    },
  };
  return {
    pattern: path,
    documentation: {
      name: 'OperationList',
      tag: { name: 'operations', description: 'Asynchronous requests: answered 202 and carried out later.' },
    },
    operations: new Map([['GET', operation as Operation]]),
    constantFields: [],
    offers: ['application/json'],
  };
}
