/**
 * A bounded queue that serves parties in turn: the principals or addresses that the work is done for. One party's items wait for
 * each other; another party's pass them. `''` is the program itself.
 *
 *   take      the first item of the party whose turn it is; the party then goes to the end of the line
 *   overflow  the newest item of the party with the most waiting gives way, so that a party that fills the queue
 *             refuses only its own work
 */
export class FairQueue<T> {
  readonly #sizeMax: number;
  readonly #sizeOf: (item: T) => number;
  /** In the order of their turns: a Map keeps insertion order. */
  readonly #parties = new Map<string, Line<T>>();
  #size = 0;
  #count = 0;

  /** @param sizeMax of all items together, in what `sizeOf` counts; each item counts 1 by default */
  constructor(sizeMax: number, sizeOf: (item: T) => number = () => 1) {
    this.#sizeMax = sizeMax;
    this.#sizeOf = sizeOf;
  }

  get count(): number {
    return this.#count;
  }

  /** What all items take together. */
  get size(): number {
    return this.#size;
  }

  /** Adds the item at the end of its party's line. */
  push(party: string, item: T): void {
    const line: Line<T> = this.#parties.get(party) ?? { items: [], size: 0 };
    if (line.items.length === 0) this.#parties.set(party, line);
    line.items.push(item);
    this.#count += 1;
    this.#add(line, this.#sizeOf(item));
  }

  /** Takes out the items that are too many: each the newest of the party with the most waiting. */
  overflow(): readonly T[] {
    const refused: T[] = [];
    while (this.#size > this.#sizeMax && this.#count > 0) refused.push(this.#dropNewest());
    return refused;
  }

  /** The next item of a party that may be served now; undefined where none waits. */
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

  /** Takes out the items that the test holds for; all of them by default. */
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
