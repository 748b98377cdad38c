/**
 * The result of a change as its author sees it (§4.4 to §4.7). It is kept for replay and in operations as it is said here, so what is hidden
 * from the author is in none of them.
 */

import type { Made } from '../../kernel/resource.ts';
import type { Principal } from '../../model/principal.ts';
import type { Served } from './served.ts';
import { seenOf } from './standing.ts';

export type Change = {
  readonly created: boolean;
  /** Of what was made or changed; null when it is gone. */
  readonly location: string | null;
  /** Milliseconds since the epoch; null when it is gone. */
  readonly modifiedAt: number | null;
  /** False for PUT and DELETE, whose answers carry no validators. */
  readonly validated: boolean;
};

/** @param row what stands after the change; before it, where it removes */
export function madeOf(
  served: Served,
  principal: Principal,
  row: { readonly doc: string; readonly owner: string | null },
  change: Change,
): Made {
  const seen = seenOf(served, principal, row);
  // The answer tags what it holds by the revision alone, which is the tag of the whole representation.
  if (seen !== undefined) return { outcome: 'made', ...change, doc: seen.doc, validated: false };
  return { outcome: 'made', ...change, doc: row.doc };
}
