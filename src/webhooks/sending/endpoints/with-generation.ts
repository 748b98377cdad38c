/**
 * A store whose commits keep the generation of the endpoints up to date (fan-out/generation.ts): in a unit with a
 * change of the generation, it replaces that change by the one that is right at the commit. So a race with another
 * endpoint causes no conflict and no failed If-Match.
 *
 * The units of one process wait for each other in one line, because one of two concurrent ones would be superseded.
 * When the commit resolves, this process sends accordingly; other processes do as soon as the store notifies them.
 */
import type { Change, Commit, Store, Unit } from '../../../store/store.ts';
import type { EndpointDirectory } from '../known-endpoint.ts';
import { endpointGenerationTable, generationLine } from '../sending-tables.ts';

/** Returns the same store with another `commit`. */
export function withGeneration(
  store: Store & { readonly [inStep]?: true },
  directory: Pick<EndpointDirectory, 'generationChanges' | 'refresh'>,
): Store {
  // Two of them would wait for each other.
  if (store[inStep] === true) return store;
  const marked: Store & { readonly [inStep]: true } = {
    ...store,
    [inStep]: true,
    commit(unit) {
      if (!unit.changes.some(isGeneration)) return store.commit(unit);
      return store.lines.hold(generationLine, false, (checkTime) =>
        commitNext(store, directory, unit, checkTime),
      );
    },
  };
  return marked;
}

const inStep: unique symbol = Symbol('commits keep the generation in step');

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

/**
 * Waits until this process has read the change. A failure is ignored: the change is committed, and the directory
 * repeats the read itself.
 */
async function inForce(directory: Pick<EndpointDirectory, 'refresh'>): Promise<void> {
  await directory.refresh().catch(() => {
    // The caller must get its response: there is no other way to learn a new secret.
  });
}

function isGeneration({ table }: Change): boolean {
  return table === endpointGenerationTable;
}
