/** A delivery that the sender has taken, and the outcome of one attempt. */
import type { ExchangeOutcome } from '../../egress/exchange.ts';
import type { Delivery, Trigger } from '../../model/delivery.ts';
import type { KnownEndpoint } from './known-endpoint.ts';

export type Claim = {
  readonly delivery: Delivery;
  /** Revision and owner of its row. */
  readonly rev: number;
  readonly owner: string | null;
  readonly endpoint: KnownEndpoint;
  readonly trigger: Trigger;
  /**
   * A person requested this attempt by a resend or a test. It has its own connections, and neither window nor breaker
   * counts it.
   */
  readonly isAsked?: boolean;
};

/**
 * `expunged` and `forbidden`: nothing was sent, because the event no longer exists, or the endpoint's owner may no
 * longer read it.
 */
export type Attempted = {
  readonly outcome: ExchangeOutcome | { readonly kind: 'expunged' } | { readonly kind: 'forbidden' };
  /** Milliseconds since the epoch. */
  readonly startedAt: number;
  readonly endedAt: number;
};

/** Signs and sends one delivery. Rejects only with StoreUnavailable. */
export type Send = (claim: Claim, signal: AbortSignal) => Promise<Attempted>;

/** What an attempt says about its endpoint, independent of the delivery. */
export type Verdict = {
  /** `ignored`: the attempt says nothing, because it was aborted, expunged or a manual failure. */
  readonly health: 'succeeded' | 'failed' | 'ignored';
  /** Nothing is sent before this time (ms since the epoch): Retry-After. */
  readonly notBefore: number | null;
  /** The endpoint asks to slow down: 429, 502, 503, 504 and timeouts. */
  readonly slowDown: boolean;
  /** The endpoint wants no more events: 410, scheme `standard`. */
  readonly gone: boolean;
};

/** Settles an attempt. Resolves when the unit is durable; rejects with StoreUnavailable only. */
export type Settle = (claim: Claim, attempted: Attempted) => Promise<Settled>;

export type Settled = {
  readonly verdict: Verdict;
  /** The delivery after the attempt; undefined: it was removed meanwhile. */
  readonly delivery: Delivery | undefined;
};
