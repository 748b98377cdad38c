/**
 * Builds endpoints from three kinds of data in memory: their rows, the rows of their secrets, and the principals of
 * their owners.
 */
import { type Endpoint, readEndpoint } from '../../../model/endpoint.ts';
import { always, byId } from '../../../model/filter.ts';
import type { Authenticated, Scope } from '../../../model/principal.ts';
import { rowBatches } from '../../../store/in-batches.ts';
import type { Row, Store } from '../../../store/store.ts';
import type { KnownEndpoint } from '../known-endpoint.ts';
import { type EndpointSecrets, rightsHolder } from '../sending-tables.ts';

export type ParsedEndpoint = {
  readonly endpoint: Endpoint;
  readonly owner: string | null;
  readonly url: URL;
};

export function parseEndpoint({ doc, owner }: Row): ParsedEndpoint {
  const endpoint = readEndpoint(doc);
  return { endpoint, owner, url: new URL(endpoint.url) };
}

export function parseSecrets({ doc }: Row): EndpointSecrets {
  return JSON.parse(doc) as EndpointSecrets;
}

type Sources = {
  readonly endpoints: Pick<KeptRows<ParsedEndpoint>, 'rows'>;
  readonly secrets: Pick<KeptRows<EndpointSecrets>, 'rows'>;
};

/** The owners and scopes whose principals these endpoints need. */
export function* ownersOf({ endpoints, secrets }: Sources, ids: Iterable<string>): Generator<Wanted> {
  for (const id of ids) {
    const row = endpoints.rows.get(id);
    const endpointSecrets = secrets.rows.get(id);
    if (row !== undefined && endpointSecrets !== undefined) {
      const { value } = endpointSecrets;
      yield { owner: rightsHolder(row.value.owner, value), scopes: value.scopes };
    }
  }
}

/** The ids of the endpoints that have the rights of one of these principals. */
export function* withRightsOf(
  { endpoints, secrets }: Sources,
  holders: ReadonlySet<string>,
): Generator<string> {
  for (const [id, { value }] of endpoints.rows) {
    const kept = secrets.rows.get(id)?.value ?? {};
    if (holders.has(rightsHolder(value.owner, kept) ?? '')) yield id;
  }
}

/**
 * Returns the endpoint as the directory should know it; undefined if there is none. The two tables are read one after
 * the other, so an endpoint without a row of secrets was created or removed in between. If the header values belong to
 * another URL, the endpoint was changed in between and keeps its earlier state: no value is sent to a URL for which it
 * was not given. The change triggers another read, which finds both rows. If nothing changed, the object stays the
 * same.
 */
export function knownEndpoint(
  { endpoints, secrets }: Sources,
  principals: Pick<Principals, 'get'>,
  id: string,
  before: KnownEndpoint | undefined,
): KnownEndpoint | undefined {
  const row = endpoints.rows.get(id);
  const endpointSecrets = secrets.rows.get(id)?.value;
  if (row === undefined || endpointSecrets === undefined) return undefined;
  const { rev, value } = row;
  const { endpoint, owner, url } = value;
  const { headers } = endpointSecrets;
  if (headers !== undefined && headers.url !== endpoint.url) return before;
  const principal = principals.get(rightsHolder(owner, endpointSecrets), endpointSecrets.scopes);
  const isSame =
    before?.rev === rev && before.secrets === endpointSecrets.secrets && before.principal === principal;
  if (isSame) return before;
  return { endpoint, rev, owner, principal, url, secrets: endpointSecrets.secrets, headers: headers?.values };
}

/*
 * All rows of a table in memory, each parsed once per revision. A full read scans the table, but parses only rows with
 * a new revision.
 */

export type Kept<Value> = { readonly rev: number; readonly value: Value };

type KeptRows<Value> = {
  readonly rows: ReadonlyMap<string, Kept<Value>>;
  /** Reads all rows. @throws StoreUnavailable; the rows are then unchanged */
  read(): Promise<void>;
  /** Reads only these rows. @throws StoreUnavailable */
  readSome(ids: readonly string[]): Promise<void>;
};

/**
 * About 0.1 ms on the calling thread with the embedded store. Secrets of an endpoint hold up to 176 KiB of header
 * fields.
 */
