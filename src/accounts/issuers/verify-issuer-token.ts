/**
 * Verifies access tokens of trusted issuers (§5.2, RFC 9068 §4, RFC 8725): the signature by a key of the issuer and an allowed
 * algorithm, issuer, audience and time. A good verdict lasts at most as long as the issuer's keys are fresh, because an issuer does not
 * announce a withdrawn key. While the issuer does not respond, the token is not invalid: 503, and the client may retry.
 */
import { type JWTPayload, jwtVerify } from 'jose';
import type { TrustedIssuer } from '../../config/trusted-issuers.ts';
import type { ReadJwt } from '../tokens/read-jwt.ts';
import type { Bad, Verdict } from '../verdict.ts';
import { createIssuerKeys, freshMs, type IssuerKeysOptions, IssuerUnavailable } from './issuer-keys.ts';
import { principalOfClaims } from './issuer-principal.ts';

export type IssuerTokensOptions = Omit<IssuerKeysOptions, 'issuer'> & {
  readonly issuers: readonly TrustedIssuer[];
};

export type IssuerTokens = {
  knows(iss: unknown): boolean;
  /** @param read the parsed token, whose length the caller has bounded */
  verify(token: string, read: ReadJwt): Promise<Verdict>;
};

const invalid: Bad = { problem: 'invalid_token' };
const unavailable: Bad = { problem: 'unavailable' };
/** A JWT for another purpose is not an access token (RFC 8725 §3.11). */
const tokenTypes: ReadonlySet<unknown> = new Set([undefined, 'jwt', 'at+jwt', 'application/at+jwt']);

export function createIssuerTokens(options: IssuerTokensOptions): IssuerTokens {
  const issuers = new Map(
    options.issuers.map((issuer) => [
      issuer.issuer,
      { issuer, keys: createIssuerKeys({ ...options, issuer }) },
    ]),
  );
  return {
    knows: (iss) => typeof iss === 'string' && issuers.has(iss),
    async verify(token, read) {
      const found = issuers.get(String(read.claims.iss));
      if (found === undefined || !isAccessToken(read)) return invalid;
      const { issuer, keys } = found;
      const now = options.clock();
      try {
        const { payload } = await jwtVerify(token, keys, {
          algorithms: [...issuer.algorithms],
          issuer: issuer.issuer,
          audience: [...issuer.audience],
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

/** Refuses tokens that are bound to a key, because the bearer proves no possession here (RFC 9449 §7.1, RFC 8705 §3). */
function isAccessToken({ header, claims }: ReadJwt): boolean {
  const typ = typeof header.typ === 'string' ? header.typ.toLowerCase() : header.typ;
  return tokenTypes.has(typ) && !Object.hasOwn(claims, 'cnf');
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
