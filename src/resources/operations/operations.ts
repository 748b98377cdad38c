/**
 * Asynchronous requests (§4.1, §4.7; RFC 7240 §4.1). `accept` stores the whole request durably before 202 is sent; the
 * request is then walked again without `respond-async`, and the end of the operation commits in the
 * same unit as the change it made. A process that dies in between leaves a pending operation, which the next start
 * carries out: so an accepted request happens exactly once.
 *
 * States of an operation: `pending` -> `succeeded` (with `result`, where the outcome is) or `failed` (with `problem`).
 */
import type { Request, Response } from '../../http/message.ts';
import { readRequestFields } from '../../http/request-fields.ts';
import type { Principal, Scope } from '../../model/principal.ts';
import { keptRow } from '../../store/kept-row.ts';
import type { Change, Row, Store } from '../../store/store.ts';
import type { Ask, Companion } from '../resource.ts';

export const operationsTable = 'operations';
/** Requests waiting to be carried out, apart from the operations that are served. */
export const operationRequestsTable = 'operation_requests';

export type Operations = {
  /** Stores the request and begins it; resolves when it is durable. */
  accept(ask: Ask, bytes: Uint8Array | undefined): Promise<{ location: string; doc: string }>;
  /** Begins what an earlier process left pending. */
  resume(): Promise<void>;
  /** Resolves when nothing is under way, for a graceful stop. */
  idle(): Promise<void>;
};

export type CarryOut = (
  request: Request,
  principal: Principal,
  companions: readonly Companion[],
) => Promise<Response>;

type StoredRequest = {
  readonly id: string;
  readonly method: string;
  readonly target: string;
  readonly fields: readonly string[];
  readonly content: string;
  readonly principal: {
    readonly id: string;
    readonly scopes: readonly Scope[];
    readonly roles: readonly string[];
  } | null;
};

type OperationDoc = {
  readonly id: string;
  readonly status: 'pending' | 'succeeded' | 'failed';
  readonly createdAt: string;
  readonly updatedAt: string;
  readonly result?: string;
  /** The representation after the change, or the error body; served at `{id}/result` where nothing else has it. */
  readonly outcome?: unknown;
};

/** What is known of an operation that has not ended. */
type Pending = Pick<Row, 'doc' | 'owner' | 'createdAt' | 'rev'>;

export type OperationsRoom = {
  readonly store: Store;
  readonly path: string;
  readonly newId: () => string;
  readonly clock: () => number;
  readonly onFailure: (operation: string, error: unknown) => void;
};

/** @param carryOut walks a request; given late, because the walk itself knows the operations */
export function createOperations(room: OperationsRoom, carryOut: CarryOut): Operations {
  const underWay = new Set<Promise<void>>();

  function begin(stored: StoredRequest, row: Pending): void {
    const run = perform(room, carryOut, stored, row).catch((error) => room.onFailure(stored.id, error));
    underWay.add(run);
    void run.then(() => underWay.delete(run));
  }

  return {
    async accept(ask, bytes) {
      const id = `op_${room.newId()}`;
      const at = room.clock();
      const time = new Date(at).toISOString();
      const doc: OperationDoc = { id, status: 'pending', createdAt: time, updatedAt: time };
      const stored = storedRequest(id, ask, bytes);
      const owner = ask.principal.kind === 'authenticated' ? ask.principal.id : null;
      const row = keptRow(JSON.stringify(doc), owner, at, at);
      const waiting = keptRow(JSON.stringify(stored), owner, at, at);
      const absent = { absent: true } as const;
      const changes: Change[] = [
        { table: operationsTable, id, expect: absent, next: row },
        { table: operationRequestsTable, id, expect: absent, next: waiting },
      ];
      const commit = await room.store.commit({ changes, events: [] });
      if (commit.outcome !== 'committed') throw new Error('an operation id was not new');
      begin(stored, { ...row, rev: commit.rev });
      return { location: `${room.path}/${id}`, doc: row.doc };
    },
    async resume() {
      for (const { row, stored } of await pending(room.store)) begin(stored, row);
    },
    async idle() {
      while (underWay.size > 0) await Promise.all(underWay);
    },
  };
}

async function perform(
  room: OperationsRoom,
  carryOut: CarryOut,
  stored: StoredRequest,
  row: Pending,
): Promise<void> {
  const { id } = stored;
  const { rev } = row;
  let made = false;
  const ending = (patch: Partial<OperationDoc>): Change => {
    const at = room.clock();
    const before = JSON.parse(row.doc) as OperationDoc;
    const doc = JSON.stringify({ ...before, ...patch, updatedAt: new Date(at).toISOString() });
    return {
      table: operationsTable,
      id,
      expect: { rev },
      next: keptRow(doc, row.owner, row.createdAt, at),
    };
  };
  const finished: Change = { table: operationRequestsTable, id, expect: { rev }, next: null };
  const principal: Principal =
    stored.principal === null
      ? { kind: 'anonymous' }
      : {
          kind: 'authenticated',
          id: stored.principal.id,
          scopes: new Set(stored.principal.scopes),
          roles: new Set(stored.principal.roles),
        };
  const response = await carryOut(requestOf(stored), principal, [
    (result) => {
      made = true;
      const outcome: unknown = result.doc === null ? null : JSON.parse(result.doc);
      return ending({ status: 'succeeded', result: result.location ?? `${room.path}/${id}/result`, outcome });
    },
    () => finished,
  ]);
  if (made && response.status < 400) return;
  const outcome: unknown = typeof response.content === 'string' ? JSON.parse(response.content) : null;
  const failure = ending({ status: 'failed', outcome });
  await room.store.commit({ changes: [failure, finished], events: [] });
}

/** What is kept of a request: enough to walk it again, and no credential. */
function storedRequest(id: string, ask: Ask, bytes: Uint8Array | undefined): StoredRequest {
  const { request, principal } = ask;
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
    method: request.method,
    target: request.target.split('?', 1)[0] ?? request.target,
    fields: kept,
    content: Buffer.from(bytes ?? new Uint8Array()).toString('base64'),
    principal:
      principal.kind === 'anonymous'
        ? null
        : { id: principal.id, scopes: [...principal.scopes], roles: [...principal.roles] },
  };
}

function requestOf(stored: StoredRequest): Request {
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
    id: stored.id,
  };
}

async function pending(store: Store): Promise<readonly { row: Row; stored: StoredRequest }[]> {
  const found: { row: Row; stored: StoredRequest }[] = [];
  const plan = store.plan({
    table: operationRequestsTable,
    filter: { op: 'always' },
    sort: [{ field: { name: 'id', path: ['id'], type: 'string', column: 'id' }, direction: 'asc' }],
    limit: 100,
  });
  let page = await plan.page({ from: 'start' });
  for (;;) {
    for (const doc of page.docs) {
      const stored = JSON.parse(doc) as StoredRequest;
      const row = await store.read(operationsTable, stored.id);
      if (row !== undefined) found.push({ row, stored });
    }
    if (!page.more || page.last === null) return found;
    page = await plan.page({ from: 'after', key: page.last });
  }
}
