/**
 * Turns the credential of a request into a principal (§5.1). The text found by a carrier is looked up in the verified credentials; only
 * unknown text is parsed and verified.
 *
 * - A client sends exactly one credential. Comity refuses a bad one even on a public resource, and refuses two, because either could be
 *   meant.
 * - A browser sends the session cookie by itself, so it counts only if there is no other credential. A bad cookie counts as none:
 *   otherwise a browser whose session has ended could neither read public resources nor log in again.
 */

import { hash } from 'node:crypto';
import type { Request } from '../http/message.ts';
import { problems } from '../http/problem-registry.ts';
import { type Anonymous, anonymous, type Known } from '../model/principal.ts';
import type { MaybePromise } from '../store/store.ts';
import { whenKnown } from '../store/when-known.ts';
import type { From } from './audit-fact.ts';
import type { Carrier, Unreadable } from './credential.ts';
import {
  authorizationCarrier,
  proxyAuthorizationCarrier,
  queryParameterCarrier,
  sessionCookieCarrier,
  xApiKeyCarrier,
} from './credential-carriers.ts';
import { type CrossSiteCheck, isSafeMethod } from './cross-site.ts';
import { fromOf } from './fact-of-ask.ts';
import type { Bad } from './verdict.ts';
import type { VerifiedCredentials } from './verified-credentials.ts';
import { type Verifiers, verifyCredential } from './verifiers.ts';

/** Carriers that a client uses deliberately. */
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

const anonymousCaller = { principal: anonymous };
const repeated: Bad = { problem: 'credentials_repeated' };
const crossSiteRequest: Bad = { problem: 'cross_site_request' };

/** The limited credentials that a route accepts beside those with all rights of their principal. */
export type Accepted = {
  /** Those that can only add a second factor. */
  readonly enrolling?: boolean;
  /** Sessions of a consumer's portal, for the webhooks of its tenant. */
  readonly portal?: boolean;
};

/** Refuses a limited credential unless the route accepts it, so a new route is closed to them until it says otherwise. */
export function createAuthenticate(options: AuthenticateOptions, accepted: Accepted = {}): Authenticate {
  const authenticateAny = createAuthenticateAny(options);

  async function refuseOnceConfirmed(
    limited: Known,
    refusal: Bad,
    request: Request,
    query: string | undefined,
  ): Promise<Identified> {
    // Another process may have added the factor since.
    return (await limited.confirmed) === false ? authenticate(request, query) : refusal;
  }

  const authenticate: Authenticate = (request, query) =>
    whenKnown(authenticateAny(request, query), (identified) => {
      if (!('scheme' in identified)) return identified;
      const refusal = refusalOf(identified, accepted);
      if (refusal === undefined) return identified;
      return identified.confirmed === undefined
        ? refusal
        : refuseOnceConfirmed(identified, refusal, request, query);
    });
  return authenticate;
}

const enrolmentRequired: Bad = { problem: 'second_factor_enrolment_required' };
const portalLimited: Bad = { problem: 'portal_session_limited' };

function refusalOf({ enrolsOnly, scheme }: Known, { enrolling, portal }: Accepted): Bad | undefined {
  if (enrolsOnly === true && enrolling !== true) return enrolmentRequired;
  return scheme === 'portal' && portal !== true ? portalLimited : undefined;
}

function createAuthenticateAny(options: AuthenticateOptions): Authenticate {
  const { crossSite, addressOf } = options;

  function byCookie(request: Request): MaybePromise<Identified> {
    const value = sessionCookieCarrier.find(request.fields, undefined);
    if (value === undefined) return anonymousCaller;
    if (!isSafeMethod(request.method) && crossSite(request)) return crossSiteRequest;
    const judged = judge(options, sessionCookieCarrier, value, () => fromOf(request, addressOf));
    return whenKnown(judged, anonymousIfRefused);
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
      return request.fields.cookie === undefined ? anonymousCaller : byCookie(request);
    }
    return judge(options, carrier, found, () => fromOf(request, addressOf));
  };
}

/** Returns the request's credential if it is a key, a token or a session cookie; undefined if it may be a password. */
export function unguessableCredential(request: Request, query: string | undefined): string | undefined {
  for (const carrier of [...carriers, sessionCookieCarrier]) {
    const found = carrier.find(request.fields, query);
    if (found === undefined) continue;
    return typeof found === 'string' && !carrier.holdsPassword(found) ? found : undefined;
  }
  return undefined;
}

/**
 * Authenticates a tunnel request (§4.10) and waits until the credential is confirmed, because no resource is read meanwhile. Anonymous
 * without Proxy-Authorization; that and every problem of status 401 becomes 407 with `proxyChallengesFor`.
 */
export function createProxyAuthenticate(
  options: JudgeOptions,
): (proxyAuthorization: string | undefined, from: From) => Promise<Identified> {
  return async (proxyAuthorization, from) => {
    if (proxyAuthorization === undefined) return anonymousCaller;
    for (;;) {
      const judged = await judge(options, proxyAuthorizationCarrier, proxyAuthorization, () => from);
      if ('problem' in judged) return judged;
      if ((await judged.confirmed) !== false) return refusalOf(judged, {}) ?? judged;
    }
  };
}

type JudgeOptions = Pick<AuthenticateOptions, 'verifiers' | 'cache'>;

function judge(
  options: JudgeOptions,
  carrier: Carrier,
  found: string | Unreadable,
  fromWhere: () => From,
): MaybePromise<Known | Bad> {
  if (typeof found !== 'string') return { problem: found.problem };
  if (carrier.holdsPassword(found)) return judgePassword(options, carrier, found, fromWhere());
  const { verifiers, cache } = options;
  const isLong = found.length > textCharactersMax;
  const name = isLong ? `#${carrier.mark}${hash('sha256', found, 'base64url')}` : carrier.mark + found;
  const known = cache.recall(name);
  if (known !== undefined) return known;
  const credential = carrier.read(found);
  if (credential.kind === 'unreadable') return { problem: credential.problem };
  const verify = () => verifyCredential(verifiers, credential, nowhere);
  return cache.verify({ name, verify, repeatable: !isLong });
}

/** Credentials that nobody guesses are not counted by addresses. */
const nowhere: From = { address: '' };

/** Longer credentials are cached under their digest. */
const textCharactersMax = 4096;

/**
 * A verified password is cached for one user and address, until another password is tried there. Otherwise an attacker at that address
 * could guess for free: the cache would confirm a right guess, and only wrong ones would count against the limit.
 */
function judgePassword(
  { verifiers, cache }: JudgeOptions,
  carrier: Carrier,
  found: string,
  from: From,
): MaybePromise<Known | Bad> {
  const proof = hash('sha256', found, 'base64url');
  const place = `${carrier.mark}${from.address}`;
  const known = cache.recallProven(place, proof);
  if (known !== undefined) return known;
  const credential = carrier.read(found);
  if (credential.kind === 'unreadable') return { problem: credential.problem };
  const user = credential.kind === 'password' ? credential.user : '';
  const name = `@${place}\n${user}`;
  // Drops another password that is cached under the name.
  const remembered = cache.recall(name, proof);
  if (remembered !== undefined) return remembered;
  const verify = () => verifyCredential(verifiers, credential, from);
  return cache.verify({ name, place, proof, verify, repeatable: false });
}

function anonymousIfRefused(judged: Known | Bad): Identified {
  return 'problem' in judged && problems[judged.problem].status === 401 ? anonymousCaller : judged;
}
