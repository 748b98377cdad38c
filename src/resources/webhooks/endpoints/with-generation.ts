/**
 * A store whose commits keep the generation of the endpoints in step (known-endpoint.ts): a unit that contains a change of the generation
 * says that it changes what is sent where, and gets the change that fits when it is committed. So a race with another endpoint is no
 * race for this one: it is neither told of a conflict nor looks like a failed If-Match.
 *
 * The units of one process wait for each other, because of two at once one would be for nothing. When the commit resolves, this process
 * sends as it says; others hear of it as soon as the store tells them.
 */
import { type Change, type Commit, type Store, StoreUnavailable, type Unit } from '../../../store/store.ts';
import type { EndpointDirectory } from '../../../webhooks/outbound/known-endpoint.ts';
import { endpointGenerationTable } from '../../../webhooks/outbound/tables.ts';

/** Each lost race means that another process changed an endpoint, so this many in a row mean a store under siege. */
const attemptsMax = 32;

/** The rest of the store is as it was. */
export function withGeneration(
  store: Store,
  directory: Pick<EndpointDirectory, 'generationChanges' | 'refresh'>,
): Store {
  let before: Promise<unknown> = Promise.resolve();
  return {
    ...store,
    commit(unit) {
      if (!unit.changes.some(isGeneration)) return store.commit(unit);
      const commit = before.then(() => commitNext(store, directory, unit));
      before = commit.catch(() => undefined);
      return commit;
    },
  };
}

async function commitNext(
  store: Store,
  directory: Pick<EndpointDirectory, 'generationChanges' | 'refresh'>,
  { changes, events }: Unit,
): Promise<Commit> {
  const own = [...changes.entries()].filter(([, change]) => !isGeneration(change));
  const ownChanges = own.map(([, change]) => change);
  for (let attempt = 0; attempt < attemptsMax; attempt += 1) {
    const generation = directory.generationChanges();
    const commit = await store.commit({ changes: [...ownChanges, ...generation], events });
    if (commit.outcome === 'committed') {
      await inForce(directory);
      return commit;
    }
    if (commit.change < own.length) return { ...commit, change: own[commit.change]?.[0] ?? commit.change };
    if (commit.change >= own.length + generation.length) {
      return { ...commit, change: commit.change - own.length - generation.length + changes.length };
    }
    await directory.refresh();
  }
  throw new StoreUnavailable('the endpoints change faster than they can be read', { retryAfterSeconds: 1 });
}

/** Waits until this process knows what was committed. If that fails, the change is made all the same, and the directory tries again itself. */
export async function inForce(directory: Pick<EndpointDirectory, 'refresh'>): Promise<void> {
  await directory.refresh().catch(() => {
    // Whoever asked must hear that the change was made: of a new secret there is no other way to learn it.
  });
}

function isGeneration({ table }: Change): boolean {
  return table === endpointGenerationTable;
}
