/**
 * The resources `operations/{id}` and `operations/{id}/result`: the progress and the outcome of an asynchronous
 * request. Visible only to the principal that sent it and to administrators. A succeeded operation responds 303 to its
 * result (§4.12).
 */
import { permission, permits } from '../../model/access.ts';
import type { MaybePromise, Row, Store } from '../../store/store.ts';
import { json, named, type OperationDocumentation, pathParameter } from '../documentation.ts';
import type { Ask, Operation, Representation, Resource, Standing } from '../resource.ts';
import { operationsTable } from './stored-request.ts';

type OperationStanding = Standing & { readonly row: Row | undefined };

const cacheControl = 'private, no-store';
const retryAfterSeconds = '1';

export const operationSchema = named('Operation', {
  description: 'The progress of an asynchronous request.',
  type: 'object',
  properties: {
    id: { type: 'string' },
    status: { enum: ['pending', 'succeeded', 'failed'] },
    createdAt: { type: 'string', format: 'date-time' },
    updatedAt: { type: 'string', format: 'date-time' },
    result: { type: 'string', format: 'uri-reference', description: 'URI of the result.' },
    outcome: { description: 'The representation after the change, or the error body of a refusal.' },
  },
  required: ['id', 'status', 'createdAt', 'updatedAt'],
});

const createdAt = '2026-08-01T09:30:00.000Z';
const pending = { id: 'op_01k1jx7v2mh5s8b4c9d0e6f3ga', status: 'pending', createdAt, updatedAt: createdAt };

const readDocumentation: OperationDocumentation = {
  id: 'readOperation',
  summary: 'Read the progress of an asynchronous request',
  description:
    'Redirects with 303 to the result once the request has succeeded. Visible only to the caller that sent the request and to administrators.',
  mayBeMissing: true,
  mayBeHidden: true,
  redirects: 'sometimes',
  gives: { representation: json(operationSchema, pending) },
  representationFields: ['ETag', 'Retry-After'],
};

const resultDocumentation: OperationDocumentation = {
  id: 'readOperationResult',
  summary: 'Read the result of an asynchronous request',
  description: 'For requests whose result has no URI of its own. 404 while the request is pending.',
  mayBeMissing: true,
  mayBeHidden: true,
  gives: { representation: json({}) },
  representationFields: ['ETag'],
};

const tag = { name: 'operations', description: 'Asynchronous requests: answered 202 and carried out later.' };
const parameters = [pathParameter('id', 'Id from the Location of a 202 response.')];

export function operationResources(store: Store, path: string): readonly Resource[] {
  const read: Operation<OperationStanding> = {
    documentation: readDocumentation,
    permission: (principal) => permission('owner', 'read', principal),
    standing: (ask) => standing(store, ask, true),
    // An operation that succeeded responds 303, so this one is pending or failed.
    represent: (_ask, { row }) => represent(row, row?.doc ?? '', statusOf(row) === 'pending'),
  };
  const result: Operation<OperationStanding> = {
    documentation: resultDocumentation,
    permission: (principal) => permission('owner', 'read', principal),
    standing: (ask) => standing(store, ask, false),
    represent: (_ask, { row }) => {
      const { outcome } = JSON.parse(row?.doc ?? '{}') as { outcome?: unknown };
      return represent(row, JSON.stringify(outcome ?? null), false);
    },
  };
  const resource = (pattern: string, name: string, operation: Operation<OperationStanding>): Resource => ({
    pattern,
    documentation: { name, tag, parameters },
    operations: new Map([['GET', operation as Operation]]),
    constantFields: [],
    offers: ['application/json'],
  });
  return [
    resource(`${path}/{id}`, 'Operation', read),
    resource(`${path}/{id}/result`, 'OperationResult', result),
  ];
}

function standing(store: Store, ask: Ask, redirects: boolean): MaybePromise<OperationStanding> {
  const row = store.read(operationsTable, ask.captures[0] ?? '');
  return row instanceof Promise
    ? row.then((found) => judge(ask, found, redirects))
    : judge(ask, row, redirects);
}

function judge(ask: Ask, row: Row | undefined, redirects: boolean): OperationStanding {
  if (row === undefined) return { exists: false, visible: false, permitted: false, row };
  const visible = permits('owner', 'read', ask.principal, { owner: row.owner, member: () => undefined });
  const doc = JSON.parse(row.doc) as { status: string; result?: string };
  if (!redirects) return { exists: doc.status !== 'pending', visible, permitted: visible, row };
  return { exists: true, visible, permitted: visible, elsewhere: doc.result, row };
}

function statusOf(row: Row | undefined): unknown {
  return (JSON.parse(row?.doc ?? '{}') as { status?: unknown }).status;
}

function represent(row: Row | undefined, content: string, pending: boolean): Representation {
  return {
    content,
    mediaType: 'application/json',
    validators: { tag: row === undefined ? null : String(row.rev), modifiedAt: null },
    cacheControl,
    fields: pending ? ['Retry-After', retryAfterSeconds] : [],
  };
}
