/**
 * The newest revision of each table that this process has heard of, by whatever way. Revisions rise; only a database that lost
 * commits (a restored copy, a standby that was behind and took over) shows older ones, and then nothing that was
 * derived from the newer may stay.
 */
import type { Rows } from '../connection/call.ts';

/** The row of comity_counters that counts for the whole store. */
const storeNumber = 0;

export class KnownRevisions {
  readonly #names = new Map<number, string>();
  readonly #revs = new Map<number, number>();
  #newest = 0;

  /** @param numbers of the tables in comity_counters, by name */
  constructor(numbers: ReadonlyMap<string, number>) {
    for (const [name, number] of numbers) this.#names.set(number, name);
  }

  /** The newest revision of the whole store. */
  get newest(): number {
    return this.#newest;
  }

  get tables(): ReadonlySet<string> {
    return new Set(this.#names.values());
  }

  /** @returns the table, where that is news of a table that this process has */
  raise(number: number, rev: number): string | undefined {
    if (rev > this.#newest) this.#newest = rev;
    const name = this.#names.get(number);
    if (name === undefined || rev <= (this.#revs.get(number) ?? 0)) return undefined;
    this.#revs.set(number, rev);
    return name;
  }

  /**
   * Takes what comity_counters holds.
   * @param newestBefore what `newest` was when the counters were asked for
   * @returns the tables that changed; every one where the store has lost revisions that were known
   */
  compare(counters: Rows, newestBefore: number): ReadonlySet<string> {
    if (counters.some(([number, rev]) => number === storeNumber && Number(rev) < newestBefore)) {
      return this.replace(counters);
    }
    const changed = new Set<string>();
    for (const [number, rev] of counters) {
      const name = this.raise(Number(number), Number(rev));
      if (name !== undefined) changed.add(name);
    }
    return changed;
  }

  /** Forgets what was known for what the counters hold. @returns every table */
  replace(counters: Rows): ReadonlySet<string> {
    this.#revs.clear();
    this.#newest = 0;
    for (const [number, rev] of counters) this.raise(Number(number), Number(rev));
    return this.tables;
  }
}
