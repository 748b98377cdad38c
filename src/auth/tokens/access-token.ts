/**
 * Access tokens (§5.4): JWTs as RFC 9068 profiles them, signed by a key of the ring and accepted from no other. The header of a token
 * decides nothing but which of our keys is tried: the algorithm is that of the key, whatever the token says, and references to keys
 * (`jku`, `x5u`, `jwk`) are not followed. Whether the session behind a token still stands is not asked here.
 */
import { type JWTPayload, jwtVerify, SignJWT } from 'jose';
import type { Scope } from '../../model/principal.ts';
import { isWrittenPlainly, readJwt } from './read-jwt.ts';
import type { SigningKeys } from './signing-keys.ts';

export type AccessClaims = {
  readonly user: string;
  readonly session: string;
  readonly scopes: readonly Scope[];
};

export type AccessTokens = {
  /**
   * @param at milliseconds since the epoch, as is `until`, which the token does not outlive
   * @returns `expiresIn` in seconds
   */
  sign(
    claims: AccessClaims,
    at: number,
    until: number,
  ): Promise<{ readonly token: string; readonly expiresIn: number }>;
  /** Undefined for anything but a token of ours that is good now. `expiresAt` in milliseconds since the epoch. */
  verify(
    token: string,
  ): Promise<{ readonly user: string; readonly session: string; readonly expiresAt: number } | undefined>;
};

export type AccessTokensOptions = {
  readonly keys: SigningKeys;
  /** Milliseconds since the epoch. */
  readonly clock: () => number;
  readonly random: (count: number) => Buffer;
  /**
   * Issuer and audience: the origin that clients see. Undefined where nobody said which that is: then they are the name of the ring,
   * since the address that one process listens on is not that of the next, nor its own after a restart.
   */
  readonly origin: () => string | undefined;
  readonly accessTokenSeconds: number;
  readonly tokenCharactersMax: number;
};

const tokenType = 'at+jwt';
/** How much the clocks of processes on one store may differ: only for beginnings, never for the end of a token. */
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
    return claimsOf(payload, now);
  } catch {
    // Whatever it was, the caller is told `invalid_token` and no more.
    return undefined;
  }
}

/** What the library leaves open: the types of our own claims, a beginning in the future, and an end without grace. */
function claimsOf(payload: JWTPayload, now: number): Awaited<ReturnType<AccessTokens['verify']>> {
  const { sub, sid, iat, exp } = payload;
  if (typeof sub !== 'string' || typeof sid !== 'string' || iat === undefined || exp === undefined)
    return undefined;
  if (iat * 1000 > now + clockSkewSeconds * 1000 || exp * 1000 <= now) return undefined;
  return { user: sub, session: sid, expiresAt: exp * 1000 };
}
