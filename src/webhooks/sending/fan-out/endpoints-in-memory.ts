/**
 * All endpoints in memory, made from three sources: their rows, the rows of their secrets, and the principals of their
 * owners. Each row is parsed once per revision. Found by id, counted by owner, and in the matcher.
 */
import type { Collection } from '../../../model/collection.ts';
import { type Endpoint, readEndpoint } from '../../../model/endpoint.ts';
import { always, byId } from '../../../model/filter.ts';
import type { Authenticated, Scope } from '../../../model/principal.ts';
import { rowBatches } from '../../../store/in-batches.ts';
import type { Row, Store } from '../../../store/store.ts';
import type { KnownEndpoint } from '../known-endpoint.ts';
import {
  type EndpointSecrets,
  endpointSecretsTable,
  endpointsCollection,
  rightsHolder,
} from '../sending-tables.ts';
import type { Named } from './generation.ts';
import { createEventRights, createMatcher, type EventRights, type Matcher } from './matcher.ts';

export class EndpointsInMemory {
  readonly byId = new Map<string, KnownEndpoint>();
  readonly counts = new Map<string | null, number>();
  readonly rights: EventRights;
  readonly matcher: Matcher;
  readonly #rows: KeptRows<ParsedEndpoint>;
  readonly #secrets: KeptRows<EndpointSecrets>;
  readonly #principals: Principals;

  constructor(
    store: Pick<Store, 'plan' | 'read'>,
    collections: Iterable<Collection>,
    principalOf: PrincipalOf,
  ) {
    this.rights = createEventRights(collections);
    this.matcher = createMatcher(this.rights);
    this.#rows = new KeptRows(store, endpointsCollection.name, parseEndpoint);
    this.#secrets = new KeptRows(
      store,
      endpointSecretsTable,
      ({ doc }) => JSON.parse(doc) as EndpointSecrets,
    );
    this.#principals = new Principals(principalOf);
  }

  /** Number of owners with endpoints. */
  get owners(): number {
    return this.#principals.size;
  }

  /**
   * Reads the sources. Nothing is visible before `apply`.
   * @param anew reads all principals again
   * @returns ids of endpoints that may have changed
   * @throws StoreUnavailable
   */
  async read(changed: Named | 'all', anew: boolean): Promise<Iterable<string>> {
    const named = changed === 'all' ? undefined : changed.endpoints;
    await this.#rows.read(named);
    // After the endpoints, so that a known endpoint always has its secrets.
    await this.#secrets.read(named);
    const owners = new Set(changed === 'all' ? [] : changed.owners);
    if (named === undefined || anew) {
      await this.#principals.read(
        this.#ownersOf(this.#rows.rows.keys()),
        (owner) => anew || owners.has(owner ?? ''),
        true,
      );
      return new Set([...this.byId.keys(), ...this.#rows.rows.keys()]);
    }
    const ids = new Set(named);
    if (owners.size > 0) for (const id of this.#withRightsOf(owners)) ids.add(id);
    await this.#principals.read(this.#ownersOf(ids), (owner) => owners.has(owner ?? ''), false);
    return ids;
  }

  /** @returns true if anything changed */
  apply(ids: Iterable<string>): boolean {
    let isOther = false;
    for (const id of ids) {
      const before = this.byId.get(id);
      const after = this.#known(id, before);
      if (before === after) continue;
      isOther = true;
      if (after === undefined) this.byId.delete(id);
      else this.byId.set(id, after);
      this.matcher.change(before, after);
      if (before !== undefined) this.#count(before.owner, -1);
      if (after !== undefined) this.#count(after.owner, 1);
    }
    return isOther;
  }

  #count(owner: string | null, change: 1 | -1): void {
    const next = (this.counts.get(owner) ?? 0) + change;
    if (next === 0) this.counts.delete(owner);
    else this.counts.set(owner, next);
  }

  /**
   * Returns the endpoint as it should be known; undefined if there is none. The two tables are read one after the
   * other, so an endpoint without a row of secrets was created or removed in between. If the header values belong to
   * another URL, the endpoint was changed in between and keeps its earlier state: no value is sent to a URL for which it
   * was not given. The change triggers another read, which finds both rows. If nothing changed, the object stays the
   * same.
   */
  #known(id: string, before: KnownEndpoint | undefined): KnownEndpoint | undefined {
    const row = this.#rows.rows.get(id);
    const secrets = this.#secrets.rows.get(id)?.value;
    if (row === undefined || secrets === undefined) return undefined;
    const { rev, value } = row;
    const { endpoint, owner, url } = value;
    const { headers } = secrets;
    if (headers !== undefined && headers.url !== endpoint.url) return before;
    const principal = this.#principals.get(rightsHolder(owner, secrets), secrets.scopes);
    const isSame =
      before?.rev === rev && before.secrets === secrets.secrets && before.principal === principal;
    if (isSame) return before;
    return { endpoint, rev, owner, principal, url, secrets: secrets.secrets, headers: headers?.values };
  }

  /** The owners and scopes whose principals these endpoints need. */
  *#ownersOf(ids: Iterable<string>): Generator<Wanted> {
    for (const id of ids) {
      const row = this.#rows.rows.get(id);
      const secrets = this.#secrets.rows.get(id)?.value;
      if (row !== undefined && secrets !== undefined)
        yield { owner: rightsHolder(row.value.owner, secrets), scopes: secrets.scopes };
    }
  }

  /** The ids of the endpoints that have the rights of one of these principals. */
  *#withRightsOf(holders: ReadonlySet<string>): Generator<string> {
    for (const [id, { value }] of this.#rows.rows) {
      const secrets = this.#secrets.rows.get(id)?.value ?? {};
      if (holders.has(rightsHolder(value.owner, secrets) ?? '')) yield id;
    }
  }
}

