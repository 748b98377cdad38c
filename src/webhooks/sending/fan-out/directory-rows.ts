/** Endpoints put together from what is kept in memory of three kinds: their rows, the rows of their secrets, and the principals of their owners. */
import { type Endpoint, readEndpoint } from '../../../model/endpoint.ts';
import { always, byId } from '../../../model/filter.ts';
import type { Authenticated, Scope } from '../../../model/principal.ts';
import type { Keyset, Row, Store } from '../../../store/store.ts';
import type { KnownEndpoint } from '../known-endpoint.ts';
import type { EndpointSecrets } from '../sending-tables.ts';

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

/** Whose principals are needed for these endpoints. */
export function* ownersOf({ endpoints, secrets }: Sources, ids: Iterable<string>): Generator<Wanted> {
  for (const id of ids) {
    const row = endpoints.rows.get(id);
    const beside = secrets.rows.get(id);
    if (row !== undefined && beside !== undefined) {
      yield { owner: row.value.owner, scopes: beside.value.scopes };
    }
  }
}

/**
 * The endpoint as the directory is to know it; undefined where there is none. The two tables are read one after the other, so an endpoint
 * without a row of secrets was made or removed in between. One whose header values go with another URL was changed in between and stays as
 * it was before: no value is sent to a URL that it was not given for. The next reading, which the change brings about, finds both rows as
 * they are. Where nothing changed, the object stays the same.
 */
export function knownEndpoint(
  { endpoints, secrets }: Sources,
  principals: Pick<Principals, 'get'>,
  id: string,
  before: KnownEndpoint | undefined,
): KnownEndpoint | undefined {
  const row = endpoints.rows.get(id);
  const beside = secrets.rows.get(id)?.value;
  if (row === undefined || beside === undefined) return undefined;
  const { rev, value } = row;
  const { endpoint, owner, url } = value;
  const { headers } = beside;
  if (headers !== undefined && headers.url !== endpoint.url) return before;
  const principal = principals.get(owner, beside.scopes);
  const isSame = before?.rev === rev && before.secrets === beside.secrets && before.principal === principal;
  if (isSame) return before;
  return { endpoint, rev, owner, principal, url, secrets: beside.secrets, headers: headers?.values };
}

/*
 * All rows of a table in memory, each parsed once for as long as it stands. Reading all of them again costs a walk of the table, of which only
 * rows with a new revision are parsed.
 */

export type Kept<Value> = { readonly rev: number; readonly value: Value };

type KeptRows<Value> = {
  readonly rows: ReadonlyMap<string, Kept<Value>>;
  /** Reads all of them. @throws StoreUnavailable; then it is as it was before */
  read(): Promise<void>;
  /** Reads those alone that are known to have changed. @throws StoreUnavailable */
  readSome(ids: readonly string[]): Promise<void>;
};

/** Some 0.1 ms on the calling thread with the embedded store. Secrets of an endpoint hold up to 176 KiB of header fields. */
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
      for (let position: Keyset = { from: 'start' }; ; ) {
        const part = await plan.rows(position);
        for (const row of part) {
          const kept = rows.get(row.id);
          found.set(row.id, kept?.rev === row.rev ? kept : { rev: row.rev, value: parse(row) });
        }
        const last = part.at(-1);
        if (last === undefined || part.length < rowsPerRead) break;
        position = { from: 'after', key: [last.id] };
        await new Promise((resolve) => setImmediate(resolve));
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
 * The principals that endpoints are told things for: one for each owner and set of scopes, however many endpoints they have. They are
 * asked for anew when an account changed, and stay the same objects where nothing about them did.
 */

/** Undefined: there is no such account, or it is disabled. */
export type PrincipalOf = (
  owner: string | null,
  scopes: readonly Scope[],
) => Promise<Authenticated | undefined>;

type Principals = {
  /** Only after `know` of the same. */
  get(owner: string | null, scopes: readonly Scope[]): Authenticated | undefined;
  /**
   * Learns those that are not known, forgets all others; asks for all of them where `anew`. Rejects as `principalOf` does, and is then
   * as it was before.
   */
  know(wanted: Iterable<Wanted>, anew: boolean): Promise<void>;
  /** Learns those that are not known besides the others, and asks anew for these owners. Rejects as `know` does. */
  learn(wanted: Iterable<Wanted>, owners: ReadonlySet<string>): Promise<void>;
  readonly size: number;
};

type Wanted = { readonly owner: string | null; readonly scopes: readonly Scope[] };

/** Questions under way at once: the store gathers them, and none of its queues fills. */
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
