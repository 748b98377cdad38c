/**
 * `operations/{id}` and `operations/{id}/result` as resources: how an asynchronous request goes, and what came of it.
 * Only who asked (and an administrator) sees them. A succeeded operation answers 303 to its result (§4.12).
 */
import { permission, permits } from '../../model/access.ts';
import type { MaybePromise, Row, Store } from '../../store/store.ts';
import type { Ask, Operation, Representation, Resource, Standing } from '../resource.ts';
import { operationsTable } from './tables.ts';

type OperationStanding = Standing & { readonly row: Row | undefined };

const cacheControl = 'private, no-store';
/** A pending operation is worth asking about again after this. */
const retryAfterSeconds = '1';

export function operationResources(store: Store, path: string): readonly Resource[] {
  const read: Operation<OperationStanding> = {
    permission: (principal) => permission('owner', 'read', principal),
    standing: (ask) => standing(store, ask, true),
    // Whoever sees more than 303 here sees an operation that is pending or failed.
    represent: (_ask, { row }) => represent(row, row?.doc ?? '', statusOf(row) === 'pending'),
  };
  const result: Operation<OperationStanding> = {
    permission: (principal) => permission('owner', 'read', principal),
    standing: (ask) => standing(store, ask, false),
    represent: (_ask, { row }) => {
      const { outcome } = JSON.parse(row?.doc ?? '{}') as { outcome?: unknown };
      return represent(row, JSON.stringify(outcome ?? null), false);
    },
  };
  const resource = (pattern: string, operation: Operation<OperationStanding>): Resource => ({
    pattern,
    operations: new Map([['GET', operation as Operation]]),
    constantFields: [],
    offers: ['application/json'],
  });
  return [resource(`${path}/{id}`, read), resource(`${path}/{id}/result`, result)];
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
