/**
 * GET /operations (§4.12.6): the asynchronous requests of all callers, for administrators. Everyone reads the own ones by their `Location`. A
 * sort by another member than the id reads all that are kept (`operationSeconds`).
 */
import { json, pageSchema } from '../../kernel/documentation.ts';
import { operationSchema } from '../../kernel/operations/operation-routes.ts';
import { operationsTable } from '../../kernel/operations/stored-request.ts';
import type { Operation, Resource } from '../../kernel/resource.ts';
import { permission } from '../../model/access.ts';
import { madeFields } from '../../model/field.ts';
import { type ListOptions, listOperation } from '../collection/list-answer.ts';
import type { Serving } from '../collection/serving.ts';

const fields = new Map(madeFields.map((field) => [field.name, field]));

const example = {
  id: 'op_01k1jx7v2mh5s8b4c9d0e6f3ga',
  status: 'pending',
  createdAt: '2026-08-01T09:30:00.000Z',
  updatedAt: '2026-08-01T09:30:00.000Z',
};

export function operationListResource(serving: Serving): Resource {
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
