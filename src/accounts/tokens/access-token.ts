/**
 * Access tokens (§5.4): JWTs by the profile of RFC 9068, signed and accepted only by the ring's keys. The header of a token only
 * selects the key: the algorithm is that of the key, and references to keys (`jku`, `x5u`, `jwk`) are not followed. The caller checks
 * the session behind the token.
 */
import { type JWTPayload, jwtVerify, SignJWT } from 'jose';
import { parseJson } from '../../http/syntax/json.ts';
import type { Scope } from '../../model/principal.ts';
import type { Services } from '../../store/capabilities.ts';
import type { SigningKeys } from './signing-keys.ts';

type AccessClaims = {
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

/** Of RFC 9068 §4, which no other token has. `JWT` is accepted only where the setting asks for it, beside the tokens from before. */
const tokenType = 'at+jwt';
/** Tolerated difference between the clocks of processes, only for the start of a token, never for its end. */
const clockSkewSeconds = 30;
const jtiBytes = 16;

export function createAccessTokens({ clock, random, settings }: Services, keys: SigningKeys): AccessTokens {
  const { accessTokenSeconds, accessTokenType, tokenCharactersMax } = settings;
  /**
   * Issuer and audience. Without a configured origin, the name of the ring takes its place: a token must be valid at all processes, and
   * the address that one process listens on may differ from that of others, and change at a restart.
   */
  const origin = (): string => settings.publicUrl ?? keys.name();
  return {
    async sign(claims, at, until) {
      const key = keys.current();
      const iat = Math.floor(at / 1000);
      const exp = Math.max(iat + 1, Math.min(iat + accessTokenSeconds, Math.floor(until / 1000)));
      const payload = {
        iss: origin(),
        aud: origin(),
        sub: claims.user,
        sid: claims.session,
        scope: claims.scopes.join(' '),
        iat,
        exp,
        jti: random(jtiBytes).toString('base64url'),
      };
      const token = await new SignJWT(payload)
        .setProtectedHeader({ alg: key.algorithm, kid: key.kid, typ: accessTokenType })
        .sign(key.privateKey);
      return { token, expiresIn: exp - iat };
    },
    async verify(token) {
      if (token.length > tokenCharactersMax) return undefined;
      const read = readJwt(token);
      if (read === undefined || !isWrittenPlainly(read)) return undefined;
      const { kid, typ } = read.header;
      if (typ !== tokenType && typ !== accessTokenType) return undefined;
      const key = typeof kid === 'string' ? await keys.find(kid) : undefined;
      if (key === undefined) return undefined;
      const now = clock();
      try {
        const { payload } = await jwtVerify(token, key.publicKey, {
          algorithms: [key.algorithm],
          issuer: origin(),
          audience: origin(),
          requiredClaims: ['sub', 'sid', 'iat', 'exp', 'jti'],
          currentDate: new Date(now),
          clockTolerance: clockSkewSeconds,
        });
        return checkClaims(payload, now);
      } catch {
        // The client learns only `invalid_token`, whatever the reason.
        return undefined;
      }
    },
  };
}

/** Checks what the library does not: the types of Comity's claims, a start in the future, and an end without tolerance. */
function checkClaims(payload: JWTPayload, now: number): Awaited<ReturnType<AccessTokens['verify']>> {
  const { sub, sid, iat, exp } = payload;
  if (typeof sub !== 'string' || typeof sid !== 'string' || iat === undefined || exp === undefined)
    return undefined;
  if (iat * 1000 > now + clockSkewSeconds * 1000 || exp * 1000 <= now) return undefined;
  return { user: sub, session: sid, expiresAt: exp * 1000 };
}

// Parses a JWT in the compact serialisation (RFC 7515 §7.1) without verifying it. Only the canonical form is accepted: three parts of
// base64url without padding or stray bits, so that no token has a second spelling, and JSON objects without duplicate names (RFC 7519
// §4).

type Members = Readonly<Record<string, unknown>>;

export type ReadJwt = {
  readonly header: Members;
  readonly claims: Members;
  readonly headerText: string;
  readonly claimsText: string;
};

/** Claims of trusted issuers may be nested; Comity's are not. */
const limits = { depthMax: 16, keysMax: 1000 };
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Returns undefined for any other text. The caller bounds its length. */
export function readJwt(token: string): ReadJwt | undefined {
  const [first, second, third, more] = token.split('.', 4);
  if (first === undefined || second === undefined || third === undefined || more !== undefined)
    return undefined;
  if (octets(third) === undefined) return undefined;
  const headerText = text(first);
  const claimsText = text(second);
  if (headerText === undefined || claimsText === undefined) return undefined;
  const header = members(headerText);
  const claims = members(claimsText);
  return header === undefined || claims === undefined
    ? undefined
    : { header, claims, headerText, claimsText };
}

/** True if JSON.stringify would produce both texts, as it does for tokens that Comity signs. */
function isWrittenPlainly(read: ReadJwt): boolean {
  return JSON.stringify(read.header) === read.headerText && JSON.stringify(read.claims) === read.claimsText;
}

function octets(part: string): Buffer | undefined {
  const bytes = Buffer.from(part, 'base64url');
  return bytes.length > 0 && bytes.toString('base64url') === part ? bytes : undefined;
}

function text(part: string): string | undefined {
  const bytes = octets(part);
  if (bytes === undefined) return undefined;
  try {
    return utf8.decode(bytes);
  } catch {
    return undefined;
  }
}

function members(json: string): Members | undefined {
  const parsed = parseJson(json, limits);
  if (!parsed.ok) return undefined;
  const { value } = parsed;
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : undefined;
}
