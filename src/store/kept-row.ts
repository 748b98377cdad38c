/** Rows of the contract: those that Comity keeps for itself, and those that a statement returns. */
import type { NextRow, Row } from './store.ts';

/** Builds a row of Comity's own: not searched, without references, never softly deleted. Times in milliseconds since the epoch. */
export function keptRow(doc: string, owner: string | null, createdAt: number, updatedAt: number): NextRow {
  return { doc, owner, createdAt, updatedAt, deletedAt: null, search: null, references: [] };
}

/** The columns that `rowOf` reads; both engines name and order them alike. */
export const rowColumns = 'id, rev, doc, owner, created_at, updated_at, deleted_at';

/** The columns of a page's heads, after others; empty unless they are asked for. @param table a name and a point, if others have such columns */
export function headColumns(heads: boolean, table = ''): string {
  return heads ? `, ${table}owner, ${table}rev` : '';
}

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
