/**
 * An accepted request that waits to be performed: what a walk needs, without a credential (it names the credential that
 * identified the caller, so that its validity can be checked again); and the lease on it, the right to perform it.
 */
import type { Request } from '../../http/message.ts';
import { readRequestFields } from '../../http/request-fields.ts';
import { type Field, madeFields } from '../../model/field.ts';
import { anonymous, authenticated, type Principal, type Scheme, type Scope } from '../../model/principal.ts';
import { startsMax } from '../../model/starts-max.ts';
import { type Change, keptRow, type NextRow, type Row, type Store } from '../../store/store.ts';
import type { Ask } from '../resource.ts';

export type StoredRequest = {
  readonly id: string;
  /** The id of the request that was accepted; absent: kept by an earlier version. */
  readonly requestId?: string;
  /** Starts of which no process recorded the end. Absent: one. */
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
  const { request } = ask;
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
    principal: storedCaller(ask),
  };
}

/** The caller, for work that is done after its request. */
export function storedCaller({
  principal,
  known,
}: Pick<Ask, 'principal' | 'known'>): StoredRequest['principal'] {
  if (principal.kind === 'anonymous') return null;
  return {
    id: principal.id,
    scopes: [...principal.scopes],
    roles: [...principal.roles],
    tenant: principal.tenant,
    ...(known === undefined ? {} : { scheme: known.scheme, key: known.key }),
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

/** The two tables of operations: the operations as served, and the requests to perform. */
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

/**
 * Three renewals fit into a lease, so one may fail, and each may wait as long as the store allows. The operations of a
 * dead process wait this long.
 */
export const leaseMs = 30_000;

const renewalMs = leaseMs / 3;

/** A renewal further in the future than this is of a clock that was ahead and was set right: such a lease has expired. */
export const aheadMs = 3 * leaseMs;

/** The members of the row beside the request. The row repeats `updatedAt` because it is listed by that field. */
type Held = { readonly holder: string | null; readonly updatedAt: string; readonly starts: number };

/** The row of a request that `holder` performs from now on. @param at milliseconds since the epoch */
export function heldRow(
  stored: StoredRequest,
  holder: string | null,
  { owner, createdAt }: Pick<Row, 'owner' | 'createdAt'>,
  at: number,
): NextRow {
  const { starts = 1 } = stored;
  const held: StoredRequest & Held = { ...stored, starts, holder, updatedAt: new Date(at).toISOString() };
  return keptRow(JSON.stringify(held), owner, createdAt, at);
}

export class Lease {
  readonly #store: Store;
  #stored: StoredRequest;
  readonly #holder: string;
  readonly #row: Pick<Row, 'owner' | 'createdAt'>;
  #rev: number;
  #renewedAt: number;
  #lost = false;
  #writing: Promise<void> = Promise.resolve();

  constructor(
    store: Store,
    stored: StoredRequest,
    holder: string,
    row: Pick<Row, 'owner' | 'createdAt' | 'updatedAt' | 'rev'>,
  ) {
    this.#store = store;
    this.#stored = stored;
    this.#holder = holder;
    this.#row = row;
    this.#rev = row.rev;
    this.#renewedAt = row.updatedAt;
  }

  /** Takes a lease that was given back or has expired, and counts the start. Undefined if another process was faster. */
  static async take(store: Store, holder: string, row: Row, now: number): Promise<Lease | undefined> {
    const stored = JSON.parse(row.doc) as StoredRequest;
    const begun = { ...stored, starts: (stored.starts ?? 1) + 1 };
    const next = heldRow(begun, holder, row, now);
    const change: Change = { table: operationRequestsTable, id: row.id, expect: { rev: row.rev }, next };
    const commit = await store.commit({ changes: [change], events: [] });
    if (commit.outcome !== 'committed') return undefined;
    return new Lease(store, begun, holder, { ...row, updatedAt: now, rev: commit.rev });
  }

  /** True if another process, or an earlier start of this one, has begun the request. */
  get isTakenOver(): boolean {
    return this.#stored.starts !== undefined;
  }

  /** True if every start that is allowed has ended its process (model/starts-max.ts). */
  get isUsedUp(): boolean {
    return (this.#stored.starts ?? 1) > startsMax;
  }

  /** The revision of the row, as far as this process knows. */
  get rev(): number {
    return this.#rev;
  }

  /** True once the lease was given back or another process has taken it. */
  get lost(): boolean {
    return this.#lost;
  }

  /** Takes all starts back: what this one has committed already, the next need not do. */
  progressed(): Promise<void> {
    if (this.#stored.starts !== 0) {
      this.#stored = { ...this.#stored, starts: 0 };
      this.#write(this.#holder, this.#renewedAt);
    }
    return this.#writing;
  }

  /** Waits for a running renewal, which changes the row's revision. */
  async settled(): Promise<void> {
    await this.#writing;
  }

  /** The change that ends the request; part of the unit that ends the operation. */
  end(): Change {
    return { table: operationRequestsTable, id: this.#stored.id, expect: { rev: this.#rev }, next: null };
  }

  /** Renews the lease if `renewalMs` have passed. Ignores failures: the next renewal or holder makes up for them. */
  renew(now: number): Promise<void> {
    const age = now - this.#renewedAt;
    // Below 0, its own clock was set back.
    if (!this.#lost && (age < 0 || age >= renewalMs)) this.#write(this.#holder, now);
    return this.#writing;
  }

  /** Lets any process take the lease immediately. */
  giveBack(): Promise<void> {
    // A lease renewed at the epoch has expired on every clock, and is first in the list.
    if (!this.#lost) this.#write(null, 0);
    return this.#writing;
  }

  #write(holder: string | null, at: number): void {
    this.#writing = this.#writing.then(async () => {
      if (this.#lost) return;
      const { id, starts = 1 } = this.#stored;
      const stored = holder === null ? { ...this.#stored, starts: Math.max(0, starts - 1) } : this.#stored;
      const next = heldRow(stored, holder, this.#row, at);
      const change: Change = { table: operationRequestsTable, id, expect: { rev: this.#rev }, next };
      const commit = await this.#store.commit({ changes: [change], events: [] }).catch(() => undefined);
      if (commit?.outcome === 'committed') {
        this.#rev = commit.rev;
        this.#renewedAt = at;
      } else if (commit?.outcome === 'superseded') this.#recognise(commit.current);
      if (holder === null) this.#lost = true;
    });
  }

  /** An earlier renewal may have been committed although its response was lost. */
  #recognise(current: Row | undefined): void {
    if (current !== undefined && (JSON.parse(current.doc) as Held).holder === this.#holder) {
      this.#rev = current.rev;
      this.#renewedAt = current.updatedAt;
    } else this.#lost = true;
  }
}
