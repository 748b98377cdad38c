/**
 * The endpoints in memory, followed from the store. What is sent where, and what the owners may read, is never behind when it matters: the unit
 * of an event carries the guard of the generation that it was matched with (generation.ts), and is refused where one of them
 * changed meanwhile; before an attempt is sent, `mayReceive` looks once more. Secrets end the generation as well. What ends none is asked for
 * again a second after a change of the tables that principals stand in; where there are more than a thousand owners, a millisecond for each.
 *
 * One reading at a time: whoever asks for one while another runs waits for the next, since the one that runs may have passed what it
 * asks about. A reading that fails changes nothing; one that the store asked for is done again after a second.
 */
import { eventType } from '../../../model/event.ts';
import { noCollection } from '../../../model/event-access.ts';
import type { Observe } from '../../../observe/observation.ts';
import { oneAtATime } from '../../../store/one-at-a-time.ts';
import type { MaybePromise } from '../../../store/store.ts';
import type { EndpointDirectory } from '../known-endpoint.ts';
import { isTestEvent } from '../recovery/test-event.ts';
import { endpointGenerationTable } from '../tables.ts';
import {
  createDirectoryState,
  type DirectoryState,
  reliedOnMs,
  type StateOptions,
} from './directory-state.ts';
import { isTold } from './event-rights.ts';

export type DirectoryOptions = Omit<StateOptions, 'onChanged'> & {
  readonly observe: Observe;
};

export type FollowedDirectory = EndpointDirectory & {
  /** Reads what stands where that was last done an hour ago: later a guard might prove nothing. */
  freshen(): MaybePromise<void>;
};

const againAfterMs = 1000;
const principalsPauseMs = 1000;

/** Resolves when all endpoints are known. @throws StoreUnavailable */
export async function createEndpointDirectory(options: DirectoryOptions): Promise<FollowedDirectory> {
  const { clock, observe } = options;
  const listeners = new Set<() => void>();
  const state = createDirectoryState({
    ...options,
    onChanged() {
      for (const listener of listeners) listener();
    },
  });
  /** When the principals were last asked for, on the clock of `performance.now()`. */
  let askedAt = performance.now();
  let areDue = false;

  /** Whole milliseconds, rounded up: a timer that is early by a part of one would find nothing due. */
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
  return {
    ...shownOf(state, clock),
    mayReceive: createMayReceive(options, state, refresh),
    refresh,
    onChange(listener) {
      const call = (): void => listener();
      listeners.add(call);
      return () => void listeners.delete(call);
    },
    freshen: () => (Math.abs(clock() - state.readAt) > reliedOnMs ? refresh() : undefined),
    async close() {
      following.close();
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
    matching: (event) => ({ groups: state.matcher.matching(event), guard: state.generation.guard }),
    generationChanges: (unit) => state.generation.next(clock(), unit),
  };
}

function createMayReceive(
  { store, collections }: Pick<DirectoryOptions, 'store' | 'collections'>,
  state: DirectoryState,
  refresh: () => Promise<void>,
): EndpointDirectory['mayReceive'] {
  const collectionOf = collectionOfEvents(collections);
  return async (id, event) => {
    const ended = store.read(endpointGenerationTable, state.generation.guard.id);
    if ((ended instanceof Promise ? await ended : ended) !== undefined) await refresh();
    const known = state.endpoints.get(id);
    if (known === undefined || isTestEvent(event)) return known !== undefined;
    return isTold(state.rights, known, { ...event, collection: collectionOf(event.type) });
  };
}

/** The types of a declared collection's events are its own; every other event tells of no resource. */
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
  /** Reads after a pause; the earliest of several is kept. */
  later(pauseMs: number): void;
  close(): void;
};

/** Calls back when the store tells of a change. */
function follow(
  { store, principalTables }: Pick<DirectoryOptions, 'store' | 'principalTables'>,
  { read, onPrincipals }: Follower,
): Following {
  // Whatever changes an endpoint or its secrets ends the generation.
  const tables = [endpointGenerationTable];
  let timer: NodeJS.Timeout | undefined;
  let gathered = false;
  let closed = false;

  /** A unit changes several of the tables. */
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
