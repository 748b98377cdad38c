/**
 * The stage of a commit that gives files to the documents of the unit and takes them away. It compares each changed document of a collection
 * with files with its row, whatever wrote it: a request, a function, a deletion that follows another, a migration. What the document gains is
 * then held, and what it loses is removed, in the unit that changes the document. A softly deleted document keeps its files.
 */
import { valueAt } from '../http/syntax/json-members.ts';
import type { Collection } from '../model/collection.ts';
import { type FileFields, type FileValue, filesIn } from '../model/file.ts';
import type { Services } from '../store/capabilities.ts';
import { type CommitStage, type CommitUnit, commitAdding } from '../store/stages.ts';
import type { Change, Commit, Unit } from '../store/store.ts';
import { fileChange, filesTable, recordOf } from './file-rows.ts';

type Staging = Pick<Services, 'store' | 'clock'> & {
  readonly holders: ReadonlyMap<string, FileFields>;
  /** Called after a unit that removes files. */
  readonly onRemoved: () => void;
};

/** The collections with files, by name. */
export function fileHolders(collections: ReadonlyMap<string, Collection>): ReadonlyMap<string, FileFields> {
  return new Map(
    [...collections.values()].flatMap(({ name, files }) =>
      files === undefined ? [] : [[name, files] as const],
    ),
  );
}

export function filesStage(staging: Staging): CommitStage {
  const { holders } = staging;
  return (unit, commit) =>
    holders.size > 0 && unit.changes.some(({ table, stays }) => stays !== true && holders.has(table))
      ? commitWithFiles(staging, unit, commit)
      : commit(unit);
}

async function commitWithFiles(staging: Staging, unit: Unit, commit: CommitUnit): Promise<Commit> {
  for (;;) {
    const moves = await movesOf(staging, unit);
    if (moves === 'superseded') return commit(unit);
    if ('outcome' in moves) return moves;
    if (moves.changes.length === 0) return commit(unit);
    const result = await commitAdding(unit, moves.changes, commit);
    // A file changed in between: it is looked at again.
    if (result.outcome === 'added-refused') continue;
    if (result.outcome === 'committed' && moves.removes) staging.onRemoved();
    return result;
  }
}

type Moves = { readonly changes: readonly Change[]; readonly removes: boolean };

/** The changes of the rows of files; `superseded`: a row is no longer as the unit expects, and the store refuses the unit. */
async function movesOf(
  { store, clock, holders }: Staging,
  unit: Unit,
): Promise<Moves | 'superseded' | Extract<Commit, { outcome: 'dangling' }>> {
  const changes: Change[] = [];
  let removes = false;
  for (const [index, { table, id, expect, next, stays }] of unit.changes.entries()) {
    const fields = stays === true ? undefined : holders.get(table);
    if (fields === undefined) continue;
    const row = 'rev' in expect ? await store.read(table, id) : undefined;
    if ('rev' in expect && row?.rev !== expect.rev) return 'superseded';
    const before = heldBy(fields, row?.doc);
    const after = heldBy(fields, next?.doc);
    for (const [file, { field, value }] of after) {
      if (before.has(file)) continue;
      const found = await store.read(filesTable, file);
      const record = found === undefined ? undefined : recordOf(found);
      if (record === undefined || (record.state !== 'arriving' && record.state !== 'complete'))
        return { outcome: 'dangling', change: index, field };
      const { upload: _, ...kept } = record;
      const { name, type, bytes, digest } = value;
      changes.push(
        fileChange(
          file,
          found,
          { ...kept, state: 'held', collection: table, document: id, field, name, type, bytes, digest },
          clock(),
        ),
      );
    }
    for (const file of before.keys()) {
      if (after.has(file)) continue;
      const found = await store.read(filesTable, file);
      if (found === undefined) continue;
      changes.push(fileChange(file, found, { ...recordOf(found), state: 'removed' }, clock()));
      removes = true;
    }
  }
  return { changes, removes };
}

type Held = ReadonlyMap<string, { readonly field: string; readonly value: FileValue }>;

/** The files of a document, by id. */
function heldBy(fields: FileFields, doc: string | undefined): Held {
  const held = new Map<string, { field: string; value: FileValue }>();
  if (doc === undefined) return held;
  for (const { name: field } of fields.values())
    for (const value of filesIn(valueAt(doc, [field]))) held.set(value.id, { field, value });
  return held;
}
