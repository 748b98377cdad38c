/**
 * The public keys of one trusted issuer (RFC 7517), fetched when a token first needs them. They are
 *
 *   fresh    for ten minutes: a key that the issuer withdraws is refused after that;
 *   stale    while the issuer does not answer, for an hour more: its tokens live no longer as a rule, and its absence should not be ours.
 *
 * A key that is not known is looked for at once, but not more often than twice a minute, since anyone can make names up. After a failure
 * nobody waits for the issuer again for a second. Not jose's remote set: it has no pause after a failure and no stale keys.
 */
import { type CryptoKey, createLocalJWKSet, errors, type JSONWebKeySet, type JWTVerifyGetKey } from 'jose';
import type { TrustedIssuer } from '../../config/trusted-issuers.ts';
import type { Observe } from '../../observe/observation.ts';
import { fetchDocument, type IssuerFetch } from './fetch-document.ts';

/** Whether a token is good cannot be told now. */
export class IssuerUnavailable extends Error {
  override readonly name = 'IssuerUnavailable';
}

export type IssuerKeysOptions = {
  readonly issuer: Pick<TrustedIssuer, 'issuer' | 'jwksUri'>;
  /** Milliseconds since the epoch. */
  readonly clock: () => number;
  readonly observe: Observe;
  readonly fetch: IssuerFetch;
  readonly issuerTimeoutMs: number;
};

export const freshMs = 600_000;
const staleMs = 3_600_000;
const unknownKeyPauseMs = 30_000;
const failurePauseMs = 1000;

/** Finds the key of a token; rejects with `IssuerUnavailable` where that cannot be known, and otherwise as jose does. */
export function createIssuerKeys(options: IssuerKeysOptions): JWTVerifyGetKey<CryptoKey> {
  const { clock } = options;
  let keys: ReturnType<typeof createLocalJWKSet> | undefined;
  let fetchedAt = Number.NEGATIVE_INFINITY;
  let failedAt = Number.NEGATIVE_INFINITY;
  let fetching: Promise<boolean> | undefined;

  async function fetchKeys(): Promise<boolean> {
    try {
      keys = createLocalJWKSet((await fetchSet(options)) as JSONWebKeySet);
      fetchedAt = clock();
      return true;
    } catch (error) {
      failedAt = clock();
      options.observe({ kind: 'issuer-failed', issuer: options.issuer.issuer, error });
      return false;
    }
  }

  /** Whether the keys are those of now. All who wait share one attempt. */
  function renew(): Promise<boolean> {
    if (clock() - failedAt < failurePauseMs) return Promise.resolve(false);
    fetching ??= fetchKeys().finally(() => {
      fetching = undefined;
    });
    return fetching;
  }

  return async (header, token) => {
    const isFresh = clock() - fetchedAt < freshMs || (await renew());
    if (keys === undefined || (!isFresh && clock() - fetchedAt >= freshMs + staleMs)) {
      throw new IssuerUnavailable('the keys of the issuer are not at hand');
    }
    try {
      return await keys(header, token);
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey)) throw error;
      if (isFresh && clock() - fetchedAt < unknownKeyPauseMs) throw error;
      // Without the issuer nobody knows whether it has made a new key.
      if (!(await renew())) throw new IssuerUnavailable('the issuer cannot be asked for a new key');
      return keys(header, token);
    }
  };
}

async function fetchSet(options: IssuerKeysOptions): Promise<unknown> {
  const { issuer, fetch } = options;
  const signal = AbortSignal.timeout(options.issuerTimeoutMs);
  return fetchDocument(fetch, issuer.jwksUri ?? (await discover(options, signal)), signal);
}

/** OpenID Connect Discovery 1.0 §4.3: what is found must be about the very issuer that was asked for. */
async function discover({ issuer, fetch }: IssuerKeysOptions, signal: AbortSignal): Promise<string> {
  const base = issuer.issuer.endsWith('/') ? issuer.issuer.slice(0, -1) : issuer.issuer;
  const found = await fetchDocument(fetch, `${base}/.well-known/openid-configuration`, signal);
  if (typeof found !== 'object' || found === null) throw new Error('the discovery document is no object');
  const { issuer: named, jwks_uri: jwksUri } = found as { issuer?: unknown; jwks_uri?: unknown };
  if (named !== issuer.issuer) throw new Error('the discovery document is about another issuer');
  if (typeof jwksUri !== 'string') throw new Error('the discovery document names no keys');
  return jwksUri;
}
