/** What the directory knows, and the reading that brings it up to what stands. */
import type { Collection } from '../../../model/collection.ts';
import type { Store } from '../../../store/store.ts';
import { endpointsCollection } from '../collections.ts';
import type { KnownEndpoint } from '../known-endpoint.ts';
import { endpointSecretsTable } from '../tables.ts';
import { createEventRights, type EventRights } from './event-rights.ts';
import { createGenerationReader, type Generation, type Named } from './generation.ts';
import { createKeptRows } from './kept-rows.ts';
import { knownEndpoint, ownersOf, parseEndpoint, parseSecrets } from './known-rows.ts';
import { createMatcher, type Matcher } from './matcher.ts';
import { createPrincipals, type PrincipalOf } from './principals.ts';

export type StateOptions = {
  readonly store: Store;
  readonly collections: Iterable<Collection>;
  readonly principalOf: PrincipalOf;
  /** Tables that what `principalOf` says depends on, whose rows have the ids of owners: those of users and keys. */
  readonly principalTables: readonly string[];
  readonly clock: () => number;
  readonly onChanged: () => void;
};

export type DirectoryState = {
  readonly endpoints: ReadonlyMap<string, KnownEndpoint>;
  /** How many endpoints an owner has. */
  readonly counts: ReadonlyMap<string | null, number>;
  readonly matcher: Matcher;
  readonly rights: EventRights;
  /** @throws Error before the first reading */
  readonly generation: Generation;
  /** When the last reading that succeeded began, in milliseconds since the epoch. */
  readonly readAt: number;
  /** Owners that are known, each once for all its endpoints. */
  readonly owners: number;
  /** @param anew whether to ask for all principals again. @throws StoreUnavailable; then all is as it was before */
  read(anew: boolean): Promise<void>;
};

/** An hour, of the day for which generations are kept: what was read earlier proves nothing. */
export const reliedOnMs = 3_600_000;

export function createDirectoryState(options: StateOptions): DirectoryState {
  const { store, clock, onChanged } = options;
  const rights = createEventRights(options.collections);
  const generations = createGenerationReader(store, clock, options.principalTables);
  const rows = {
    endpoints: createKeptRows(store, endpointsCollection.name, parseEndpoint),
    secrets: createKeptRows(store, endpointSecretsTable, parseSecrets),
  };
  const principals = createPrincipals(options.principalOf);
  const known = new Known(createMatcher(rights));
  let generation: Generation | undefined;
  let readAt = 0;

  /** @returns ids of endpoints that may be others now */
  async function readAll(anew: boolean): Promise<Iterable<string>> {
    await rows.endpoints.read();
    // After those, so that of an endpoint that is known the secrets are too.
    await rows.secrets.read();
    await principals.know(ownersOf(rows, rows.endpoints.rows.keys()), anew);
    return new Set([...known.endpoints.keys(), ...rows.endpoints.rows.keys()]);
  }

  async function readNamed(named: Named): Promise<Iterable<string>> {
    await rows.endpoints.readSome(named.endpoints);
    await rows.secrets.readSome(named.endpoints);
    const owners = new Set(named.owners);
    const ids = new Set(named.endpoints);
    if (owners.size > 0) {
      for (const [id, { value }] of rows.endpoints.rows) if (owners.has(value.owner ?? '')) ids.add(id);
    }
    await principals.learn(ownersOf(rows, ids), owners);
    return ids;
  }

  async function read(anew: boolean): Promise<void> {
    const beganAt = clock();
    // Before the rows: a change in between ends this generation, and what relies on it is refused.
    const isTrusted = Math.abs(beganAt - readAt) <= reliedOnMs;
    const standing = await generations.read(isTrusted ? generation?.number : undefined);
    const { changed } = standing;
    let ids = changed === 'all' ? await readAll(anew) : await readNamed(changed);
    if (anew && changed !== 'all') {
      ids = [...rows.endpoints.rows.keys()];
      await principals.know(ownersOf(rows, ids), true);
    }
    // In one go: nobody finds the endpoints of one generation with the guard of another.
    generation = standing;
    readAt = beganAt;
    let isOther = false;
    for (const id of ids) {
      const before = known.endpoints.get(id);
      isOther = known.put(id, before, knownEndpoint(rows, principals, id, before)) || isOther;
    }
    if (isOther) onChanged();
  }

  return {
    ...{ endpoints: known.endpoints, counts: known.counts, matcher: known.matcher, rights, read },
    get generation() {
      if (generation === undefined) throw new Error('the endpoints have not been read yet');
      return generation;
    },
    get readAt() {
      return readAt;
    },
    get owners() {
      return principals.size;
    },
  };
}

/** The endpoints by id, by owner and by what they want, changed in place. */
class Known {
  readonly endpoints = new Map<string, KnownEndpoint>();
  readonly counts = new Map<string | null, number>();
  readonly matcher: Matcher;

  constructor(matcher: Matcher) {
    this.matcher = matcher;
  }

  /** @returns whether anything is different now */
  put(id: string, before: KnownEndpoint | undefined, after: KnownEndpoint | undefined): boolean {
    if (before === after) return false;
    if (after === undefined) this.endpoints.delete(id);
    else this.endpoints.set(id, after);
    this.matcher.change(before, after);
    if (before !== undefined) this.#count(before.owner, -1);
    if (after !== undefined) this.#count(after.owner, 1);
    return true;
  }

  #count(owner: string | null, change: 1 | -1): void {
    const next = (this.counts.get(owner) ?? 0) + change;
    if (next === 0) this.counts.delete(owner);
    else this.counts.set(owner, next);
  }
}
