/**
 * The directory of all endpoints in memory, followed from the store. Where it matters, it is never out of date: the
 * unit of an event carries the guard of the generation with which it was matched (generation.ts), and is refused if an
 * endpoint or an owner's rights changed meanwhile; before an attempt is sent, `mayReceive` checks again. Changed
 * secrets end the generation too. Changes that do not end it are read a second after a change of the principals'
 * tables; with more than a thousand owners, after one millisecond per owner.
 *
 * One read runs at a time. A request during a read waits for the next one, since the current one may have passed what
 * it is about. A failed read changes nothing; one that the store triggered is repeated after a second.
 */
import type { Collection } from '../../../model/collection.ts';
import { eventType, noCollection } from '../../../model/event.ts';
import type { Observe } from '../../../observe/observation.ts';
import type { Services } from '../../../store/capabilities.ts';
import { judged, RelatedRows } from '../../../store/related-rows.ts';
import { type Change, type MaybePromise, type Store, whenKnown } from '../../../store/store.ts';
import { oneAtATime } from '../../../store/table-changes.ts';
import type { EndpointDirectory, KnownEndpoint } from '../known-endpoint.ts';
import { endpointGenerationTable, endpointSecretsTable, endpointsCollection } from '../sending-tables.ts';
import { isTestEvent } from '../test-events.ts';
import {
  createKeptRows,
  createPrincipals,
  knownEndpoint,
  ownersOf,
  type PrincipalOf,
  parseEndpoint,
  parseSecrets,
  withRightsOf,
} from './directory-rows.ts';
import { createEventRights, type EventRights, isTold } from './event-rights.ts';
import { createGenerationReader, type Generation, type Named } from './generation.ts';
import { createMatcher, type Matcher } from './matcher.ts';

export type DirectoryOptions = Omit<StateOptions, 'onChanged'> & {
  readonly observe: Observe;
};

export type FollowedDirectory = EndpointDirectory & {
  /** Reads the current state if the last read is older than an hour: after that a guard might prove nothing. */
  freshen(): MaybePromise<void>;
};

const againAfterMs = 1000;
const principalsPauseMs = 1000;

/** Resolves after all endpoints were read. @throws StoreUnavailable */
export async function createEndpointDirectory(options: DirectoryOptions): Promise<FollowedDirectory> {
  const { clock, observe } = options;
  const listeners = new Set<() => void>();
  const state = createDirectoryState({
    ...options,
    onChanged() {
      for (const listener of listeners) listener();
    },
  });
  /** Time of the last read of principals, by `performance.now()`. */
  let askedAt = performance.now();
  let areDue = false;

  /** Whole milliseconds, rounded up: a timer that is early by a fraction would find nothing due. */
  const dueInMs = (): number => {
    const pauseMs = Math.max(principalsPauseMs, state.owners);
    return Math.ceil(Math.max(0, askedAt + pauseMs - performance.now()));
  };

  const refresh = oneAtATime(async () => {
    const anew = areDue && dueInMs() === 0;
    if (anew) {
      areDue = false;
      askedAt = performance.now();
    } else if (areDue) following.later(dueInMs());
    try {
      await state.read(anew);
    } catch (error) {
      areDue ||= anew;
      following.later(againAfterMs);
      throw error;
    }
  });
  const following = follow(options, {
    read() {
      refresh().catch((error: unknown) => {
        observe({ kind: 'sending-failed', what: 'directory of endpoints', error });
      });
    },
    onPrincipals() {
      areDue = true;
      following.later(dueInMs());
    },
  });

  try {
    await refresh();
  } catch (error) {
    following.close();
    throw error;
  }
  const admission = createAdmission(options, state, refresh);
  return {
    ...shownOf(state, clock),
    mayReceive: admission.mayReceive,
    refresh,
    onChange(listener) {
      const call = (): void => listener();
      listeners.add(call);
      return () => void listeners.delete(call);
    },
    freshen: () => (Math.abs(clock() - state.readAt) > reliedOnMs ? refresh() : undefined),
    async close() {
      following.close();
      admission.stop();
      await refresh.idle();
    },
  };
}

type Shown = Pick<EndpointDirectory, 'get' | 'all' | 'size' | 'countOf' | 'matching' | 'generationChanges'>;

function shownOf(state: DirectoryState, clock: () => number): Shown {
  return {
    get: (id) => state.endpoints.get(id),
    all: () => state.endpoints.values(),
    size: () => state.endpoints.size,
    countOf: (owner) => state.counts.get(owner) ?? 0,
    matching: (event, related) => ({
      groups: state.matcher.matching(event, related),
      guards: state.generation.guards,
    }),
    generationChanges: (unit) => state.generation.next(clock(), unit),
  };
}

type Admission = Pick<EndpointDirectory, 'mayReceive'> & { readonly stop: () => void };

function createAdmission(
  { store, collections }: Pick<DirectoryOptions, 'store' | 'collections'>,
  state: DirectoryState,
  refresh: () => Promise<void>,
): Admission {
  const collectionOf = collectionOfEvents(collections);
  const judge = (
    id: string,
    event: Parameters<EndpointDirectory['mayReceive']>[1],
  ): MaybePromise<boolean> => {
    const known = state.endpoints.get(id);
    if (known === undefined || isTestEvent(event)) return known !== undefined;
    const { owner, doc } = event;
    const told = { owner, doc, collection: collectionOf(event.type) };
    const allowed = state.rights.permission(known, told.collection);
    if (allowed !== 'depends') return allowed === 'granted';
    const rows = new RelatedRows(store);
    return judged(rows, () => isTold(state.rights, known, told, rows.find));
  };
  /**
   * The id of the row that ends the generation, known to be absent. Only for a store of this process alone, which
   * reports a change before its commit resolves; a shared store is asked each time.
   */
  let absent: string | undefined;
  const stop = store.onChange(endpointGenerationTable, () => {
    absent = undefined;
  });
  return {
    mayReceive(id, event) {
      const [next, known] = state.generation.guards;
      if (absent === next?.id) return judge(id, event);
      const ended = store.read(endpointGenerationTable, next?.id ?? '');
      if (ended === undefined && !store.shared) absent = next?.id;
      const lasts = known === undefined || standsAsExpected(store, known);
      return whenKnown(ended, (row) =>
        whenKnown(lasts, (isKept) =>
          row === undefined && isKept ? judge(id, event) : refresh().then(() => judge(id, event)),
        ),
      );
    },
    stop,
  };
}

