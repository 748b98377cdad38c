/** A row of the contract from the array that a statement with `rowColumns` gives. */
import type { SQLOutputValue } from 'node:sqlite';
import type { Row } from '../store.ts';

export const rowColumns = 'id, rev, doc, owner, created_at, updated_at, deleted_at';

/** Column values as they cross threads and leave statements. */
export type Cells = readonly SQLOutputValue[];

export function rowOf(cells: Cells): Row {
  return {
    id: cells[0] as string,
    rev: cells[1] as number,
    doc: cells[2] as string,
    owner: cells[3] as string | null,
    createdAt: cells[4] as number,
    updatedAt: cells[5] as number,
    deletedAt: cells[6] as number | null,
  };
}
