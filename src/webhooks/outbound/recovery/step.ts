/** One step of one recovery: the next chunk with the progress that it makes, committed together, or its end. */
import type { Change, Row, Store } from '../../../store/store.ts';
import { endpointsCollection } from '../collections.ts';
import type { EndpointDirectory, KnownEndpoint } from '../known-endpoint.ts';
import type { Wakes } from '../wakes.ts';
import { type ChunkParts, nextChunk } from './chunk.ts';
import { ended, progressed, type Recovery, recoveriesTable } from './recovery.ts';

export type StepParts = Omit<ChunkParts, 'store'> & {
  readonly store: Store;
  readonly directory: Pick<EndpointDirectory, 'get' | 'refresh'>;
  readonly wakes: Pick<Wakes, 'changesFor' | 'announce'>;
  /** Milliseconds since the epoch. */
  readonly clock: () => number;
};

/** `lost`: something that it rests on changed meanwhile, and nothing was done. */
export type Stepped = 'made' | 'lost' | 'over';

/** @throws StoreUnavailable */
export async function recoverStep(parts: StepParts, id: string): Promise<Stepped> {
  const { store, clock } = parts;
  const row = await store.read(recoveriesTable, id);
  if (row === undefined) return 'over';
  const recovery = JSON.parse(row.doc) as Recovery;
  if (recovery.status !== 'running') return 'over';
  const known = await findEndpoint(parts, recovery.endpointId);
  if (known === 'gone') return endWith(store, [ended(row, recovery, 'stopped', clock())]);
  if (known === 'unknown') return 'lost';
  return advance(parts, row, recovery, known);
}

async function advance(
  parts: StepParts,
  row: Row,
  recovery: Recovery,
  known: KnownEndpoint,
): Promise<Stepped> {
  const { store, wakes, clock } = parts;
  const at = clock();
  const { counts, changes, after, isLast } = await nextChunk(parts, recovery, known, at);
  const progress = progressed(row, recovery, { counts, after }, at);
  const last = isLast ? finished(row, progress, at) : progress;
  const woken = changes.length > 0 ? wakes.changesFor(recovery.endpointId) : [];
  const commit = await store.commit({ changes: [last, ...changes, ...woken], events: [] });
  if (commit.outcome !== 'committed') return 'lost';
  if (changes.length > 0) wakes.announce([recovery.endpointId]);
  return isLast ? 'over' : 'made';
}

/** The last progress and the end are one change. */
function finished(row: Row, { next }: Change, at: number): Change {
  if (next === null) throw new Error('progress that removes its recovery');
  return ended(row, JSON.parse(next.doc) as Recovery, 'finished', at);
}

async function endWith(store: Store, changes: readonly Change[]): Promise<Stepped> {
  const commit = await store.commit({ changes, events: [] });
  return commit.outcome === 'committed' ? 'over' : 'lost';
}

/** The directory follows the store, so one that it does not know may just have been made, or be gone. */
async function findEndpoint(
  { store, directory }: StepParts,
  id: string,
): Promise<KnownEndpoint | 'gone' | 'unknown'> {
  const known = directory.get(id);
  if (known !== undefined) return known;
  if ((await store.read(endpointsCollection.name, id)) === undefined) return 'gone';
  await directory.refresh();
  return directory.get(id) ?? 'unknown';
}
