/**
 * Verifies access tokens of trusted issuers (§5.2, RFC 9068 §4, RFC 8725): the signature by a key of the issuer and an allowed
 * algorithm, issuer, audience and time. A good verdict lasts at most as long as the issuer's keys are fresh, because an issuer does not
 * announce a withdrawn key. While the issuer does not respond, the token is not invalid: 503, and the client may retry.
 */
import {
  type CryptoKey,
  createLocalJWKSet,
  errors,
  type JSONWebKeySet,
  type JWTPayload,
  type JWTVerifyGetKey,
  jwtVerify,
} from 'jose';
import { plainType, type TrustedIssuer } from '../../config/trusted-issuers.ts';
import { type Authenticated, administratorRole, authenticated, type Scope } from '../../model/principal.ts';
import type { Services } from '../../store/capabilities.ts';
import type { MaybePromise } from '../../store/store.ts';
import { isPrivateLine, readBounded } from '../oauth/provider-server.ts';
import type { Bad, Verdict } from '../verdict.ts';
import { type ReadJwt, readJwt } from './access-token.ts';

type IssuerTokens = {
  knows(iss: unknown): boolean;
  /** @param read the parsed token, whose length the caller has bounded */
  verify(token: string, read: ReadJwt): Promise<Verdict>;
};

const invalid: Bad = { problem: 'invalid_token' };
const unavailable: Bad = { problem: 'unavailable' };
/** A JWT for another purpose is not an access token (RFC 8725 §3.11). */
const tokenTypes: ReadonlySet<unknown> = new Set([undefined, 'jwt', 'at+jwt']);

export function createIssuerTokens(
  services: Services,
  trusted: readonly TrustedIssuer[],
  fetch: IssuerFetch,
): IssuerTokens {
  const issuers = new Map(
    trusted.map((issuer) => [issuer.issuer, { issuer, keys: createIssuerKeys(services, issuer, fetch) }]),
  );
  return {
    knows: (iss) => typeof iss === 'string' && issuers.has(iss),
    async verify(token, read) {
      const found = issuers.get(String(read.claims.iss));
      if (found === undefined) return invalid;
      const { issuer, keys } = found;
      if (!isAccessToken(issuer, read) || !isForUs(issuer, read)) return invalid;
      const now = services.clock();
      try {
        const { payload } = await jwtVerify(token, keys, {
          algorithms: [...issuer.algorithms],
          issuer: issuer.issuer,
          // Without the option, jose requires no `aud`; one that is there must match all the same.
          ...(Object.hasOwn(read.claims, 'aud') || issuer.audienceClaim === 'aud'
            ? { audience: [...issuer.audience] }
            : {}),
          requiredClaims: ['sub', 'exp'],
          currentDate: new Date(now),
          clockTolerance: issuer.clockSkewSeconds,
        });
        return createVerdict(issuer, payload, now);
      } catch (error) {
        return error instanceof IssuerUnavailable ? unavailable : invalid;
      }
    },
  };
}

/** Verifies a bearer token (RFC 6750); its unverified `iss` only selects the verifier. @throws StoreUnavailable */
export function createBearerVerifier(
  { settings: { tokenCharactersMax } }: Services,
  own: (token: string) => MaybePromise<Verdict>,
  issuers: IssuerTokens,
): (token: string) => MaybePromise<Verdict> {
  return (token) => {
    if (token.length > tokenCharactersMax) return invalid;
    const read = readJwt(token);
    if (read === undefined) return invalid;
    return issuers.knows(read.claims.iss) ? issuers.verify(token, read) : own(token);
  };
}

/** Refuses tokens that are bound to a key, because the bearer proves no possession here (RFC 9449 §7.1, RFC 8705 §3). */
function isAccessToken({ types }: TrustedIssuer, { header, claims }: ReadJwt): boolean {
  const typ = typeof header.typ === 'string' ? plainType(header.typ) : header.typ;
  const isType = types === undefined ? tokenTypes.has(typ) : types.some((type) => type === typ);
  return isType && !Object.hasOwn(claims, 'cnf');
}

function isForUs({ audience, audienceClaim }: TrustedIssuer, { claims }: ReadJwt): boolean {
  return audienceClaim === 'aud' || audience.some((name) => name === claims[audienceClaim]);
}

function createVerdict(issuer: TrustedIssuer, claims: JWTPayload, now: number): Verdict {
  const principal = principalOfClaims(issuer, claims);
  const { exp } = claims;
  if (principal === undefined || exp === undefined) return invalid;
  return {
    principal,
    scheme: 'issuer',
    session: null,
    key: null,
    expiresAt: Math.min((exp + issuer.clockSkewSeconds) * 1000, now + freshMs),
    basis: [],
  };
}

// The public keys of one trusted issuer (RFC 7517), fetched when a token first needs them.
//
// - `fresh` for ten minutes; after that a key that the issuer withdrew is refused.
// - `stale` for one more hour while the issuer does not respond: its outage does not become Comity's.
//
// An unknown key is fetched at once, but at most twice a minute, because anyone can invent key ids. After a failure no request waits
// for the issuer for a second. jose's remote set has neither that pause nor stale keys.

