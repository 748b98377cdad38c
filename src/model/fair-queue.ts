/** For whom work is done: a party by its name, or a client of it, whose work is not begun once it has left. */
export type Party = string | { readonly name: string; readonly isGone: boolean };

export function nameOfParty(party: Party): string {
  return typeof party === 'string' ? party : party.name;
}

export function hasLeft(party: Party): boolean {
  return typeof party !== 'string' && party.isGone;
}

/**
 * A bounded queue that serves parties (principals or addresses) in turn: items of one party wait for each other, those
 * of another pass them. `''` is the program itself.
 *
 * - take: returns the first item of the next party, which then moves to the end of the order.
 * - overflow: removes the newest item of the party with the most waiting, so that a party that fills the queue loses
 *   only its own work.
 */
export class FairQueue<T> {
  readonly #sizeMax: number;
  readonly #sizeOf: (item: T) => number;
  /** In the order of their turns: a Map keeps insertion order. */
  readonly #parties = new Map<string, Line<T>>();
  #size = 0;
  #count = 0;

  /** @param sizeMax of all items together, by `sizeOf`; each item counts 1 by default */
  constructor(sizeMax: number, sizeOf: (item: T) => number = () => 1) {
    this.#sizeMax = sizeMax;
    this.#sizeOf = sizeOf;
  }

  get count(): number {
    return this.#count;
  }

  get size(): number {
    return this.#size;
  }

  /** Items of the party that wait. */
  countOf(party: string): number {
    return this.#parties.get(party)?.items.length ?? 0;
  }

  push(party: string, item: T): void {
    const line: Line<T> = this.#parties.get(party) ?? { items: [], size: 0 };
    if (line.items.length === 0) this.#parties.set(party, line);
    line.items.push(item);
    this.#count += 1;
    this.#add(line, this.#sizeOf(item));
  }

  /** Removes the excess items: each the newest of the party with the most waiting. */
  overflow(): readonly T[] {
    const refused: T[] = [];
    while (this.#size > this.#sizeMax && this.#count > 0) refused.push(this.#dropNewest());
    return refused;
  }

  /** The next item of a party that may be served now; undefined without one. */
  take(mayServe: (party: string) => boolean = () => true): { party: string; item: T } | undefined {
    for (const [party, line] of this.#parties) {
      if (!mayServe(party)) continue;
      const item = line.items.shift() as T;
      this.#count -= 1;
      this.#add(line, -this.#sizeOf(item));
      this.#parties.delete(party);
      if (line.items.length > 0) this.#parties.set(party, line);
      return { party, item };
    }
    return undefined;
  }

  /** Removes the items that satisfy the test; all of them by default. */
  drop(isDropped: (item: T) => boolean = () => true): readonly T[] {
    const dropped: T[] = [];
    for (const [party, line] of this.#parties) {
      const kept: T[] = [];
      for (const item of line.items) {
        if (!isDropped(item)) kept.push(item);
        else {
          dropped.push(item);
          this.#add(line, -this.#sizeOf(item));
        }
      }
      line.items = kept;
      if (kept.length === 0) this.#parties.delete(party);
    }
    this.#count -= dropped.length;
    return dropped;
  }

  #dropNewest(): T {
    let fullest: Line<T> = { items: [], size: -1 };
    let party = '';
    for (const [name, line] of this.#parties) {
      if (line.size <= fullest.size) continue;
      fullest = line;
      party = name;
    }
    const item = fullest.items.pop() as T;
    this.#count -= 1;
    this.#add(fullest, -this.#sizeOf(item));
    if (fullest.items.length === 0) this.#parties.delete(party);
    return item;
  }

  #add(line: Line<T>, size: number): void {
    line.size += size;
    this.#size += size;
  }
}

type Line<T> = { items: T[]; size: number };
