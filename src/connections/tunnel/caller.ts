/**
 * Who asks for a tunnel (§4.10, rule 5; RFC 9110 §11.7): the credential in Proxy-Authorization and no other, since what stands in Authorization is for the
 * destination. Whatever is wrong with it is 407 with the schemes that are taken; a caller who tried too often is 429 as at the login.
 */
import type { Identified } from '../../auth/authenticate.ts';
import type { Request } from '../../http/message.ts';
import { type ProblemCode, problems } from '../../http/problem-registry.ts';
import type { Known } from '../../model/credential.ts';
import type { Authenticated } from '../../model/principal.ts';
import type { TunnelKind } from '../../observe/observation.ts';
import type { Refusal } from './refusal.ts';

export type CallerOptions = {
  readonly authenticate: (proxyAuthorization: string | undefined, address: string) => Promise<Identified>;
  /** The value of Proxy-Authenticate after a problem. */
  readonly challengesFor: (problem: ProblemCode) => string;
  /** The address that failed logins are counted by. */
  readonly addressOf: (request: Request) => string;
};

export type Caller = { readonly known: Known; readonly principal: Authenticated };

export function createCallerOf(
  options: CallerOptions,
): (request: Request, how: TunnelKind) => Promise<Caller | { readonly refusal: Refusal }> {
  return async (request, how) => {
    const { fields } = request;
    if (fields.repeated !== undefined) {
      return { refusal: { code: 'field_invalid', error: 'http_request_error', why: fields.repeated } };
    }
    // RFC 9298 §3 names a resource of an origin, so that clients of connect-udp may log in as to an origin.
    const credential = fields.proxyAuthorization ?? (how === 'udp' ? fields.authorization : undefined);
    const judged = await options.authenticate(credential, options.addressOf(request));
    if ('problem' in judged) {
      return { refusal: badCredential(options, judged.problem, judged.allowance?.retryAfterSeconds) };
    }
    if (!('scheme' in judged)) return { refusal: noCredential(options, fields.authorization !== undefined) };
    return { known: judged, principal: judged.principal };
  };
}

function badCredential(
  { challengesFor }: CallerOptions,
  problem: ProblemCode,
  retryAfterSeconds: number | undefined,
): Refusal {
  if (problems[problem].status !== 401) {
    const retry = retryAfterSeconds === undefined ? {} : { retryAfterSeconds };
    return { code: problem, error: 'http_request_denied', ...retry };
  }
  const code = problem === 'no_token_provided' ? 'proxy_credentials_required' : 'proxy_credentials_invalid';
  return { code, error: 'http_request_denied', challenges: challengesFor(problem), why: problem };
}

function noCredential({ challengesFor }: CallerOptions, hasAuthorization: boolean): Refusal {
  return {
    code: 'proxy_credentials_required',
    error: 'http_request_denied',
    challenges: challengesFor('no_token_provided'),
    ...(hasAuthorization
      ? { message: 'proxy credentials go into Proxy-Authorization, not Authorization' }
      : {}),
  };
}