const rowsPerRead = 32;

export function createKeptRows<Value>(
  store: Pick<Store, 'plan' | 'read'>,
  table: string,
  parse: (row: Row) => Value,
): KeptRows<Value> {
  const plan = store.plan({ table, filter: always, sort: byId, limit: rowsPerRead });
  let rows = new Map<string, Kept<Value>>();
  return {
    get rows() {
      return rows;
    },
    async read() {
      const found = new Map<string, Kept<Value>>();
      for await (const part of rowBatches(plan, rowsPerRead)) {
        for (const row of part) {
          const kept = rows.get(row.id);
          found.set(row.id, kept?.rev === row.rev ? kept : { rev: row.rev, value: parse(row) });
        }
      }
      rows = found;
    },
    async readSome(ids) {
      const found = await Promise.all(ids.map(async (id) => store.read(table, id)));
      for (const [index, id] of ids.entries()) {
        const row = found[index];
        if (row === undefined) rows.delete(id);
        else if (rows.get(id)?.rev !== row.rev) rows.set(id, { rev: row.rev, value: parse(row) });
      }
    },
  };
}

/*
 * The principals of endpoints: one for each owner and set of scopes, however many endpoints they have. They are read
 * again after an account changed, and stay the same objects if their rights did not change.
 */

/** Undefined: the account does not exist or is disabled. */
export type PrincipalOf = (
  owner: string | null,
  scopes: readonly Scope[],
) => Promise<Authenticated | undefined>;

type Principals = {
  /** Valid only after `know` or `learn` of the same. */
  get(owner: string | null, scopes: readonly Scope[]): Authenticated | undefined;
  /**
   * Reads unknown principals, forgets all that are not wanted; reads all of them if `anew`. Rejects as `principalOf`
   * does, and then changes nothing.
   */
  know(wanted: Iterable<Wanted>, anew: boolean): Promise<void>;
  /** Reads unknown principals and those of these owners, and keeps the others. Rejects as `know` does. */
  learn(wanted: Iterable<Wanted>, owners: ReadonlySet<string>): Promise<void>;
  readonly size: number;
};

type Wanted = { readonly owner: string | null; readonly scopes: readonly Scope[] };

/** Concurrent queries: the store batches them, and none of its queues fills. */
const askedAtOnce = 256;

export function createPrincipals(principalOf: PrincipalOf): Principals {
  let known = new Map<string, Authenticated | undefined>();
  return {
    get: (owner, scopes) => known.get(keyOf(owner, scopes)),
    get size() {
      return known.size;
    },
    async know(wanted, anew) {
      const next = new Map<string, Authenticated | undefined>();
      const asked = new Map<string, Wanted>();
      for (const each of wanted) {
        const key = keyOf(each.owner, each.scopes);
        next.set(key, known.get(key));
        if (anew || !known.has(key)) asked.set(key, each);
      }
      for (const [key, found] of await askFor(asked)) next.set(key, same(known.get(key), found));
      known = next;
    },
    async learn(wanted, owners) {
      const asked = new Map<string, Wanted>();
      for (const each of wanted) {
        const key = keyOf(each.owner, each.scopes);
        if (!known.has(key) || owners.has(each.owner ?? '')) asked.set(key, each);
      }
      for (const [key, found] of await askFor(asked)) known.set(key, same(known.get(key), found));
    },
  };

  async function askFor(wanted: ReadonlyMap<string, Wanted>): Promise<[string, Authenticated | undefined][]> {
    const asked = [...wanted];
    const answers: [string, Authenticated | undefined][] = [];
    for (let at = 0; at < asked.length; at += askedAtOnce) {
      const part = asked.slice(at, at + askedAtOnce);
      const found = await Promise.all(part.map(([, { owner, scopes }]) => principalOf(owner, scopes)));
      for (const [index, [key]] of part.entries()) answers.push([key, found[index]]);
    }
    return answers;
  }
}

function same(before: Authenticated | undefined, now: Authenticated | undefined): Authenticated | undefined {
  return before !== undefined && before.audience === now?.audience ? before : now;
}

function keyOf(owner: string | null, scopes: readonly Scope[]): string {
  return `${owner ?? ''} ${scopes.join()}`;
}
