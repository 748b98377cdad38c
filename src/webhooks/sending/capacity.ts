/**
 * What all attempts of the process share, and how one endpoint, and one party with many of them, is kept from taking it from the others.
 * A party is a tenant, or an owner where there are no tenants.
 *
 * - At most `attemptsMax` attempts are under way, and at most as many again have been answered and are being written down: a store
 *   that is away stops the sending, and costs no more memory than that.
 * - The first half of the attempts is anyone's. Of the second half no party takes more than makes an equal share of the whole, and no
 *   endpoint more than an equal share of its party's: where a fifth of the endpoints hang, four fifths of that half stay with the others.
 * - The last eighth is for parties that have less than an eighth, where there are several: however many endpoints of one party hang, another begins at once.
 * - An attempt that has been under way for `slowMs` is slow. While slow ones hold half of the attempts, endpoints that have one
 *   begin no other.
 */

/** A healthy receiver answers long before, and a timeout is far behind it. */
const slowMs = 1000;

/** What it keeps of an endpoint. */
export type Holding = { sending: number; slow: number };

/** What it keeps of a party with attempts under way. */
type PartyHolding = { sending: number; endpoints: number };

/** Others that want to begin one. */
export type Waiting = {
  /** Parties, the asking one perhaps among them. */
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
  /** Attempts under way that are not slow yet, in the order of their beginnings. */
  readonly #quick = new Set<CapacityTicket>();
  #slow = 0;
  #settling = 0;
  /** Parties with an attempt under way. */
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

  /** Attempts that the whole has room for. */
  get free(): number {
    return Math.max(0, this.#attemptsMax - this.sending);
  }

  /** Attempts that are slow by now. */
  slowAt(at: number): number {
    this.#age(at);
    return this.#slow;
  }

  /** Nothing may begin, whoever it is to. */
  get full(): boolean {
    const { sending } = this;
    return sending >= this.#attemptsMax || sending + this.#settling >= 2 * this.#attemptsMax;
  }

  /** Whether no rule but that of the whole holds back anyone. */
  get easy(): boolean {
    return this.sending < this.#half && this.#slow < this.#half;
  }

  /**
   * Whether nothing may begin for the party, whichever endpoint it is to.
   * @param waiting parties that want to begin one, the party perhaps among them
   * @param isAlone no other party has an endpoint: nothing is kept for one
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
   * Whether the endpoint may begin one, where its party may.
   * @param at monotonic milliseconds, as in `begin`
   */
  admits(holding: Holding, party: string, waiting: Waiting, at: number): boolean {
    this.#age(at);
    if (holding.slow > 0 && this.#slow >= this.#half) return false;
    if (this.sending < this.#half) return true;
    // Those that wait may be the same as those that have some: at least half of the true number.
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

  /** The attempt was answered, and is written down from here on. */
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
