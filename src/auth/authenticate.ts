/**
 * Credential to principal (§5.1). What stands in the places of a request where a credential can stand (carriers) is looked for in the
 * verified credentials, and only what is not there is read and verified.
 *
 * - A credential that the caller chose to send is judged, and a bad one refused: it is never forgiven because the resource is public.
 *   Two of them are refused whatever they are, since nobody can say which of them was meant.
 * - The session cookie is sent by the browser whether anyone wants it or not. So it counts only where nothing else was sent; one
 *   that is not good is as none, or a browser whose session is over could read nothing public and not log in again (nor could
 *   its pages forget the cookie, which is HttpOnly). What needs a principal is then refused 401 as it is to anyone unknown.
 */
import { hash } from 'node:crypto';
import type { Request } from '../http/message.ts';
import { problems } from '../http/problem-registry.ts';
import type { Known } from '../model/credential.ts';
import { type Anonymous, anonymous } from '../model/principal.ts';
import type { MaybePromise } from '../store/store.ts';
import { whenKnown } from '../store/when-known.ts';
import { authorizationCarrier } from './carriers/authorization.ts';
import { proxyAuthorizationCarrier } from './carriers/proxy-authorization.ts';
import { queryParameterCarrier } from './carriers/query-parameter.ts';
import { sessionCookieCarrier } from './carriers/session-cookie.ts';
import { xApiKeyCarrier } from './carriers/x-api-key.ts';
import type { Carrier, Unreadable } from './credential.ts';
import { type CrossSiteCheck, isSafeMethod } from './cross-site.ts';
import type { Bad } from './verdict.ts';
import type { VerifiedCredentials } from './verified-credentials.ts';
import { type Verifiers, verifyCredential } from './verifiers.ts';

/** Of credentials that the caller chose to send. */
const carriers: readonly Carrier[] = [authorizationCarrier, xApiKeyCarrier, queryParameterCarrier];

export type AuthenticateOptions = {
  readonly verifiers: Verifiers;
  readonly cache: VerifiedCredentials;
  readonly crossSite: CrossSiteCheck;
  /** The address that failed logins are counted by. */
  readonly addressOf: (request: Request) => string;
};

export type Identified = Known | { readonly principal: Anonymous } | Bad;

/** @param query of the request target, undecoded */
export type Authenticate = (request: Request, query: string | undefined) => MaybePromise<Identified>;

const nobody = { principal: anonymous };
const repeated: Bad = { problem: 'credentials_repeated' };
const crossSiteRequest: Bad = { problem: 'cross_site_request' };

export function createAuthenticate(options: AuthenticateOptions): Authenticate {
  const { crossSite, addressOf } = options;

  function byCookie(request: Request): MaybePromise<Identified> {
    const value = sessionCookieCarrier.find(request.fields, undefined);
    if (value === undefined) return nobody;
    if (!isSafeMethod(request.method) && crossSite(request)) return crossSiteRequest;
    const judged = judge(options, sessionCookieCarrier, value, () => addressOf(request));
    return whenKnown(judged, forgiven);
  }

  return (request, query) => {
    let carrier: Carrier | undefined;
    let found: string | Unreadable | undefined;
    for (const each of carriers) {
      const here = each.find(request.fields, query);
      if (here === undefined) continue;
      if (carrier !== undefined) return repeated;
      carrier = each;
      found = here;
    }
    if (carrier === undefined || found === undefined) {
      return request.fields.cookie === undefined ? nobody : byCookie(request);
    }
    return judge(options, carrier, found, () => addressOf(request));
  };
}

/**
 * The credential that the caller sent, as it came, where it cannot be guessed: a key, a token or the cookie of a session, but no password.
 * Undefined: there is none, or it may hold a password.
 */
export function unguessableCredential(request: Request, query: string | undefined): string | undefined {
  for (const carrier of [...carriers, sessionCookieCarrier]) {
    const found = carrier.find(request.fields, query);
    if (found === undefined) continue;
    return typeof found === 'string' && !carrier.holdsPassword(found) ? found : undefined;
  }
  return undefined;
}

/**
 * For the tunnel (§4.10), which has no resource to look at meanwhile: what comes back is confirmed already. Anonymous where
 * Proxy-Authorization is missing; that and every problem of status 401 is answered 407 with `proxyChallengesFor`.
 */
export function createProxyAuthenticate(
  options: JudgeOptions,
): (proxyAuthorization: string | undefined, address: string) => Promise<Identified> {
  return async (proxyAuthorization, address) => {
    if (proxyAuthorization === undefined) return nobody;
    for (;;) {
      const judged = await judge(options, proxyAuthorizationCarrier, proxyAuthorization, () => address);
      if ('problem' in judged || (await judged.confirmed) !== false) return judged;
    }
  };
}

type JudgeOptions = Pick<AuthenticateOptions, 'verifiers' | 'cache'>;

function judge(
  options: JudgeOptions,
  carrier: Carrier,
  found: string | Unreadable,
  addressOf: () => string,
): MaybePromise<Known | Bad> {
  if (typeof found !== 'string') return { problem: found.problem };
  if (carrier.holdsPassword(found)) return judgePassword(options, carrier, found, addressOf());
  const { verifiers, cache } = options;
  const isLong = found.length > textCharactersMax;
  const name = isLong ? `#${carrier.mark}${hash('sha256', found, 'base64url')}` : carrier.mark + found;
  const known = cache.recall(name);
  if (known !== undefined) return known;
  const credential = carrier.read(found);
  if (credential.kind === 'unreadable') return { problem: credential.problem };
  const verify = () => verifyCredential(verifiers, credential, '');
  return cache.verify({ name, verify, repeatable: !isLong });
}

/** Longer credentials are remembered by their digest: a token may have thousands of characters. */
const textCharactersMax = 4096;

/**
 * A password is remembered for one user and one address, and only until another one is tried there. Otherwise guessing would be
 * free where somebody else is logged in: a right guess would be found here, and only wrong ones would count against the limit.
 */
function judgePassword(
  { verifiers, cache }: JudgeOptions,
  carrier: Carrier,
  found: string,
  address: string,
): MaybePromise<Known | Bad> {
  const proof = hash('sha256', found, 'base64url');
  const place = `${carrier.mark}${address}`;
  const known = cache.recallProven(place, proof);
  if (known !== undefined) return known;
  const credential = carrier.read(found);
  if (credential.kind === 'unreadable') return { problem: credential.problem };
  const user = credential.kind === 'password' ? credential.user : '';
  const name = `@${place}\n${user}`;
  // Makes another password forgotten that is remembered under the name.
  const remembered = cache.recall(name, proof);
  if (remembered !== undefined) return remembered;
  const verify = () => verifyCredential(verifiers, credential, address);
  return cache.verify({ name, place, proof, verify, repeatable: false });
}

function forgiven(judged: Known | Bad): Identified {
  return 'problem' in judged && problems[judged.problem].status === 401 ? nobody : judged;
}