type ParsedEndpoint = {
  readonly endpoint: Endpoint;
  readonly owner: string | null;
  readonly url: URL;
};

function parseEndpoint({ doc, owner }: Row): ParsedEndpoint {
  const endpoint = readEndpoint(doc);
  return { endpoint, owner, url: new URL(endpoint.url) };
}

type Kept<Value> = { readonly rev: number; readonly value: Value };

/**
 * About 0.1 ms on the calling thread with the embedded store. Secrets of an endpoint hold up to 176 KiB of header
 * fields.
 */
const rowsPerRead = 32;

/** All rows of a table in memory. A full read scans the table, but parses only rows with a new revision. */
class KeptRows<Value> {
  rows = new Map<string, Kept<Value>>();
  readonly #store: Pick<Store, 'plan' | 'read'>;
  readonly #table: string;
  readonly #parse: (row: Row) => Value;

  constructor(store: Pick<Store, 'plan' | 'read'>, table: string, parse: (row: Row) => Value) {
    this.#store = store;
    this.#table = table;
    this.#parse = parse;
  }

  /** @param ids only these rows; undefined: all. @throws StoreUnavailable; the rows are then unchanged */
  async read(ids: readonly string[] | undefined): Promise<void> {
    if (ids === undefined) {
      this.rows = await this.#readAll();
      return;
    }
    const found = await Promise.all(ids.map(async (id) => this.#store.read(this.#table, id)));
    for (const [index, id] of ids.entries()) {
      const row = found[index];
      if (row === undefined) this.rows.delete(id);
      else this.rows.set(id, this.#kept(row));
    }
  }

  async #readAll(): Promise<Map<string, Kept<Value>>> {
    const plan = this.#store.plan({ table: this.#table, filter: always, sort: byId, limit: rowsPerRead });
    const found = new Map<string, Kept<Value>>();
    for await (const part of rowBatches(plan, rowsPerRead)) {
      for (const row of part) found.set(row.id, this.#kept(row));
    }
    return found;
  }

  #kept(row: Row): Kept<Value> {
    const kept = this.rows.get(row.id);
    return kept?.rev === row.rev ? kept : { rev: row.rev, value: this.#parse(row) };
  }
}

/** Undefined: the account does not exist or is disabled. */
export type PrincipalOf = (
  owner: string | null,
  scopes: readonly Scope[],
) => Promise<Authenticated | undefined>;

type Wanted = { readonly owner: string | null; readonly scopes: readonly Scope[] };

/** Concurrent queries: the store batches them, and none of its queues fills. */
const askedAtOnce = 256;

/**
 * The principals of endpoints: one for each owner and set of scopes, however many endpoints they have. They stay the
 * same objects if their rights did not change.
 */
class Principals {
  #known = new Map<string, Authenticated | undefined>();
  readonly #principalOf: PrincipalOf;

  constructor(principalOf: PrincipalOf) {
    this.#principalOf = principalOf;
  }

  /** Valid only after `read` of the same. */
  get(owner: string | null, scopes: readonly Scope[]): Authenticated | undefined {
    return this.#known.get(keyOf(owner, scopes));
  }

  get size(): number {
    return this.#known.size;
  }

  /**
   * Reads unknown principals and stale ones. Rejects as `principalOf` does, and then changes nothing.
   * @param isAll forgets all that are not wanted
   */
  async read(
    wanted: Iterable<Wanted>,
    isStale: (owner: string | null) => boolean,
    isAll: boolean,
  ): Promise<void> {
    const asked: [string, Wanted][] = [];
    const kept = new Map<string, Authenticated | undefined>();
    for (const each of wanted) {
      const key = keyOf(each.owner, each.scopes);
      if (kept.has(key)) continue;
      kept.set(key, this.#known.get(key));
      if (!this.#known.has(key) || isStale(each.owner)) asked.push([key, each]);
    }
    const found: [string, Authenticated | undefined][] = [];
    for (let at = 0; at < asked.length; at += askedAtOnce) {
      const part = asked.slice(at, at + askedAtOnce);
      found.push(
        ...(await Promise.all(
          part.map(async ([key, { owner, scopes }]): Promise<(typeof found)[number]> => {
            return [key, await this.#principalOf(owner, scopes)];
          }),
        )),
      );
    }
    const next = isAll ? kept : this.#known;
    for (const [key, principal] of found) next.set(key, same(this.#known.get(key), principal));
    this.#known = next;
  }
}

function same(before: Authenticated | undefined, now: Authenticated | undefined): Authenticated | undefined {
  return before !== undefined && before.audience === now?.audience ? before : now;
}

function keyOf(owner: string | null, scopes: readonly Scope[]): string {
  return `${owner ?? ''} ${scopes.join()}`;
}
