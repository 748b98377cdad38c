/**
 * The line of one row (lines.ts): held by one exclusive place, by any number of shared ones, or by a chain, which is exclusive places of
 * which all but the last have yielded. The others wait in order of arrival, behind those that return.
 *
 * The head of a line that chains lets the next one in as soon as its unit is handed to the engine. The next one computes its change from
 * that unit (`newest`) and expects its provisional revision, so many changes of one row are committed by one transaction. If the unit
 * fails, the units that were computed from it are superseded, and return to the front of the line.
 *
 * Provisional revisions are negative numbers for units that were handed to the engine and have no revision yet. A change that is computed
 * from such a unit joins the same transaction or a later one. The engine replaces it with the revision that the unit got; if the unit
 * failed, nothing has that revision and the change is superseded.
 */
import { memoryBounds } from '../memory/bounds.ts';
import type { Row } from './store.ts';

export type Place = {
  readonly shared: boolean;
  chains: boolean;
  /** True once its unit is handed to the engine, which lets the next place of a chain in. */
  hasYielded: boolean;
  /** Characters of the texts of that unit. */
  characters: number;
  admit: (() => void) | undefined;
};

/** A row as a unit under way leaves it. */
type RowUnderWay = { readonly provisional: number; readonly row: Row | undefined };

/** Units of one chain under way: the failure of one repeats those behind it. */
const chainMax = 256;
/** Characters of their texts: a chain leaves room in the engine's queue for other writes. */
const chainCharactersMax = 1_048_576;

export class Line {
  readonly #returning = new Set<Place>();
  readonly #waiting = new Set<Place>();
  readonly #holders = new Set<Place>();
  /** The holder that came last. */
  #last: Place | undefined;
  #characters = 0;
  newest: RowUnderWay | undefined;
  /** Counts the chains: units of an earlier one are computed from a unit that failed, and will fail too. */
  #chain = 0;

  get isEmpty(): boolean {
    return this.#holders.size === 0 && this.#waiting.size === 0 && this.#returning.size === 0;
  }

  /** True if the last holder has not handed its unit over and lets others in when it does. */
  get isChaining(): boolean {
    return this.#last?.chains === true && !this.#last.hasYielded && this.#holders.has(this.#last);
  }

  enter(place: Place): void {
    this.#waiting.add(place);
    this.#admit();
  }

  rejoin(place: Place): void {
    this.#giveUp(place);
    place.hasYielded = false;
    place.characters = 0;
    this.#returning.add(place);
    this.#admit();
  }

  /** @returns what to call when the unit fails */
  handOver(newest: RowUnderWay, characters: number): () => void {
    const chain = this.#chain;
    this.newest = newest;
    if (this.#last !== undefined) {
      this.#last.hasYielded = true;
      this.#last.characters = characters;
      this.#characters += characters;
    }
    this.#admit();
    return () => {
      if (chain !== this.#chain) return;
      this.#chain += 1;
      this.newest = undefined;
    };
  }

  holds(place: Place): boolean {
    return this.#holders.has(place);
  }

  leave(place: Place): void {
    this.#returning.delete(place);
    this.#waiting.delete(place);
    this.#giveUp(place);
    this.#admit();
  }

  #giveUp(place: Place): void {
    if (this.#holders.delete(place)) this.#characters -= place.characters;
  }

  #admit(): void {
    for (const places of [this.#returning, this.#waiting]) {
      for (const place of places) {
        if (!this.#letsIn(place)) return;
        places.delete(place);
        this.#holders.add(place);
        this.#last = place;
        place.admit?.();
      }
    }
  }

  #letsIn(place: Place): boolean {
    if (this.#holders.size === 0) return true;
    const last = this.#last;
    if (last === undefined) return false;
    if (place.shared) return last.shared;
    if (!place.chains || !last.hasYielded) return false;
    return this.#holders.size < chainMax && this.#characters < chainCharactersMax;
  }
}

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
