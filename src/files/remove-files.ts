/**
 * Removes the octets that no document has: of files that documents lost, and of uploads past their lifetime. Rows are found by their state
 * and age, so the work is that of what is to go and not of what is kept. Octets go before their row; a crash in between repeats the removal.
 * A restored copy removes nothing before it is released: the place may be that of the store that it was made of.
 */
import { opendir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { isHeld } from '../hold/hold.ts';
import { allOf } from '../model/filter.ts';
import type { Services } from '../store/capabilities.ts';
import { createFollower, type Follower } from '../store/follower.ts';
import type { Row } from '../store/store.ts';
import {
  byAge,
  type FileState,
  fileChange,
  fileFields,
  filesTable,
  isFileId,
  recordOf,
} from './file-rows.ts';
import { removeIncoming } from './incoming.ts';
import { isMissing, type Place } from './place.ts';
import { removeOctets } from './receive-file.ts';

type Removing = Pick<Services, 'store' | 'clock' | 'observe' | 'settings'> & { readonly place: Place };

/** Rows of one read; each is a removal of octets and a unit. */
const rowsMax = 100;
const roundMs = 60_000;

export function createRemoval(removing: Removing): Follower {
  const { observe } = removing;
  return createFollower(
    async () => {
      if (!(await isHeld(removing.store))) await removeDue(removing);
    },
    (error) => observe({ kind: 'store-failed', what: 'removing the octets of files', error }),
    roundMs,
  );
}

/** Removes the files that no document has any more, and the uploads past their lifetime. */
export async function removeDue(removing: Omit<Removing, 'observe'>): Promise<void> {
  await removeAll(removing, 'removed', removing.clock() + 1);
  const lapsedAt = removing.clock() - removing.settings.uploadSeconds * 1000;
  for (const state of ['arriving', 'complete'] as const) await removeAll(removing, state, lapsedAt);
  await removeLeftIncoming(removing, lapsedAt);
}

/** Removes what uploads that ended in another process left in `incoming` here: files without a row, untouched as long as an upload lives. */
async function removeLeftIncoming(
  { store, place }: Pick<Removing, 'store' | 'place'>,
  lapsedAt: number,
): Promise<void> {
  for await (const { name } of await opendir(place.incoming)) {
    const [id = ''] = name.split('.', 1);
    if (!isFileId(id)) continue;
    const path = join(place.incoming, name);
    const found = await stat(path).catch(ignoreMissing);
    if (found === undefined || found.mtimeMs >= lapsedAt) continue;
    const row = await store.read(filesTable, id);
    if (row === undefined || recordOf(row).state !== 'arriving') await removeIncoming(path);
  }
}

function ignoreMissing(error: unknown): undefined {
  if (!isMissing(error)) throw error;
}

async function removeAll(
  removing: Omit<Removing, 'observe'>,
  state: FileState,
  changedBefore: number,
): Promise<void> {
  const { store } = removing;
  const value = new Date(changedBefore).toISOString();
  const filter = allOf([
    { op: 'eq', field: fileFields.stateField, value: state },
    { op: 'lt', field: byAge[0].field, value },
  ]);
  const plan = store.plan({ table: filesTable, filter, sort: byAge, limit: rowsMax });
  for (;;) {
    const rows = await plan.rows({ from: 'start' });
    let removed = 0;
    for (const row of rows) if (await removeOne(removing, row)) removed += 1;
    // Rows that other processes changed are read again in the next round.
    if (rows.length < rowsMax || removed === 0) return;
  }
}

/** @returns false if the row changed meanwhile: a document may have taken an upload */
async function removeOne({ store, place, clock }: Omit<Removing, 'observe'>, row: Row): Promise<boolean> {
  const record = recordOf(row);
  let { rev } = row;
  if (record.state !== 'removed') {
    const given = { ...record, state: 'removed' } as const;
    const commit = await store.commit({ changes: [fileChange(row.id, row, given, clock())], events: [] });
    if (commit.outcome !== 'committed') return false;
    rev = commit.rev;
  }
  await removeOctets(place, row.id, record);
  const gone = fileChange(row.id, { ...row, rev }, undefined, clock());
  const { outcome } = await store.commit({ changes: [gone], events: [] });
  return outcome === 'committed';
}
