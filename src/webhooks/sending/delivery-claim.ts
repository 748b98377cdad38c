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
 * Nothing was sent and nothing will be: the event no longer exists, the endpoint's owner may no longer read it, or the application's
 * `afterRead` ended every program that made the body.
 */
export type Unsent = { readonly kind: 'expunged' | 'forbidden' | 'given_up' };

export type Attempted = {
  readonly outcome: ExchangeOutcome | Unsent;
  /** Milliseconds since the epoch. */
  readonly startedAt: number;
  readonly endedAt: number;
};

/** Receives the end of an attempt: one call of one function. */
export type AttemptEnd = {
  attempted(attempted: Attempted): void;
  /** An internal failure, such as StoreUnavailable, prevented the attempt. */
  failed(error: unknown): void;
};

/** Signs and sends one delivery; may end before it returns. */
export type Send = (claim: Claim, signal: AbortSignal, end: AttemptEnd) => void;

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

export type Settle = {
  /** Settles an attempt. Resolves when the unit is durable; rejects with StoreUnavailable only. */
  alone(claim: Claim, attempted: Attempted): Promise<Settled>;
  /**
   * Settles an attempt in one unit with others that end in the same turn of the event loop, and calls back when it is
   * durable. `undefined`: this attempt must be settled alone.
   */
  together(claim: Claim, attempted: Attempted, done: (settled: Settled | undefined) => void): void;
};

export type Settled = {
  readonly verdict: Verdict;
  /** The delivery after the attempt; undefined: it was removed meanwhile. */
  readonly delivery: Delivery | undefined;
};
