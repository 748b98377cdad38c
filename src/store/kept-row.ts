/**
 * A row that the program keeps for itself: nobody searches it, it refers to nothing and is never deleted softly.
 */
import type { NextRow } from './store.ts';

/** Times in milliseconds since the epoch. */
export function keptRow(doc: string, owner: string | null, createdAt: number, updatedAt: number): NextRow {
  return { doc, owner, createdAt, updatedAt, deletedAt: null, search: null, references: [] };
}
