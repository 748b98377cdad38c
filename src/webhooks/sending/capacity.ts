/**
 * The capacity that all attempts of the process share, and the rules that keep one endpoint, or one party with many
 * endpoints, from taking it all. A party is a tenant, or an owner if there are no tenants.
 * - At most `attemptsMax` attempts are under way, and as many again may be settling: an unavailable store stops it.
 * - Any attempt may use the first half. Of the second half, no party gets more than an equal share of the whole, and no
 *   endpoint more than an equal share of its party's: if a fifth of the endpoints hang, the others keep four fifths of
 *   that half.
 * - If there are several parties, the last eighth is for those that have less than an eighth: however many endpoints of
 *   one party hang, another party can begin at once.
 * - An attempt under way for `slowMs` is slow. While slow attempts hold half of the capacity, endpoints that have one
 *   begin no other.
 */

/** A healthy receiver responds much faster, and a timeout is much longer. */
const slowMs = 1000;

/** Attempts under way of an endpoint. */
export type Holding = { sending: number; slow: number };

/** Attempts under way of a party, and their endpoints. */
type PartyHolding = { sending: number; endpoints: number };

/** Competitors that want to begin an attempt. */
export type Waiting = {
  /** Parties, possibly including the one that begins. */
  readonly parties: number;
  /** Other endpoints of the same party. */
  readonly endpoints: number;
};

export type CapacityTicket = {
  readonly holding: Holding;
  readonly party: string;
  readonly startedAt: number;
  slow: boolean;
};

export class Capacity {
  readonly #attemptsMax: number;
  readonly #half: number;
  /** Attempts under way that are not slow yet, in the order of their start. */
  readonly #quick = new Set<CapacityTicket>();
  #slow = 0;
  #settling = 0;
  /** Parties that have an attempt under way. */
  readonly #parties = new Map<string, PartyHolding>();
  readonly #eighth: number;

  constructor(attemptsMax: number) {
    this.#attemptsMax = attemptsMax;
    this.#half = Math.ceil(attemptsMax / 2);
    this.#eighth = Math.floor(attemptsMax / 8);
  }

  get sending(): number {
    return this.#quick.size + this.#slow;
  }

  get settling(): number {
    return this.#settling;
  }

  get free(): number {
    return Math.max(0, this.#attemptsMax - this.sending);
  }

  slowAt(at: number): number {
    this.#age(at);
    return this.#slow;
  }

  /** True if no attempt may begin at all. */
  get full(): boolean {
    const { sending } = this;
    return sending >= this.#attemptsMax || sending + this.#settling >= 2 * this.#attemptsMax;
  }

  /** True if only the bound of the whole applies. */
  get easy(): boolean {
    return this.sending < this.#half && this.#slow < this.#half;
  }

  /**
   * Returns true if the party may begin no attempt.
   * @param waiting parties that want to begin one, possibly including this party
   * @param isAlone true if no other party has an endpoint: nothing is reserved
   */
  isFullFor(party: string, waiting: number, isAlone: boolean): boolean {
    if (this.full) return true;
    if (isAlone) return false;
    const { sending } = this;
    if (sending < this.#half) return false;
    const own = this.#parties.get(party)?.sending ?? 0;
    if (sending >= this.#attemptsMax - this.#eighth && own >= Math.max(1, this.#eighth)) return true;
    return own >= this.#shareOf(party, waiting);
  }

  /**
   * Returns true if the endpoint may begin an attempt, provided its party may.
   * @param at monotonic milliseconds, as in `begin`
   */
  admits(holding: Holding, party: string, waiting: Waiting, at: number): boolean {
    this.#age(at);
    if (holding.slow > 0 && this.#slow >= this.#half) return false;
    if (this.sending < this.#half) return true;
    // Waiting endpoints and those under way may overlap: the result is at least half of the true number.
    const endpoints = Math.max(this.#parties.get(party)?.endpoints ?? 0, waiting.endpoints + 1);
    const share = Math.floor(this.#shareOf(party, waiting.parties) / endpoints);
    return holding.sending < Math.max(1, share);
  }

  #shareOf(party: string, waiting: number): number {
    const parties = Math.max(this.#parties.size + (this.#parties.has(party) ? 0 : 1), waiting);
    return Math.max(1, Math.floor(this.#attemptsMax / parties));
  }

  begin(holding: Holding, party: string, at: number): CapacityTicket {
    const ticket: CapacityTicket = { holding, party, startedAt: at, slow: false };
    this.#quick.add(ticket);
    const own = this.#parties.get(party) ?? { sending: 0, endpoints: 0 };
    this.#parties.set(party, own);
    if (holding.sending === 0) own.endpoints += 1;
    own.sending += 1;
    holding.sending += 1;
    return ticket;
  }

  /** Moves an attempt with a response or a failure from sending to settling. */
  answered(ticket: CapacityTicket): void {
    const { holding } = ticket;
    if (ticket.slow) {
      this.#slow -= 1;
      holding.slow -= 1;
    } else {
      this.#quick.delete(ticket);
    }
    holding.sending -= 1;
    this.#leave(ticket.party, holding.sending === 0);
    this.#settling += 1;
  }

  #leave(party: string, isLastOfEndpoint: boolean): void {
    const own = this.#parties.get(party);
    if (own === undefined) return;
    own.sending -= 1;
    if (isLastOfEndpoint) own.endpoints -= 1;
    if (own.sending === 0) this.#parties.delete(party);
  }

  settled(): void {
    this.#settling -= 1;
  }

  #age(at: number): void {
    for (const ticket of this.#quick) {
      if (at - ticket.startedAt < slowMs) return;
      this.#quick.delete(ticket);
      ticket.slow = true;
      ticket.holding.slow += 1;
      this.#slow += 1;
    }
  }
}
