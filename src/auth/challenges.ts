/**
 * Challenges (§5.1; RFC 9110 §11.6.1): every scheme that would be accepted, in one list, whatever was sent and why it was refused, so
 * that a client can choose. `Api-Key` is another spelling of `ApiKey` and the session cookie has no scheme: neither is listed.
 *
 * 403 carries no challenge, though RFC 6750 §3.1 lets it (`insufficient_scope`): it may as well come of an owner or a role, and a
 * browser that is shown `Basic` asks its user for a password that would not help.
 */
import type { ProblemCode } from '../http/problem-registry.ts';
import { type Challenge, formatChallenges } from '../http/syntax/authorization.ts';

const realm = 'comity';
const bearer: Challenge = { scheme: 'Bearer', parameters: { realm } };
/** RFC 6750 §3.1: only a request that brought a bad token is told so; one without any gets no error code. */
const bearerOfBadToken: Challenge = { scheme: 'Bearer', parameters: { realm, error: 'invalid_token' } };
const apiKey: Challenge = { scheme: 'ApiKey', parameters: { realm } };
const basic: Challenge = { scheme: 'Basic', parameters: { realm, charset: 'UTF-8' } };

const plain = formatChallenges([bearer, apiKey, basic]);
const afterBadToken = formatChallenges([bearerOfBadToken, apiKey, basic]);
const proxyPlain = formatChallenges([basic, bearer]);
const proxyAfterBadToken = formatChallenges([basic, bearerOfBadToken]);

/** The value of `WWW-Authenticate` of a 401. */
export function challengesFor(problem: ProblemCode): string {
  return problem === 'invalid_token' ? afterBadToken : plain;
}

/** The value of `Proxy-Authenticate` of a 407 (§4.10, rule 5). Basic first: some clients look at the first alone. */
export function proxyChallengesFor(problem: ProblemCode): string {
  return problem === 'invalid_token' ? proxyAfterBadToken : proxyPlain;
}