/** The token can be neither accepted nor refused at present. */
class IssuerUnavailable extends Error {
  override readonly name = 'IssuerUnavailable';
}

type IssuerAddress = Pick<TrustedIssuer, 'issuer' | 'jwksUri'>;

const freshMs = 600_000;
const staleMs = 3_600_000;
const unknownKeyPauseMs = 30_000;
const failurePauseMs = 1000;

/** Finds the key of a token. Rejects with `IssuerUnavailable` if the keys are not available, otherwise with jose's errors. */
function createIssuerKeys(
  { clock, observe, settings }: Services,
  issuer: IssuerAddress,
  fetch: IssuerFetch,
): JWTVerifyGetKey<CryptoKey> {
  let keys: ReturnType<typeof createLocalJWKSet> | undefined;
  let fetchedAt = Number.NEGATIVE_INFINITY;
  let failedAt = Number.NEGATIVE_INFINITY;
  let fetching: Promise<boolean> | undefined;

  async function fetchKeys(): Promise<boolean> {
    try {
      keys = createLocalJWKSet((await fetchSet(issuer, fetch, settings.issuerTimeoutMs)) as JSONWebKeySet);
      fetchedAt = clock();
      return true;
    } catch (error) {
      failedAt = clock();
      observe({ kind: 'issuer-failed', issuer: issuer.issuer, error });
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

async function fetchSet(issuer: IssuerAddress, fetch: IssuerFetch, timeoutMs: number): Promise<unknown> {
  const signal = AbortSignal.timeout(timeoutMs);
  return fetchDocument(fetch, issuer.jwksUri ?? (await discover(issuer, fetch, signal)), signal);
}

/** OpenID Connect Discovery 1.0 §4.3: the document must name the same issuer. */
async function discover({ issuer }: IssuerAddress, fetch: IssuerFetch, signal: AbortSignal): Promise<string> {
  const base = issuer.endsWith('/') ? issuer.slice(0, -1) : issuer;
  const found = await fetchDocument(fetch, `${base}/.well-known/openid-configuration`, signal);
  if (typeof found !== 'object' || found === null)
    throw new Error('the discovery document is not a JSON object');
  const { issuer: named, jwks_uri: jwksUri } = found as { issuer?: unknown; jwks_uri?: unknown };
  if (named !== issuer) throw new Error('the discovery document names another issuer');
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

// The principal of a trusted issuer's token, with at most the rights that the declaration grants. Its id includes the issuer, so that
// it never equals a principal of another issuer, an account or a key.

/** OpenID Connect Core 1.0 §2. */
const subjectCharactersMax = 255;
/** The bounds of accounts; anything beyond is not granted. */
const rolesMax = 32;
const roleCharactersMax = 64;
const tenantCharactersMax = 200;
const controls = /\p{Cc}/u;

function principalOfClaims(issuer: TrustedIssuer, claims: JWTPayload): Authenticated | undefined {
  const { sub } = claims;
  if (sub === undefined || sub === '' || sub.length > subjectCharactersMax || controls.test(sub))
    return undefined;
  const asked = readRoles(issuer, claims);
  const isAdministrator = issuer.scopes.includes('admin') && asked.includes(administratorRole);
  return authenticated({
    id: `${issuer.issuer}|${sub}`,
    scopes: isAdministrator ? issuer.scopes : readScopes(issuer, claims),
    roles: isAdministrator ? asked : asked.filter((role) => role !== administratorRole),
    tenant: readTenant(issuer, claims),
  });
}

function readScopes({ scopes, scopeClaim }: TrustedIssuer, claims: JWTPayload): readonly Scope[] {
  if (scopeClaim === undefined) return scopes;
  const value = claimAt(claims, scopeClaim);
  const named = typeof value === 'string' ? value.split(' ') : value;
  return Array.isArray(named) ? scopes.filter((scope) => named.includes(scope)) : [];
}

function readRoles({ rolesClaim }: TrustedIssuer, claims: JWTPayload): readonly string[] {
  if (rolesClaim === undefined) return [];
  const value = claimAt(claims, rolesClaim);
  const named: readonly unknown[] = Array.isArray(value) ? value : [value];
  return named.filter(isRole).slice(0, rolesMax);
}

function isRole(role: unknown): role is string {
  return typeof role === 'string' && role !== '' && role.length <= roleCharactersMax;
}

function readTenant({ tenantClaim }: TrustedIssuer, claims: JWTPayload): string | null {
  if (tenantClaim === undefined) return null;
  const value = claimAt(claims, tenantClaim);
  const isTenant = typeof value === 'string' && value !== '' && value.length <= tenantCharactersMax;
  return isTenant ? value : null;
}

/** Follows only own members, never the prototype. */
function claimAt(claims: JWTPayload, path: readonly string[]): unknown {
  let value: unknown = claims;
  for (const name of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined;
    value = (value as Readonly<Record<string, unknown>>)[name];
  }
  return value;
}
