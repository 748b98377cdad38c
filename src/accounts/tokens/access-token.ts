/**
 * Access tokens (§5.4): JWTs by the profile of RFC 9068, signed and accepted only by the ring's keys. The header of a token only
 * selects the key: the algorithm is that of the key, and references to keys (`jku`, `x5u`, `jwk`) are not followed. The caller checks
 * the session behind the token.
 */
import { type JWTPayload, jwtVerify, SignJWT } from 'jose';
import type { Scope } from '../../model/principal.ts';
import type { Services } from '../../store/capabilities.ts';
import type { MaybePromise } from '../../store/store.ts';
import type { IssuerTokens } from '../issuers/verify-issuer-token.ts';
import type { Bad, Verdict } from '../verdict.ts';
import { isWrittenPlainly, readJwt } from './read-jwt.ts';
import type { SigningKeys } from './signing-keys.ts';

export type AccessClaims = {
  readonly user: string;
  readonly session: string;
  readonly scopes: readonly Scope[];
};

export type AccessTokens = {
  /** @param at milliseconds since the epoch, like `until`, which the token does not outlive @returns `expiresIn` in seconds */
  sign(
    claims: AccessClaims,
    at: number,
    until: number,
  ): Promise<{ readonly token: string; readonly expiresIn: number }>;
  /** Returns undefined for anything but a valid token of Comity. `expiresAt` in milliseconds since the epoch. */
  verify(
    token: string,
  ): Promise<{ readonly user: string; readonly session: string; readonly expiresAt: number } | undefined>;
};

export type AccessTokensOptions = Pick<Services, 'clock' | 'random'> & {
  readonly keys: SigningKeys;
  /**
   * Issuer and audience: the origin that clients use. If it is not configured (undefined), the name of the ring takes its place,
   * because the address that one process listens on may differ from that of others, and change at a restart.
   */
  readonly origin: () => string | undefined;
  readonly accessTokenSeconds: number;
  readonly tokenCharactersMax: number;
};

const tokenType = 'at+jwt';
/** Tolerated difference between the clocks of processes, only for the start of a token, never for its end. */
const clockSkewSeconds = 30;
const jtiBytes = 16;

export function createAccessTokens(options: AccessTokensOptions): AccessTokens {
  return {
    sign: (claims, at, until) => signToken(options, claims, at, until),
    verify: (token) => verifyToken(options, token),
  };
}

async function signToken(
  options: AccessTokensOptions,
  claims: AccessClaims,
  at: number,
  until: number,
): Promise<{ token: string; expiresIn: number }> {
  const key = options.keys.current();
  const origin = options.origin() ?? options.keys.name();
  const iat = Math.floor(at / 1000);
  const exp = Math.max(iat + 1, Math.min(iat + options.accessTokenSeconds, Math.floor(until / 1000)));
  const payload = {
    iss: origin,
    aud: origin,
    sub: claims.user,
    sid: claims.session,
    scope: claims.scopes.join(' '),
    iat,
    exp,
    jti: options.random(jtiBytes).toString('base64url'),
  };
  const token = await new SignJWT(payload)
    .setProtectedHeader({ alg: key.algorithm, kid: key.kid, typ: tokenType })
    .sign(key.privateKey);
  return { token, expiresIn: exp - iat };
}

async function verifyToken(options: AccessTokensOptions, token: string): ReturnType<AccessTokens['verify']> {
  if (token.length > options.tokenCharactersMax) return undefined;
  const read = readJwt(token);
  if (read === undefined || !isWrittenPlainly(read)) return undefined;
  const { kid } = read.header;
  const key = typeof kid === 'string' ? await options.keys.find(kid) : undefined;
  if (key === undefined) return undefined;
  const now = options.clock();
  const origin = options.origin() ?? options.keys.name();
  try {
    const { payload } = await jwtVerify(token, key.publicKey, {
      algorithms: [key.algorithm],
      typ: tokenType,
      issuer: origin,
      audience: origin,
      requiredClaims: ['sub', 'sid', 'iat', 'exp', 'jti'],
      currentDate: new Date(now),
      clockTolerance: clockSkewSeconds,
    });
    return checkClaims(payload, now);
  } catch {
    // The client learns only `invalid_token`, whatever the reason.
    return undefined;
  }
}

/** Checks what the library does not: the types of Comity's claims, a start in the future, and an end without tolerance. */
function checkClaims(payload: JWTPayload, now: number): Awaited<ReturnType<AccessTokens['verify']>> {
  const { sub, sid, iat, exp } = payload;
  if (typeof sub !== 'string' || typeof sid !== 'string' || iat === undefined || exp === undefined)
    return undefined;
  if (iat * 1000 > now + clockSkewSeconds * 1000 || exp * 1000 <= now) return undefined;
  return { user: sub, session: sid, expiresAt: exp * 1000 };
}

type BearerOptions = {
  readonly own: (token: string) => MaybePromise<Verdict>;
  readonly issuers: IssuerTokens;
  readonly tokenCharactersMax: number;
};

const invalid: Bad = { problem: 'invalid_token' };

/** Verifies a bearer token (RFC 6750); its unverified `iss` only selects the verifier. @throws StoreUnavailable */
export function createBearerVerifier(options: BearerOptions): (token: string) => MaybePromise<Verdict> {
  return (token) => {
    if (token.length > options.tokenCharactersMax) return invalid;
    const read = readJwt(token);
    if (read === undefined) return invalid;
    return options.issuers.knows(read.claims.iss) ? options.issuers.verify(token, read) : options.own(token);
  };
}
