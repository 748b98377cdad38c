/**
 * The three resources of a collection: the collection itself, its members, and bulk deletion (§4.1).
 */

import { formatDeprecation } from '../../http/syntax/deprecation.ts';
import { formatHttpDate } from '../../http/syntax/http-date.ts';
import { formatLink } from '../../http/syntax/link.ts';
import type { Collection } from '../../model/collection.ts';
import type { Operation, Resource } from '../resource.ts';
import { bulkDeleteOperation } from './bulk-delete.ts';
import { createOperation } from './create.ts';
import { type ListOptions, listOperation } from './list.ts';
import { patchOperation } from './patch.ts';
import { type QueryOptions, queryOperation } from './query.ts';
import { readOperation } from './read.ts';
import { removeOperation } from './remove.ts';
import { replaceOperation } from './replace.ts';
import type { Served } from './served.ts';

export function collectionResources(
  served: Served,
  list: ListOptions,
  query: QueryOptions,
): readonly Resource[] {
  const constantFields = deprecationFields(served.collection);
  const resource = (pattern: string, operations: readonly (readonly [string, Operation])[]): Resource => ({
    pattern,
    operations: new Map(operations),
    constantFields,
    offers: ['application/json'],
  });
  return [
    resource(served.path, [
      ['GET', listOperation(list) as Operation],
      ['POST', createOperation(served) as Operation],
      ['QUERY', queryOperation(query) as Operation],
    ]),
    resource(`${served.path}/{id}`, [
      ['GET', readOperation(served) as Operation],
      ['PUT', replaceOperation(served) as Operation],
      ['PATCH', patchOperation(served) as Operation],
      ['DELETE', removeOperation(served) as Operation],
    ]),
    resource(`${served.path}/bulk-delete`, [['POST', bulkDeleteOperation(served) as Operation]]),
  ];
}

/** RFC 9745 and RFC 8594, where the declaration says so. */
function deprecationFields({ deprecation }: Collection): readonly string[] {
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
