/**
 * The result of a change as its author may see it (§4.4 to §4.7). Stored results (for replay, and of operations) are
 * made from it, so they contain nothing that is hidden from the author.
 */

import type { Made } from '../../kernel/resource.ts';
import type { Principal } from '../../model/principal.ts';
import type { Served } from './served.ts';
import { seenOf } from './standing.ts';

export type Change = {
  readonly created: boolean;
  /** Of the created or changed resource; null if it was deleted. */
  readonly location: string | null;
  /** Milliseconds since the epoch; null if it was deleted. */
  readonly modifiedAt: number | null;
  /** False for PUT and DELETE, whose responses carry no validators. */
  readonly validated: boolean;
};

/** @param row after the change; for a deletion, before it */
export function madeOf(
  served: Served,
  principal: Principal,
  row: { readonly doc: string; readonly owner: string | null },
  change: Change,
): Made {
  const seen = seenOf(served, principal, row);
  // Responses to changes tag by the revision alone, which is the tag of the whole representation.
  if (seen !== undefined) return { ...change, outcome: 'made', doc: seen.doc, validated: false };
  return { ...change, outcome: 'made', doc: row.doc };
}
