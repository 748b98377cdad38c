/**
 * A fair queue: parties take turns, and members take turns within a party, so that neither many queues nor a long
 * backlog get more than their share. A member is in it at most once.
 */

export class Turns<T> {
  /** In the order of their turns; only parties that have members. */
  readonly #parties = new Map<string, Set<T>>();
  readonly #partyOf = new Map<T, string>();

  get size(): number {
    return this.#partyOf.size;
  }

  get parties(): number {
    return this.#parties.size;
  }

  sizeOf(party: string): number {
    return this.#parties.get(party)?.size ?? 0;
  }

  has(member: T): boolean {
    return this.#partyOf.has(member);
  }

  add(member: T, party: string): void {
    if (this.#partyOf.has(member)) return;
    this.#partyOf.set(member, party);
    const members = this.#parties.get(party);
    if (members === undefined) this.#parties.set(party, new Set([member]));
    else members.add(member);
  }

  remove(member: T): void {
    const party = this.#partyOf.get(member);
    if (party === undefined) return;
    this.#partyOf.delete(member);
    const members = this.#parties.get(party);
    members?.delete(member);
    if (members?.size === 0) this.#parties.delete(party);
  }

  /** Removes the next member and moves its party behind the others. */
  next(): T | undefined {
    for (const [party, members] of this.#parties) {
      for (const member of members) {
        members.delete(member);
        this.#partyOf.delete(member);
        if (members.size > 0 && this.#parties.size === 1) return member;
        this.#parties.delete(party);
        if (members.size > 0) this.#parties.set(party, members);
        return member;
      }
    }
    return undefined;
  }
}
