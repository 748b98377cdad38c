/**
 * Marks of documents that a deletion in several units takes (src/logic/transaction/long-deletion.ts). A marked document, and whatever refers
 * to it, takes no change of others, because their units expect that there is no mark. Each mark names its operation as its owner, and so
 * does the one row that says how far the deletion is:
 *
 *   marking   the documents are being marked and judged; nothing is deleted
 *   judged    nothing prevents the deletion; the caller is judged once more
 *   decided   the deletion is carried out, whatever becomes of the rights of its caller
 *
 * Marks go with the last unit of the deletion, or before its operation ends as failed.
 */
import { idField, ownerField } from '../../model/field.ts';
import { rowBatches } from '../../store/in-batches.ts';
import { type Change, keptRow, type Row, type RowName, type Store } from '../../store/store.ts';

export const deletionMarksTable = 'deletion_marks';

export type DeletionState = 'marking' | 'judged' | 'decided';

/** The asynchronous operation that carries the request out; its deletion, if that takes several units. */
export type RunningOperation = {
  readonly id: string;
  state: DeletionState | undefined;
  /** A part was committed: the starts that ended their process before it do not count. Never rejects. */
  progressed(): Promise<void>;
};

/** Octets of marks that are read together. */
const marksBytesMax = 4 * 1024 * 1024;
const releasedPerUnit = 1000;

export function markId({ table, id }: RowName): string {
  return `${table} ${id}`;
}

/** The unit of another change rests on this. */
export function expectUnmarked(row: RowName): Change {
  return {
    ...{ table: deletionMarksTable, id: markId(row), expect: { absent: true } },
    ...{ next: null, stays: true },
  };
}

export function isMark({ table }: Pick<Change, 'table'>): boolean {
  return table === deletionMarksTable;
}

/** Marks a document, or says how far the deletion is. @param before the row that it replaces */
export function markChange(
  id: string,
  operation: string,
  at: number,
  { state, before, roots }: Progress & { readonly before?: Row | undefined } = {},
): Change {
  const next = keptRow(JSON.stringify({ id, state, roots }), operation, before?.createdAt ?? at, at);
  const expect = before === undefined ? ({ absent: true } as const) : { rev: before.rev };
  return { table: deletionMarksTable, id, expect, next };
}

/** @param roots the number of documents that the request names */
type Progress = { readonly state?: DeletionState; readonly roots?: number };

export function stateOf(row: Row | undefined): DeletionState | undefined {
  return row === undefined ? undefined : (JSON.parse(row.doc) as Progress).state;
}

export function rootsOf(row: Row | undefined): number | undefined {
  return row === undefined ? undefined : (JSON.parse(row.doc) as Progress).roots;
}

export async function readMarks(store: Store, ids: readonly string[]): Promise<ReadonlyMap<string, Row>> {
  const found = await store.readMany(deletionMarksTable, ids, marksBytesMax);
  if (found === undefined) throw new Error(`${ids.length} marks have more than ${marksBytesMax} octets`);
  return found.rows;
}

export function removalOf({ id, rev }: Row): Change {
  return { table: deletionMarksTable, id, expect: { rev }, next: null };
}

/** Removes the marks of an operation, except some. */
export async function releaseMarks(
  store: Pick<Store, 'plan' | 'commit'>,
  operation: string,
  except: ReadonlySet<string> = new Set(),
): Promise<void> {
  const plan = store.plan({
    ...{ table: deletionMarksTable, filter: { op: 'eq', field: ownerField, value: operation } },
    ...{ sort: [{ field: idField, direction: 'asc' }], limit: releasedPerUnit },
  });
  for await (const rows of rowBatches(plan, releasedPerUnit)) {
    const changes = rows.filter(({ id }) => !except.has(id)).map(removalOf);
    if (changes.length > 0) await store.commit({ changes, events: [] });
  }
}
