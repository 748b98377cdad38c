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
import type { RequestFields } from '../http/request-fields.ts';
import {
  type Challenge,
  decodeBasic,
  formatChallenge,
  parseCredentials,
} from '../http/syntax/authorization.ts';
import { readCookie } from '../http/syntax/cookie.ts';
import { parseQueryString } from '../http/syntax/query-string.ts';
import { type Anonymous, anonymous, type Known } from '../model/principal.ts';
import { type MaybePromise, whenKnown } from '../store/store.ts';
import { type From, fromOf } from './audit.ts';
import { portalSessionMark } from './portal/portal-verifier.ts';
import { type CrossSiteCheck, isSafeMethod, sessionCookieName } from './sessions/cookie.ts';
import type { Bad, Verdict } from './verdict.ts';
import type { VerifiedCredentials } from './verified-credentials.ts';

/** Judges credentials, and remembers those that were verified. */
type CredentialJudges = {
  readonly verifiers: Verifiers;
  readonly cache: VerifiedCredentials;
};

type Authentication = CredentialJudges & {
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
type Accepted = {
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

type Credential =
  | { readonly kind: 'key'; readonly key: string }
  | { readonly kind: 'bearer'; readonly token: string }
  | { readonly kind: 'password'; readonly user: string; readonly password: string }
  | { readonly kind: 'session'; readonly cookie: string };

/** The carrier holds text that is not a credential. */
type Unreadable = {
  readonly kind: 'unreadable';
  readonly problem:
    | 'invalid_token'
    | 'invalid_credentials'
    | 'invalid_api_key'
    | 'api_key_required'
    | 'credentials_repeated';
};

type Carrier = {
  /** One letter that separates this carrier's cached credentials from those of others. */
  readonly mark: string;
  /** Returns the text in that place, as cheaply as possible; undefined if there is none. */
  find(fields: CarrierFields, query: string | undefined): string | Unreadable | undefined;
  /** Parses the text; the result depends on nothing else. */
  read(text: string): Credential | Unreadable;
  /** True if the text may hold a password, which stays in memory only as a digest. */
  holdsPassword(text: string): boolean;
};

export type CarrierFields = Pick<
  RequestFields,
  'authorization' | 'xApiKey' | 'cookie' | 'proxyAuthorization'
>;

/**
 * `Authorization: Basic | Bearer | ApiKey | Api-Key` (RFC 9110 §11.6.2, RFC 6750 §2.1, RFC 7617). Invalid: an unknown scheme, several
 * schemes, and parameters in place of a token68, because the credential is then ambiguous.
 */
export const authorizationCarrier: Carrier = {
  mark: 'a',
  find: (fields) => fields.authorization,
  read: (text) => {
    const credentials = parseCredentials(text);
    if (credentials === undefined) return { kind: 'unreadable', problem: unreadable(text) };
    const { scheme, token68 = '', parameters } = credentials;
    if (scheme !== 'apikey' && scheme !== 'api-key') return readPasswordOrToken(scheme, token68);
    if (token68 !== '') return { kind: 'key', key: token68 };
    return { kind: 'unreadable', problem: parameters === undefined ? 'api_key_required' : 'invalid_api_key' };
  },
  holdsPassword: isBasic,
};

/** Reads `Basic` and `Bearer`; any other scheme is unusable. @param scheme in lower case */
function readPasswordOrToken(scheme: string, token68: string): Credential | Unreadable {
  if (scheme === 'bearer' && token68 !== '') return { kind: 'bearer', token: token68 };
  if (scheme !== 'basic') return { kind: 'unreadable', problem: 'invalid_token' };
  const decoded = decodeBasic(token68);
  return decoded === undefined
    ? { kind: 'unreadable', problem: 'invalid_credentials' }
    : { kind: 'password', ...decoded };
}

/** True if the field may be Basic. Safe for secrets: no other accepted scheme starts with "ba". */
function isBasic(text: string): boolean {
  const field = text.charCodeAt(0) <= 0x20 ? text.trimStart() : text;
  return (field.charCodeAt(0) | 0x20) === 0x62 && (field.charCodeAt(1) | 0x20) === 0x61;
}

/** Chooses the problem of a malformed field by its scheme. */
function unreadable(field: string): Unreadable['problem'] {
  const scheme = field.trimStart().split(' ', 1)[0]?.toLowerCase();
  if (scheme === 'basic') return 'invalid_credentials';
  return scheme === 'apikey' || scheme === 'api-key' ? 'invalid_api_key' : 'invalid_token';
}

/** The user name for a key as a password; no account has it, because their user names are e-mail addresses. */
const keyUser = 'key';

/**
 * `Proxy-Authorization: Basic | Bearer` (§5.2; RFC 9110 §11.7.2). Bearer carries a key or a token. Basic carries an e-mail address and
 * its password, a key as the user name with an empty password, or the user name `key` with a key as the password, for clients such as
 * Python's urllib that never send an empty one.
 */
export const proxyAuthorizationCarrier: Carrier = {
  mark: 'p',
  find: (fields) => fields.proxyAuthorization,
  read: (text) => {
    const credentials = parseCredentials(text);
    if (credentials !== undefined) {
      const read = readPasswordOrToken(credentials.scheme, credentials.token68 ?? '');
      return read.kind === 'password' && read.user === keyUser ? { kind: 'key', key: read.password } : read;
    }
    return { kind: 'unreadable', problem: isBasic(text) ? 'invalid_credentials' : 'invalid_token' };
  },
  holdsPassword: isBasic,
};

export const xApiKeyCarrier: Carrier = {
  mark: 'k',
  find: (fields) => fields.xApiKey,
  read: readKey,
  holdsPassword: () => false,
};

function readKey(text: string): Credential | Unreadable {
  const key = text.trim();
  return key === '' ? { kind: 'unreadable', problem: 'api_key_required' } : { kind: 'key', key };
}

const parameter = 'api_key';
const repeatedParameter: Unreadable = { kind: 'unreadable', problem: 'credentials_repeated' };
const malformed: Unreadable = { kind: 'unreadable', problem: 'invalid_api_key' };

/** `?api_key=<key>` (§5.2), the least secure carrier: URLs end up in logs (Comity's omit the query). */
export const queryParameterCarrier: Carrier = {
  mark: 'q',
  // Parsing every query string would cost each list request a microsecond.
  find: (_fields, query) =>
    query !== undefined && (query.includes(parameter) || query.includes('%')) ? findIn(query) : undefined,
  read: readKey,
  holdsPassword: () => false,
};

/** Examines only names; other parameters are parsed later. */
function findIn(query: string): string | Unreadable | undefined {
  let found: string | Unreadable | undefined;
  let start = 0;
  while (start < query.length) {
    const ampersand = query.indexOf('&', start);
    const end = ampersand === -1 ? query.length : ampersand;
    if (isKey(query, start, end)) {
      if (found !== undefined) return repeatedParameter;
      found = parseQueryString(query.slice(start, end))?.[0]?.[1] ?? malformed;
    }
    start = end + 1;
  }
  return found;
}

function isKey(query: string, start: number, end: number): boolean {
  const equals = query.indexOf('=', start);
  const nameEnd = equals === -1 || equals > end ? end : equals;
  // An escape is longer than its character.
  if (nameEnd - start < parameter.length) return false;
  if (nameEnd - start === parameter.length) return query.startsWith(parameter, start);
  const name = query.slice(start, nameEnd);
  return name.includes('%') && parseQueryString(name)?.[0]?.[0] === parameter;
}

/** Comity never issues longer cookies, so longer ones are not cached, hashed or looked up. */
const valueCharactersMax = 256;

/**
 * The session cookie (§5.2), the only carrier that a browser fills by itself. Two cookies of the name count as none: `__Host-` keeps a
 * sibling domain from planting one, but a client that does not know the prefix may send a planted one as well.
 */
export const sessionCookieCarrier: Carrier = {
  mark: 'c',
  find: ({ cookie }) => {
    if (cookie === undefined) return undefined;
    const value = readCookie(cookie, sessionCookieName);
    return value === undefined || value === null || value === '' || value.length > valueCharactersMax
      ? undefined
      : value;
  },
  read: (text) => ({ kind: 'session', cookie: text }),
  holdsPassword: () => false,
};

/** Carriers that a client uses deliberately. */
const carriers: readonly Carrier[] = [authorizationCarrier, xApiKeyCarrier, queryParameterCarrier];

// Challenges (§5.1; RFC 9110 §11.6.1): one list of all accepted schemes, whatever the client sent, so that it can choose. Not listed:
// `Api-Key`, a spelling of `ApiKey`, and the session cookie, which has no scheme. 403 carries no challenge, although RFC 6750 §3.1
// allows one (`insufficient_scope`): an owner or a role may be the reason, and a browser that receives `Basic` asks its user for a
// password that does not help.

const realm = 'comity';
const bearer: Challenge = { scheme: 'Bearer', parameters: { realm } };
/** RFC 6750 §3.1: only a request with a bad token gets the error code. */
const bearerOfBadToken: Challenge = { scheme: 'Bearer', parameters: { realm, error: 'invalid_token' } };
const apiKey: Challenge = { scheme: 'ApiKey', parameters: { realm } };
const basic: Challenge = { scheme: 'Basic', parameters: { realm, charset: 'UTF-8' } };

// A line of the field for each: of a list in one line, libwww-perl and others read the first challenge alone.
const plain = [bearer, apiKey, basic].map(formatChallenge);
const afterBadToken = [bearerOfBadToken, apiKey, basic].map(formatChallenge);
const plainForScripts = [bearer, apiKey].map(formatChallenge);
const afterBadTokenForScripts = [bearerOfBadToken, apiKey].map(formatChallenge);
const proxyPlain = [basic, bearer].map(formatChallenge).join(', ');
const proxyAfterBadToken = [basic, bearerOfBadToken].map(formatChallenge).join(', ');

/** @returns the values of `WWW-Authenticate` of a 401, each for a line of its own */
export function challengesFor(problem: ProblemCode, fields: RequestFields): readonly string[] {
  if (isOfScript(fields)) return problem === 'invalid_token' ? afterBadTokenForScripts : plainForScripts;
  return problem === 'invalid_token' ? afterBadToken : plain;
}

/**
 * A browser that receives `Basic` for a request of a script covers the page with a dialog for a name and a password, before the script
 * sees the response (Fetch, HTTP-network-or-cache fetch). `Sec-Fetch-Dest` (Fetch Metadata) is sent to https and loopback only; on other
 * origins pages mark their requests themselves, by a custom of many libraries.
 */
function isOfScript({ secFetchDest, xRequestedWith }: RequestFields): boolean {
  return secFetchDest === 'empty' || xRequestedWith?.toLowerCase() === 'xmlhttprequest';
}

/** @returns `Proxy-Authenticate` of a 407 (§4.10.5), in one line. Basic is first, because some clients read only the first challenge. */
export function proxyChallengesFor(problem: ProblemCode): string {
  return problem === 'invalid_token' ? proxyAfterBadToken : proxyPlain;
}
