/**
 * Challenges (§5.1; RFC 9110 §11.6.1): one list of all accepted schemes, whatever the client sent, so that it can choose. Not listed:
 * `Api-Key`, a spelling of `ApiKey`, and the session cookie, which has no scheme. 403 carries no challenge, although RFC 6750 §3.1
 * allows one (`insufficient_scope`): an owner or a role may be the reason, and a browser that receives `Basic` asks its user for a
 * password that does not help.
 */
import type { ProblemCode } from '../http/problem-registry.ts';
import { type Challenge, formatChallenges } from '../http/syntax/authorization.ts';

const realm = 'comity';
const bearer: Challenge = { scheme: 'Bearer', parameters: { realm } };
/** RFC 6750 §3.1: only a request with a bad token gets the error code. */
const bearerOfBadToken: Challenge = { scheme: 'Bearer', parameters: { realm, error: 'invalid_token' } };
const apiKey: Challenge = { scheme: 'ApiKey', parameters: { realm } };
const basic: Challenge = { scheme: 'Basic', parameters: { realm, charset: 'UTF-8' } };

const plain = formatChallenges([bearer, apiKey, basic]);
const afterBadToken = formatChallenges([bearerOfBadToken, apiKey, basic]);
const proxyPlain = formatChallenges([basic, bearer]);
const proxyAfterBadToken = formatChallenges([basic, bearerOfBadToken]);

export function challengesFor(problem: ProblemCode): string {
  return problem === 'invalid_token' ? afterBadToken : plain;
}

/** Returns `Proxy-Authenticate` of a 407 (§4.10.5). Basic is first, because some clients read only the first challenge. */
export function proxyChallengesFor(problem: ProblemCode): string {
  return problem === 'invalid_token' ? proxyAfterBadToken : proxyPlain;
}