function standsAsExpected(store: Pick<Store, 'read'>, { table, id, expect }: Change): MaybePromise<boolean> {
  return whenKnown(
    store.read(table, id),
    (row) => row !== undefined && 'rev' in expect && row.rev === expect.rev,
  );
}

/** Events of declared collections have the collection's types; all other events have no resource. */
function collectionOfEvents(collections: DirectoryOptions['collections']): (type: string) => string {
  const byType = new Map<string, string>();
  for (const { name } of collections) {
    for (const change of ['created', 'updated', 'deleted'] as const)
      byType.set(eventType(name, change), name);
  }
  return (type) => byType.get(type) ?? noCollection;
}

type Follower = { readonly read: () => void; readonly onPrincipals: () => void };

type Following = {
  /** Reads after a pause; the earliest of several pauses counts. */
  later(pauseMs: number): void;
  close(): void;
};

/** Calls back after changes in the store. */
function follow(
  { store, principalTables }: Pick<DirectoryOptions, 'store' | 'principalTables'>,
  { read, onPrincipals }: Follower,
): Following {
  // Every change of an endpoint or its secrets ends the generation, so this table suffices.
  const tables = [endpointGenerationTable];
  let timer: NodeJS.Timeout | undefined;
  let gathered = false;
  let closed = false;

  /** Gathers the changes that one unit makes to several tables. */
  function soon(): void {
    if (gathered) return;
    gathered = true;
    setImmediate(() => {
      gathered = false;
      if (!closed) read();
    });
  }

  const stops = [
    ...tables.map((table) => store.onChange(table, soon)),
    ...principalTables.map((table) => store.onChange(table, onPrincipals)),
  ];
  return {
    later(pauseMs) {
      if (closed || timer !== undefined) return;
      timer = setTimeout(() => {
        timer = undefined;
        read();
      }, pauseMs);
      timer.unref();
    },
    close() {
      closed = true;
      for (const stop of stops) stop();
      clearTimeout(timer);
    },
  };
}

type StateOptions = Pick<Services, 'store' | 'clock'> & {
  readonly collections: Iterable<Collection>;
  readonly principalOf: PrincipalOf;
  /** Tables that `principalOf` depends on, whose row ids are those of owners: users and keys. */
  readonly principalTables: readonly string[];
  readonly onChanged: () => void;
};

type DirectoryState = {
  readonly endpoints: ReadonlyMap<string, KnownEndpoint>;
  readonly counts: ReadonlyMap<string | null, number>;
  readonly matcher: Matcher;
  readonly rights: EventRights;
  /** @throws Error before the first read */
  readonly generation: Generation;
  /** Start of the last successful read, in milliseconds since the epoch. */
  readonly readAt: number;
  /** Number of known owners. */
  readonly owners: number;
  /** @param anew reads all principals again. @throws StoreUnavailable; the state is then unchanged */
  read(anew: boolean): Promise<void>;
};

/** An hour, well within the day for which generations are kept: an older read proves nothing. */
const reliedOnMs = 3_600_000;

function createDirectoryState(options: StateOptions): DirectoryState {
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

  /** @returns ids of endpoints that may have changed */
  async function readAll(anew: boolean): Promise<Iterable<string>> {
    await rows.endpoints.read();
    // After the endpoints, so that a known endpoint always has its secrets.
    await rows.secrets.read();
    await principals.know(ownersOf(rows, rows.endpoints.rows.keys()), anew);
    return new Set([...known.endpoints.keys(), ...rows.endpoints.rows.keys()]);
  }

  async function readNamed(named: Named): Promise<Iterable<string>> {
    await rows.endpoints.readSome(named.endpoints);
    await rows.secrets.readSome(named.endpoints);
    const owners = new Set(named.owners);
    const ids = new Set(named.endpoints);
    for (const id of owners.size > 0 ? withRightsOf(rows, owners) : []) ids.add(id);
    await principals.learn(ownersOf(rows, ids), owners);
    return ids;
  }

  async function read(anew: boolean): Promise<void> {
    const beganAt = clock();
    // Read before the rows: a change in between ends this generation, and units that rely on it are refused.
    const isTrusted = Math.abs(beganAt - readAt) <= reliedOnMs;
    const current = await generations.read(isTrusted ? generation : undefined);
    const { changed } = current;
    let ids = changed === 'all' ? await readAll(anew) : await readNamed(changed);
    if (anew && changed !== 'all') {
      ids = [...rows.endpoints.rows.keys()];
      await principals.know(ownersOf(rows, ids), true);
    }
    // Synchronously, so that the endpoints never meet the guard of another generation.
    generation = current;
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
      if (generation === undefined) throw new Error('the directory of endpoints has not been read yet');
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

/** The endpoints by id, by owner and in the matcher, changed in place. */
class Known {
  readonly endpoints = new Map<string, KnownEndpoint>();
  readonly counts = new Map<string | null, number>();
  readonly matcher: Matcher;

  constructor(matcher: Matcher) {
    this.matcher = matcher;
  }

  /** @returns true if anything changed */
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
