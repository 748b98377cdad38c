/** A row of the contract from the cells that a statement over `rowColumns` gives, which both engines name and order alike. */
import type { Row } from './store.ts';

export const rowColumns = 'id, rev, doc, owner, created_at, updated_at, deleted_at';

export function rowOf(cells: readonly unknown[]): Row {
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
