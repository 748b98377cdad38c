/**
 * Divides the connections to one origin among those who use it (`share` of a call: an endpoint), so that requests of one endpoint that hang
 * do not stop another endpoint at the same host and port.
 *
 * - All shares together may have `max` requests under way.
 * - Each share may have `ownMax` of its own under way even then. Webhooks have at most `webhookInFlightMax` requests under way in one
 *   process, which bounds the whole.
 * - How many of one tenant or owner are under way at all origins together, webhooks/outbound/engine/capacity.ts bounds.
 * - Other requests wait; when a place becomes free, the waiting shares take turns.
 */

type Share<T> = {
  underWay: number;
  readonly waiting: Set<T>;
};

export class OriginGate<T> {
  readonly #ownMax: number;
  readonly #max: number;
  readonly #shares = new Map<string, Share<T>>();
  /** Shares with waiting requests, in the order of their turns. */
  readonly #turns = new Set<string>();
  #underWay = 0;

  constructor(max: number, ownMax: number) {
    this.#max = max;
    this.#ownMax = ownMax;
  }

  /** @returns whether the request may begin now; otherwise it waits until `leave` names it */
  enter(name: string, request: T): boolean {
    const share = this.#shares.get(name) ?? { underWay: 0, waiting: new Set() };
    this.#shares.set(name, share);
    if (share.waiting.size === 0 && this.#begin(share)) return true;
    share.waiting.add(request);
    this.#turns.add(name);
    return false;
  }

  /** The request has ended, or waits no longer. @returns a request that may begin now */
  leave(name: string, request: T): T | undefined {
    const share = this.#shares.get(name);
    if (share === undefined) return undefined;
    if (share.waiting.delete(request)) {
      if (share.waiting.size === 0) this.#turns.delete(name);
      this.#forget(name, share);
      return undefined;
    }
    this.#underWay -= 1;
    share.underWay -= 1;
    const next = this.#next(name, share);
    this.#forget(name, share);
    return next;
  }

  #begin(share: Share<T>): boolean {
    if (this.#underWay >= this.#max && share.underWay >= this.#ownMax) return false;
    this.#underWay += 1;
    share.underWay += 1;
    return true;
  }

  #next(name: string, share: Share<T>): T | undefined {
    // Over the bound, what became free is a place of the share's own.
    if (this.#underWay >= this.#max) return this.#take(name, share);
    for (const turn of this.#turns) {
      const waiting = this.#shares.get(turn);
      if (waiting !== undefined) return this.#take(turn, waiting);
    }
    return undefined;
  }

  #take(name: string, share: Share<T>): T | undefined {
    const [request] = share.waiting;
    if (request === undefined || !this.#begin(share)) return undefined;
    share.waiting.delete(request);
    this.#turns.delete(name);
    if (share.waiting.size > 0) this.#turns.add(name);
    return request;
  }

  #forget(name: string, share: Share<T>): void {
    if (share.underWay === 0 && share.waiting.size === 0) this.#shares.delete(name);
  }
}
