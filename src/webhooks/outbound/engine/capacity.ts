/**
 * What all attempts of the process share, and how one endpoint is kept from taking it from the others.
 *
 * - At most `attemptsMax` attempts are under way, and at most as many again have been answered and are being written down: a store
 *   that is away stops the sending, and costs no more memory than that.
 * - The first half of the attempts is anyone's. Of the second half nobody takes more than makes an equal share of the whole: where a
 *   fifth of the endpoints hang, four fifths of that half stay with the others.
 * - An attempt that has been under way for `slowMs` is slow. While slow ones hold half of the attempts, endpoints that have one
 *   begin no other.
 */

/** A healthy receiver answers long before, and a timeout is far behind it. */
const slowMs = 1000;

/** What it keeps of an endpoint. */
export type Holding = { sending: number; slow: number };

export type CapacityTicket = { readonly holding: Holding; readonly startedAt: number; slow: boolean };

export class Capacity {
  readonly #attemptsMax: number;
  readonly #half: number;
  /** Attempts under way that are not slow yet, in the order of their beginnings. */
  readonly #quick = new Set<CapacityTicket>();
  #slow = 0;
  #settling = 0;
  /** Endpoints with an attempt under way. */
  #endpoints = 0;

  constructor(attemptsMax: number) {
    this.#attemptsMax = attemptsMax;
    this.#half = Math.ceil(attemptsMax / 2);
  }

  get sending(): number {
    return this.#quick.size + this.#slow;
  }

  get settling(): number {
    return this.#settling;
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
   * Whether the endpoint may begin one, where the whole is not full.
   * @param waiting other endpoints that want to
   * @param at monotonic milliseconds, as in `begin`
   */
  admits(holding: Holding, waiting: number, at: number): boolean {
    this.#age(at);
    if (holding.slow > 0 && this.#slow >= this.#half) return false;
    if (this.sending < this.#half) return true;
    // Those that wait may be the same as those that have some: at least half of the true number.
    const endpoints = Math.max(this.#endpoints, waiting + 1);
    const share = Math.max(1, Math.floor(this.#attemptsMax / endpoints));
    return holding.sending < share;
  }

  begin(holding: Holding, at: number): CapacityTicket {
    const ticket: CapacityTicket = { holding, startedAt: at, slow: false };
    this.#quick.add(ticket);
    if (holding.sending === 0) this.#endpoints += 1;
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
    if (holding.sending === 0) this.#endpoints -= 1;
    this.#settling += 1;
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
