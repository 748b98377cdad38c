/** What the directory knows, and the reading that brings it up to what stands. */
import type { Collection } from '../../../model/collection.ts';
import type { Store } from '../../../store/store.ts';
import { endpointsCollection } from '../collections.ts';
import type { KnownEndpoint } from '../known-endpoint.ts';
import { endpointSecretsTable } from '../tables.ts';
import { createEventRights } from './event-rights.ts';
import { createGenerationReader, type Generation } from './generation.ts';
import { createKeptRows } from './kept-rows.ts';
import { knownEndpoints, ownersOf, parseEndpoint, parseSecrets } from './known-rows.ts';
import { createMatcher, type Matcher } from './matcher.ts';
import { createPrincipals, type PrincipalOf } from './principals.ts';

export type StateOptions = {
  readonly store: Store;
  readonly collections: Iterable<Collection>;
  readonly principalOf: PrincipalOf;
  readonly clock: () => number;
  readonly onChanged: () => void;
};

export type DirectoryState = {
  readonly endpoints: ReadonlyMap<string, KnownEndpoint>;
  readonly matcher: Matcher;
  /** @throws Error before the first reading */
  readonly generation: Generation;
  /** When the last reading that succeeded began, in milliseconds since the epoch. */
  readonly readAt: number;
  /** Owners that are known, each once for all its endpoints. */
  readonly owners: number;
  /** @param anew whether to ask for all principals again. @throws StoreUnavailable; then all is as it was before */
  read(anew: boolean): Promise<void>;
};

export function createDirectoryState(options: StateOptions): DirectoryState {
  const { store, clock, onChanged } = options;
  const rights = createEventRights(options.collections);
  const generations = createGenerationReader(store, clock);
  const rows = {
    endpoints: createKeptRows(store, endpointsCollection.name, parseEndpoint),
    secrets: createKeptRows(store, endpointSecretsTable, parseSecrets),
  };
  const principals = createPrincipals(options.principalOf);
  let endpoints: ReadonlyMap<string, KnownEndpoint> = new Map();
  let matcher = createMatcher([], rights);
  let generation: Generation | undefined;
  let readAt = 0;

  async function read(anew: boolean): Promise<void> {
    const beganAt = clock();
    // Before the rows: a change in between ends this generation, and what relies on it is refused.
    const standing = await generations.read();
    await rows.endpoints.read();
    // After those, so that of an endpoint that is known the secrets are too.
    await rows.secrets.read();
    await principals.know(ownersOf(rows), anew);
    const known = knownEndpoints(rows, principals, endpoints);
    const isOther =
      known.size !== endpoints.size || [...known].some(([id, each]) => endpoints.get(id) !== each);
    generation = standing;
    readAt = beganAt;
    if (!isOther) return;
    endpoints = known;
    matcher = createMatcher(known.values(), rights);
    onChanged();
  }

  return {
    get endpoints() {
      return endpoints;
    },
    get matcher() {
      return matcher;
    },
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
    read,
  };
}
