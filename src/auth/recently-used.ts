/**
 * Values by text, the least recently used half of them forgotten when there are too many. Two maps take turns: what is asked for in
 * the old one moves into the young one, and a full young one becomes the old one. That costs a use nothing, where an exact order
 * of use would rewrite it at each.
 */
export class RecentlyUsed<Value extends object | string> {
  readonly #youngMax: number;
  #young = new Map<string, Value>();
  #old = new Map<string, Value>();

  /** @param max values held at any time; at least 2 */
  constructor(max: number) {
    this.#youngMax = Math.floor(max / 2);
  }

  get size(): number {
    return this.#young.size + this.#old.size;
  }

  get(name: string): Value | undefined {
    const young = this.#young.get(name);
    if (young !== undefined) return young;
    const old = this.#old.get(name);
    if (old !== undefined) this.set(name, old);
    return old;
  }

  set(name: string, value: Value): void {
    this.#old.delete(name);
    if (this.#young.size >= this.#youngMax && !this.#young.has(name)) {
      this.#old = this.#young;
      this.#young = new Map();
    }
    this.#young.set(name, value);
  }

  /** Forgets the value, unless another one has taken the name. */
  delete(name: string, value: Value): void {
    if (this.#young.get(name) === value) this.#young.delete(name);
    if (this.#old.get(name) === value) this.#old.delete(name);
  }
}
