/**
 * The endpoints in memory, followed from the store. Three things may be behind, and how far:
 *
 *   what is sent where     never when it matters: the unit of an event carries the guard of the generation that it was matched with
 *                          (generation.ts), and is refused where the endpoints changed meanwhile
 *   secrets                until the store tells of the change: at once in the process that rotated, some milliseconds in others by
 *                          NOTIFY, and `databasePollMs` (1 s) where that is lost. So long the old secrets sign
 *   rights of the owners   as secrets, and a second more; where there are more than a thousand owners, a millisecond for each: every
 *                          new account is a change of the table that theirs stand in
 *
 * One reading at a time: whoever asks for one while another runs waits for the next, since the one that runs may have passed what it
 * asks about. A reading that fails changes nothing; one that the store asked for is done again after a second.
 */
import type { Observe } from '../../../observe/observation.ts';
import { oneAtATime } from '../../../store/one-at-a-time.ts';
import type { MaybePromise } from '../../../store/store.ts';
import { endpointsCollection } from '../collections.ts';
import type { EndpointDirectory } from '../known-endpoint.ts';
import { endpointGenerationTable, endpointSecretsTable } from '../tables.ts';
import { createDirectoryState, type StateOptions } from './directory-state.ts';

export type DirectoryOptions = Omit<StateOptions, 'onChanged'> & {
  /** Tables that what `principalOf` says depends on: those of users and keys. */
  readonly principalTables: readonly string[];
  readonly observe: Observe;
};

export type FollowedDirectory = EndpointDirectory & {
  /** Reads what stands where that was last done an hour ago: later a guard might prove nothing. */
  freshen(): MaybePromise<void>;
};

/** An hour, of the day for which generations are kept. */
const reliedOnMs = 3_600_000;
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
    get: (id) => state.endpoints.get(id),
    all: () => state.endpoints.values(),
    matching: (event) => ({ endpoints: state.matcher.matching(event), guard: state.generation.guard }),
    generationChanges: () => state.generation.next(clock()),
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
  const tables = [endpointGenerationTable, endpointsCollection.name, endpointSecretsTable];
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
