/** A row of the contract from the cells that a statement with `rowColumns` gives. */
import type { Row } from '../../store.ts';
import type { Cell } from '../connection/connection.ts';

export const rowColumns = 'id, rev, doc, owner, created_at, updated_at, deleted_at';

export function rowOf(cells: readonly Cell[]): Row {
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
