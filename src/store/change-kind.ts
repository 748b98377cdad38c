/** What a change amounts to, whatever stands: two questions that several steps of committing ask. */
import type { Change } from './store.ts';

/** It expects no row and makes none. */
export function isOnlyExpected({ expect, next }: Change): boolean {
  return next === null && 'absent' in expect;
}

/** It takes a row out of sight, softly or not, if the row was there to be seen. */
export function isLeaving({ expect, next }: Change): boolean {
  return 'rev' in expect && (next === null || next.deletedAt !== null);
}
