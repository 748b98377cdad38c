/**
 * The places of a request that can carry a credential (§5.2), one carrier each, and a credential as a carrier reads it, before verification.
 */
import type { RequestFields } from '../http/request-fields.ts';
import { decodeBasic, parseCredentials } from '../http/syntax/authorization.ts';
import { readCookie } from '../http/syntax/cookie.ts';
import { parseQueryString } from '../http/syntax/query-string.ts';
import { sessionCookieName } from './sessions/cookie.ts';

export type Credential =
  | { readonly kind: 'key'; readonly key: string }
  | { readonly kind: 'bearer'; readonly token: string }
  | { readonly kind: 'password'; readonly user: string; readonly password: string }
  | { readonly kind: 'session'; readonly cookie: string };

/** The carrier holds text that is not a credential. */
export type Unreadable = {
  readonly kind: 'unreadable';
  readonly problem:
    | 'invalid_token'
    | 'invalid_credentials'
    | 'invalid_api_key'
    | 'api_key_required'
    | 'credentials_repeated';
};

export type Carrier = {
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
export function readPasswordOrToken(scheme: string, token68: string): Credential | Unreadable {
  if (scheme === 'bearer' && token68 !== '') return { kind: 'bearer', token: token68 };
  if (scheme !== 'basic') return { kind: 'unreadable', problem: 'invalid_token' };
  const decoded = decodeBasic(token68);
  return decoded === undefined
    ? { kind: 'unreadable', problem: 'invalid_credentials' }
    : { kind: 'password', ...decoded };
}

/** True if the field may be Basic. Safe for secrets: no other accepted scheme starts with "ba". */
export function isBasic(text: string): boolean {
  const field = text.charCodeAt(0) <= 0x20 ? text.trimStart() : text;
  return (field.charCodeAt(0) | 0x20) === 0x62 && (field.charCodeAt(1) | 0x20) === 0x61;
}

/** Chooses the problem of a malformed field by its scheme. */
export function unreadable(field: string): Unreadable['problem'] {
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

export function readKey(text: string): Credential | Unreadable {
  const key = text.trim();
  return key === '' ? { kind: 'unreadable', problem: 'api_key_required' } : { kind: 'key', key };
}

const parameter = 'api_key';
const repeated: Unreadable = { kind: 'unreadable', problem: 'credentials_repeated' };
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
      if (found !== undefined) return repeated;
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
