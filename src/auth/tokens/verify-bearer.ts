/**
 * A bearer token to whoever can judge it (RFC 6750): what it says of its issuer, unverified, decides only whom it is put before.
 * Nothing of a token that is too long is looked at.
 */
import type { MaybePromise } from '../../store/store.ts';
import type { IssuerTokens } from '../issuers/verify-issuer-token.ts';
import type { Bad, Verdict } from '../verdict.ts';
import { readJwt } from './read-jwt.ts';

export type BearerOptions = {
  /** Of our own access tokens. */
  readonly own: (token: string) => MaybePromise<Verdict>;
  readonly issuers: IssuerTokens;
  readonly tokenCharactersMax: number;
};

const invalid: Bad = { problem: 'invalid_token' };

/** The verifier of tokens, ours and those of trusted issuers. @throws StoreUnavailable */
export function createBearerVerifier(options: BearerOptions): (token: string) => MaybePromise<Verdict> {
  return (token) => {
    if (token.length > options.tokenCharactersMax) return invalid;
    const read = readJwt(token);
    if (read === undefined) return invalid;
    return options.issuers.knows(read.claims.iss) ? options.issuers.verify(token, read) : options.own(token);
  };
}
