/**
 * An accepted request that waits to be performed: what a walk needs, without a credential. It names the credential that
 * identified the caller, so that its validity can be checked again.
 */
import type { Request } from '../../http/message.ts';
import { readRequestFields } from '../../http/request-fields.ts';
import { type Field, madeFields } from '../../model/field.ts';
import { anonymous, authenticated, type Principal, type Scheme, type Scope } from '../../model/principal.ts';
import type { Ask } from '../resource.ts';

export type StoredRequest = {
  readonly id: string;
  /** The id of the request that was accepted; absent: kept by an earlier version. */
  readonly requestId?: string;
  /** Starts of which no process recorded the end (lease.ts). Absent: one. */
  readonly starts?: number;
  readonly method: string;
  readonly target: string;
  readonly fields: readonly string[];
  readonly content: string;
  readonly principal: {
    readonly id: string;
    readonly scopes: readonly Scope[];
    readonly roles: readonly string[];
    readonly tenant: string | null;
    readonly scheme?: Scheme;
    /** The API key that was used; null: another kind of credential. */
    readonly key?: string | null;
  } | null;
};

export function storedRequest(id: string, ask: Ask, bytes: Uint8Array | undefined): StoredRequest {
  const { request, principal, known } = ask;
  const kept: string[] = [];
  const keep = (name: string, value: string | undefined) => {
    if (value !== undefined) kept.push(name, value);
  };
  keep('Content-Type', request.fields.contentType);
  keep('If-Match', request.fields.ifMatch);
  keep('If-None-Match', request.fields.ifNoneMatch);
  keep('If-Unmodified-Since', request.fields.ifUnmodifiedSince);
  return {
    id,
    requestId: request.id,
    method: request.method,
    target: request.target.split('?', 1)[0] ?? request.target,
    fields: kept,
    content: Buffer.from(bytes ?? new Uint8Array()).toString('base64'),
    principal:
      principal.kind === 'anonymous'
        ? null
        : {
            id: principal.id,
            scopes: [...principal.scopes],
            roles: [...principal.roles],
            tenant: principal.tenant,
            ...(known === undefined ? {} : { scheme: known.scheme, key: known.key }),
          },
  };
}

export function requestOf(stored: StoredRequest): Request {
  const bytes = Buffer.from(stored.content, 'base64');
  const rawFields = ['Host', 'localhost', ...stored.fields];
  if (bytes.length > 0) rawFields.push('Content-Length', String(bytes.length));
  return {
    method: stored.method,
    target: stored.target,
    version: '1.1',
    fields: readRequestFields(rawFields),
    rawFields,
    readContent: async () => ({ ok: true, bytes }),
    peer: '',
    id: stored.requestId ?? stored.id,
  };
}

/** The principal as it was when the request arrived. */
export function principalOf({ principal }: Pick<StoredRequest, 'principal'>): Principal {
  return principal === null ? anonymous : authenticated(principal);
}

/** The two tables of operations: the operations as served, and the requests to perform (lease.ts). */
export const operationsTable = 'operations';
export const operationRequestsTable = 'operation_requests';

/** The time of a lease's last renewal; indexed, because requests are found by it. */
export const renewedAtField: Field = madeField('updatedAt');
export const requestIdField: Field = madeField('id');

function madeField(name: string): Field {
  const field = madeFields.find((made) => made.name === name);
  if (field === undefined) throw new Error(`no resource has the field ${name}`);
  return field;
}
