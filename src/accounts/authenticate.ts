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
import { type ProblemCode, problems } from '../http/problem-registry.ts';
import { type Anonymous, anonymous, type Known } from '../model/principal.ts';
import { type MaybePromise, whenKnown } from '../store/store.ts';
import { type From, fromOf } from './audit-fact.ts';
import {
  authorizationCarrier,
  type Carrier,
  type Credential,
  proxyAuthorizationCarrier,
  queryParameterCarrier,
  sessionCookieCarrier,
  type Unreadable,
  xApiKeyCarrier,
} from './credential-carriers.ts';
import { type CrossSiteCheck, isSafeMethod } from './cross-site.ts';
import { portalSessionMark } from './portal/portal-rows.ts';
import type { Bad, Verdict } from './verdict.ts';
import type { VerifiedCredentials } from './verified-credentials.ts';

/** Carriers that a client uses deliberately. */
const carriers: readonly Carrier[] = [authorizationCarrier, xApiKeyCarrier, queryParameterCarrier];

/** Judges credentials, and remembers those that were verified. */
export type CredentialJudges = {
  readonly verifiers: Verifiers;
  readonly cache: VerifiedCredentials;
};

export type Authentication = CredentialJudges & {
  readonly isCrossSite: CrossSiteCheck;
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
export function createAuthenticate(authentication: Authentication, accepted: Accepted = {}): Authenticate {
  const authenticateAny = createAuthenticateAny(authentication);

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

function createAuthenticateAny(authentication: Authentication): Authenticate {
  const { isCrossSite, addressOf } = authentication;

  function byCookie(request: Request): MaybePromise<Identified> {
    const value = sessionCookieCarrier.find(request.fields, undefined);
    if (value === undefined) return anonymousCaller;
    if (!isSafeMethod(request.method) && isCrossSite(request)) return crossSiteRequest;
    const judged = judge(authentication, sessionCookieCarrier, value, () => fromOf(request, addressOf));
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
    return judge(authentication, carrier, found, () => fromOf(request, addressOf));
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
  judges: CredentialJudges,
): (proxyAuthorization: string | undefined, from: From) => Promise<Identified> {
  return async (proxyAuthorization, from) => {
    if (proxyAuthorization === undefined) return anonymousCaller;
    for (;;) {
      const judged = await judge(judges, proxyAuthorizationCarrier, proxyAuthorization, () => from);
      if ('problem' in judged) return judged;
      if ((await judged.confirmed) !== false) return refusalOf(judged, {}) ?? judged;
    }
  };
}

function judge(
  judges: CredentialJudges,
  carrier: Carrier,
  found: string | Unreadable,
  fromWhere: () => From,
): MaybePromise<Known | Bad> {
  if (typeof found !== 'string') return { problem: found.problem };
  if (carrier.holdsPassword(found)) return judgePassword(judges, carrier, found, fromWhere());
  const { verifiers, cache } = judges;
  const isLong = found.length > textCharactersMax;
  const name = isLong ? `#${carrier.mark}${hash('sha256', found, 'base64url')}` : carrier.mark + found;
  const known = cache.recall(name);
  if (known !== undefined) return known;
  const credential = carrier.read(found);
  if (credential.kind === 'unreadable') return { problem: credential.problem };
  const verify = () => verifyCredential(verifiers, credential, nowhere);
  return cache.verify({ name, verify, repeatable: !isLong });
}

/** Credentials that cannot be guessed are not counted by addresses. */
const nowhere: From = { address: '' };

/** Longer credentials are cached under their digest. */
const textCharactersMax = 4096;

/**
 * A verified password is cached for one user and address, until another password is tried there. Otherwise an attacker at that address
 * could guess for free: the cache would confirm a right guess, and only wrong ones would count against the limit.
 */
function judgePassword(
  { verifiers, cache }: CredentialJudges,
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

/** The verifier for each kind of credential (§5.2). */
export type Verifiers = {
  key(key: string): MaybePromise<Verdict>;
  /** An access token of Comity or of a trusted issuer. */
  token(token: string): MaybePromise<Verdict>;
  /** @param from has the address that failed attempts are counted by */
  password(user: string, password: string, from: From): Promise<Verdict>;
  /** The session of a consumer's portal; absent: there is no portal. */
  readonly portal?: (token: string) => MaybePromise<Verdict>;
  /** @param cookie value of the session cookie */
  session(cookie: string): MaybePromise<Verdict>;
};

/** A key in another carrier has the problem of that carrier: one sent as a token is an invalid token. */
function verifyCredential(verifiers: Verifiers, credential: Credential, from: From): MaybePromise<Verdict> {
  switch (credential.kind) {
    case 'key':
      return verifiers.key(credential.key);
    case 'bearer':
      if (credential.token.startsWith(portalSessionMark)) {
        return verifiers.portal?.(credential.token) ?? { problem: 'invalid_token' };
      }
      return looksLikeKey(credential.token)
        ? withProblem(verifiers.key(credential.token), 'invalid_token')
        : verifiers.token(credential.token);
    case 'password':
      return credential.password === '' && looksLikeKey(credential.user)
        ? withProblem(verifiers.key(credential.user), 'invalid_credentials')
        : verifiers.password(credential.user, credential.password, from);
    case 'session':
      return verifiers.session(credential.cookie);
  }
}

/** No JWT starts like this; an e-mail address may, but no account has an empty password. */
function looksLikeKey(text: string): boolean {
  return text.startsWith('sk_') || text.startsWith('pk_');
}

function withProblem(verdict: MaybePromise<Verdict>, problem: ProblemCode): MaybePromise<Verdict> {
  const tell = (found: Verdict): Verdict =>
    'problem' in found && found.problem === 'invalid_api_key' ? { ...found, problem } : found;
  return whenKnown(verdict, tell);
}
