/**
 * The public keys of one trusted issuer (RFC 7517), fetched when a token first needs them.
 *
 * - `fresh` for ten minutes; after that a key that the issuer withdrew is refused.
 * - `stale` for one more hour while the issuer does not respond: its outage does not become Comity's.
 *
 * An unknown key is fetched at once, but at most twice a minute, because anyone can invent key ids. After a failure no request waits
 * for the issuer for a second. jose's remote set has neither that pause nor stale keys.
 */
import { type CryptoKey, createLocalJWKSet, errors, type JSONWebKeySet, type JWTVerifyGetKey } from 'jose';
import type { TrustedIssuer } from '../../config/trusted-issuers.ts';
import type { Services } from '../../store/capabilities.ts';
import { isPrivateLine, readBounded } from '../oauth/provider-server.ts';

/** The token can be neither accepted nor refused at present. */
export class IssuerUnavailable extends Error {
  override readonly name = 'IssuerUnavailable';
}

export type IssuerKeysOptions = Pick<Services, 'clock' | 'observe'> & {
  readonly issuer: Pick<TrustedIssuer, 'issuer' | 'jwksUri'>;
  readonly fetch: IssuerFetch;
  readonly issuerTimeoutMs: number;
};

export const freshMs = 600_000;
const staleMs = 3_600_000;
const unknownKeyPauseMs = 30_000;
const failurePauseMs = 1000;

/** Finds the key of a token. Rejects with `IssuerUnavailable` if the keys are not available, otherwise with jose's errors. */
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
      throw new IssuerUnavailable('the keys of the issuer are not available');
    }
    try {
      return await keys(header, token);
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey)) throw error;
      if (isFresh && clock() - fetchedAt < unknownKeyPauseMs) throw error;
      // The issuer may have added a key since the last fetch.
      if (!(await renew())) throw new IssuerUnavailable('the issuer did not return its current keys');
      return keys(header, token);
    }
  };
}

async function fetchSet(options: IssuerKeysOptions): Promise<unknown> {
  const { issuer, fetch } = options;
  const signal = AbortSignal.timeout(options.issuerTimeoutMs);
  return fetchDocument(fetch, issuer.jwksUri ?? (await discover(options, signal)), signal);
}

/** OpenID Connect Discovery 1.0 §4.3: the document must name the same issuer. */
async function discover({ issuer, fetch }: IssuerKeysOptions, signal: AbortSignal): Promise<string> {
  const base = issuer.issuer.endsWith('/') ? issuer.issuer.slice(0, -1) : issuer.issuer;
  const found = await fetchDocument(fetch, `${base}/.well-known/openid-configuration`, signal);
  if (typeof found !== 'object' || found === null)
    throw new Error('the discovery document is not a JSON object');
  const { issuer: named, jwks_uri: jwksUri } = found as { issuer?: unknown; jwks_uri?: unknown };
  if (named !== issuer.issuer) throw new Error('the discovery document names another issuer');
  if (typeof jwksUri !== 'string') throw new Error('the discovery document has no jwks_uri');
  return jwksUri;
}

type IssuerFetch = (
  url: string,
  options: {
    readonly headers: Record<string, string>;
    readonly signal: AbortSignal;
    readonly redirect: 'manual';
  },
) => Promise<Response>;

/** Fetches a JSON document of an issuer, bounded in time and octets, without redirects or any part of the token. */
async function fetchDocument(fetch: IssuerFetch, url: string, signal: AbortSignal): Promise<unknown> {
  if (!isPrivateLine(url)) throw new Error('the issuer named a URL without TLS');
  const headers = { accept: 'application/json, application/jwk-set+json' };
  const response = await fetch(url, { headers, signal, redirect: 'manual' });
  if (response.status !== 200) {
    await response.body?.cancel();
    throw new Error(`the issuer returned status ${response.status}`);
  }
  const bytes = await readBounded(response);
  if (bytes === undefined) throw new Error('the response of the issuer is too long');
  return JSON.parse(new TextDecoder().decode(bytes));
}
