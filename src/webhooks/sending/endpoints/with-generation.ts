/**
 * A store whose commits keep the generation of the endpoints in step (known-endpoint.ts): a unit that contains a change of the generation
 * says that it changes what is sent where, and gets the change that fits when it is committed. So a race with another endpoint is no
 * race for this one: it is neither told of a conflict nor looks like a failed If-Match.
 *
 * The units of one process wait for each other in one line, because of two at once one would be for nothing. When the commit resolves, this process
 * sends as it says; others hear of it as soon as the store tells them.
 */
import type { Change, Commit, Store, Unit } from '../../../store/store.ts';
import type { EndpointDirectory } from '../known-endpoint.ts';
import { endpointGenerationTable, generationLine } from '../sending-tables.ts';

/** The rest of the store is as it was. */
export function withGeneration(
  store: Store,
  directory: Pick<EndpointDirectory, 'generationChanges' | 'refresh'>,
): Store {
  return {
    ...store,
    commit(unit) {
      if (!unit.changes.some(isGeneration)) return store.commit(unit);
      return store.lines.hold(generationLine, false, (checkTime) =>
        commitNext(store, directory, unit, checkTime),
      );
    },
  };
}

async function commitNext(
  store: Store,
  directory: Pick<EndpointDirectory, 'generationChanges' | 'refresh'>,
  { changes, events }: Unit,
  checkTime: () => void,
): Promise<Commit> {
  const own = [...changes.entries()].filter(([, change]) => !isGeneration(change));
  const ownChanges = own.map(([, change]) => change);
  for (;;) {
    checkTime();
    const generation = directory.generationChanges(ownChanges);
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
}

/** Waits until this process knows what was committed. If that fails, the change is made all the same, and the directory tries again itself. */
async function inForce(directory: Pick<EndpointDirectory, 'refresh'>): Promise<void> {
  await directory.refresh().catch(() => {
    // Whoever asked must hear that the change was made: of a new secret there is no other way to learn it.
  });
}

function isGeneration({ table }: Change): boolean {
  return table === endpointGenerationTable;
}
