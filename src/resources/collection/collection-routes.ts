/** The resources of a collection: the collection, its members, bulk creation and bulk deletion (§4.1). */

import { formatHttpDate } from '../../http/syntax/http-date.ts';
import { formatLink } from '../../http/syntax/link.ts';
import { formatDeprecation } from '../../http/syntax/structured-field.ts';
import type { CollectionDocumentation, CollectionOperation } from '../../kernel/documentation.ts';
import type { Operation, Resource } from '../../kernel/resource.ts';
import type { Permission } from '../../model/access.ts';
import type { Collection } from '../../model/collection.ts';
import type { Principal } from '../../model/principal.ts';
import { type BulkLimits, bulkOperation } from './bulk.ts';
import { exportOperation } from './export.ts';
import { type ListOptions, listOperation } from './list-answer.ts';
import { createOperation, patchOperation, replaceOperation } from './proposing.ts';
import { type QueryOptions, queryOperation } from './query.ts';
import { readOperation } from './read.ts';
import { bulkDeleteOperation, removeOperation } from './remove.ts';

import type { Served } from './served.ts';

/** How a built-in collection differs from a declared one. */
export type CollectionResourcesOptions = {
  readonly documentation?: Omit<CollectionDocumentation, 'part'>;
  /** The available operations; others are 405, or 404 if a resource has none left. Default all. */
  readonly operations?: ReadonlySet<CollectionOperation>;
  /** Replaces the POST to the collection. */
  readonly create?: Operation;
  /** Absent: the collection takes no bulk requests. */
  readonly bulk?: BulkLimits;
  /** Default: the access rule for deletions. */
  readonly bulkDeletePermission?: (principal: Principal) => Permission;
};

type Named = readonly [name: CollectionOperation, method: string, operation: Operation];

export function collectionResources(
  served: Served,
  list: ListOptions,
  query: QueryOptions,
  options: CollectionResourcesOptions = {},
): readonly Resource[] {
  const constantFields = deprecationFields(served.collection);
  const { operations, documentation } = options;
  const resource = (
    part: CollectionDocumentation['part'],
    pattern: string,
    named: readonly Named[],
  ): readonly Resource[] => {
    const kept = named.filter(([name]) => operations === undefined || operations.has(name));
    if (kept.length === 0) return [];
    const byMethod = new Map(kept.map(([, method, operation]) => [method, operation] as const));
    return [
      {
        pattern,
        ...(documentation === undefined ? {} : { documentation: { ...documentation, part } }),
        operations: byMethod,
        constantFields,
        offers: ['application/json'],
      },
    ];
  };
  const bulkDelete = bulkDeleteOperation(served, options.bulkDeletePermission);
  return [
    ...resource('collection', served.path, [
      ['list', 'GET', listOperation(list) as Operation],
      ['create', 'POST', options.create ?? (createOperation(served) as Operation)],
      ['query', 'QUERY', queryOperation(query) as Operation],
    ]),
    ...resource('member', `${served.path}/{id}`, [
      ['read', 'GET', readOperation(served) as Operation],
      ['replace', 'PUT', replaceOperation(served) as Operation],
      ['patch', 'PATCH', patchOperation(served) as Operation],
      ['remove', 'DELETE', removeOperation(served) as Operation],
    ]),
    ...(options.bulk === undefined
      ? []
      : resource('bulk', `${served.path}/bulk`, [
          ['export', 'GET', exportOperation(served, list) as Operation],
          ['bulk', 'POST', bulkOperation(served, options.bulk) as Operation],
        ])),
    ...resource('bulk-delete', `${served.path}/bulk-delete`, [
      ['bulk-delete', 'POST', bulkDelete as Operation],
    ]),
  ];
}

/** Deprecation (RFC 9745) and Sunset (RFC 8594), as declared. */
/** Fields of every response of a deprecated collection. */
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
