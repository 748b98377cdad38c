/**
 * Provisional revisions: negative numbers for units that were handed to the engine and have no revision yet. A change that is computed from
 * such a unit expects its provisional revision, and joins the same transaction or a later one. The engine replaces it with the revision
 * that the unit got; if the unit failed, nothing has that revision and the change is superseded.
 */

import { memoryBounds } from '../memory/bounds.ts';

/** Provisional revisions are below it: -1 means absence in messages to the writer. */
const first = -2;

export class ProvisionalRevisions {
  /** By provisional revision: the revision, null for a failed unit; while it is under way, what to call when it fails. */
  readonly #units = new Map<number, number | null | (() => void)>();
  #next = first;

  begin(onFailed: () => void): number {
    const provisional = this.#next;
    this.#next -= 1;
    this.#units.set(provisional, onFailed);
    return provisional;
  }

  isUnderWay(provisional: number): boolean {
    return typeof this.#units.get(provisional) === 'function';
  }

  /** @param rev undefined if the unit failed */
  settle(provisional: number, rev: number | undefined): void {
    const onFailed = this.#units.get(provisional);
    if (typeof onFailed !== 'function') return;
    if (rev === undefined) onFailed();
    // Moved to the end, so that the first ones are those settled longest ago or still under way.
    this.#units.delete(provisional);
    this.#units.set(provisional, rev ?? null);
    if (this.#units.size <= memoryBounds.provisionalRevisions.entries) return;
    for (const [oldest, settled] of this.#units) {
      if (typeof settled !== 'function') this.#units.delete(oldest);
      return;
    }
  }

  /** The revision to expect: the same number for a real one, and for a unit that is under way or failed. */
  resolve(rev: number): number {
    const settled = rev > first ? rev : this.#units.get(rev);
    return typeof settled === 'number' ? settled : rev;
  }
}
