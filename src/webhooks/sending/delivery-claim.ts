/** A delivery that the sender has taken on, and what came of one attempt. */
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
  /** Somebody asked for this attempt: a resend or a test. It has connections of its own, and neither window nor breaker counts it. */
  readonly isAsked?: boolean;
};

/** Nothing was sent: `expunged`, there is no event any more; `forbidden`, the owner of the endpoint may not read it any more. */
export type Attempted = {
  readonly outcome: ExchangeOutcome | { readonly kind: 'expunged' } | { readonly kind: 'forbidden' };
  /** Milliseconds since the epoch. */
  readonly startedAt: number;
  readonly endedAt: number;
};

/** Signs one delivery and sends it. Never rejects but with StoreUnavailable. */
export type Send = (claim: Claim, signal: AbortSignal) => Promise<Attempted>;

/** What an attempt says of its endpoint, besides what it means for the delivery. */
export type Verdict = {
  /** `ignored`: the attempt was aborted or expunged, and says nothing. */
  readonly health: 'succeeded' | 'failed' | 'ignored';
  /** Nothing is sent to it before this time (ms since the epoch): Retry-After. */
  readonly notBefore: number | null;
  /** It asks for less at once: 429, 502, 503, 504 and timeouts. */
  readonly slowDown: boolean;
  /** It wants no more events: 410 to a `standard` endpoint. */
  readonly gone: boolean;
};

/** Writes down what came of an attempt. Resolves when it is durable; rejects with StoreUnavailable alone. */
export type Settle = (claim: Claim, attempted: Attempted) => Promise<Settled>;

export type Settled = {
  readonly verdict: Verdict;
  /** What the delivery became; undefined: it was removed meanwhile. */
  readonly delivery: Delivery | undefined;
};
