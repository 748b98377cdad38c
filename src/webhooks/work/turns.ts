/**
 * Whose turn it is: parties in turn, and within a party its queues in turn, so that neither many queues nor a long backlog get
 * one more than its share of the beginnings. What is in it once is not put in again.
 */

export class Turns<T> {
  /** Kept in the order of their turns; a party without members is not in it. */
  readonly #parties = new Map<string, Set<T>>();
  readonly #partyOf = new Map<T, string>();

  get size(): number {
    return this.#partyOf.size;
  }

  /** Parties with a member. */
  get parties(): number {
    return this.#parties.size;
  }

  /** Members of the party. */
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

  /** Takes out the one whose turn it is, and puts its party behind the others. */
  next(): T | undefined {
    for (const [party, members] of this.#parties) {
      this.#parties.delete(party);
      for (const member of members) {
        members.delete(member);
        this.#partyOf.delete(member);
        if (members.size > 0) this.#parties.set(party, members);
        return member;
      }
    }
    return undefined;
  }
}
