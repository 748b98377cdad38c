/**
 * The session cookie (§5.2, RFC 6265bis). `__Host-` makes browsers refuse a cookie that is not Secure, names a domain or has another
 * path, so that no other host can plant one. Its value is the session id and a secret; every login creates both, so a value planted
 * before is worthless.
 */
import type { Request } from '../../http/message.ts';

export const sessionCookieName = '__Host-comity_session';

type SameSite = 'Lax' | 'Strict';

type CookieParts = { readonly session: string; readonly secret: string };

const valueShape = /^(ses_[0-9a-z]{26})\.([A-Za-z0-9_-]{43})$/;
const valueCharacters = 'ses_'.length + 26 + '.'.length + 43;

/** Returns the Set-Cookie field as name and value. @param seconds until the session's absolute end */
export function setSessionCookie(parts: CookieParts, seconds: number, sameSite: SameSite): readonly string[] {
  return ['Set-Cookie', cookie(`${parts.session}.${parts.secret}`, seconds, sameSite)];
}

export function clearSessionCookie(sameSite: SameSite): readonly string[] {
  return ['Set-Cookie', cookie('', 0, sameSite)];
}

export function parseSessionCookie(value: string): CookieParts | undefined {
  if (value.length !== valueCharacters) return undefined;
  const [, session, secret] = valueShape.exec(value) ?? [];
  return session === undefined || secret === undefined ? undefined : { session, secret };
}

function cookie(value: string, seconds: number, sameSite: SameSite): string {
  return `${sessionCookieName}=${value}; Path=/; Max-Age=${seconds}; HttpOnly; Secure; SameSite=${sameSite}`;
}

// Detects cross-site request forgery (§5.4): requests that a page of another site makes a browser send with the user's cookie. Only
// fields that no script can set count: `Sec-Fetch-Site` (Fetch Metadata) and `Origin` (RFC 6454, Fetch). The check applies to unsafe
// methods with only the session cookie (authenticate.ts), and to responses that set a cookie: a login sent by a foreign page would log
// the user in to the attacker's account. A request with another credential, or from a client that is not a browser, is never
// cross-site. A foreign page that may read responses is allowed only by its origin (§5.5).

/** True if a page of a site that is neither Comity's nor allowed sent the request. */
export type CrossSiteCheck = (request: Pick<Request, 'fields'>) => boolean;

/** @param credentialedOrigins serialized origins that may send credentials */
export function createCrossSiteCheck(
  publicUrl: string | undefined,
  credentialedOrigins: ReadonlySet<string>,
): CrossSiteCheck {
  const publicOrigin = publicUrl === undefined ? undefined : new URL(publicUrl);
  return ({ fields: { origin, secFetchSite, host } }) => {
    // `none`: the user opened a bookmark or reloaded the page.
    if (secFetchSite === 'same-origin' || secFetchSite === 'none') return false;
    if (origin === undefined) return secFetchSite !== undefined;
    if (origin === publicOrigin?.origin || credentialedOrigins.has(origin)) return false;
    // Sec-Fetch-Site already says that the origin is another one, even if only its scheme differs.
    if (secFetchSite !== undefined || host === undefined) return true;
    const from = parseOrigin(origin);
    if (from === undefined) return true;
    const own = from.host === normalizeHost(from.protocol, host);
    return !own || (publicOrigin !== undefined && from.host === publicOrigin.host);
  };
}

const safeMethods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'QUERY', 'TRACE']);

/** RFC 9110 §9.2.1, RFC 10008 §2. */
export function isSafeMethod(method: string): boolean {
  return safeMethods.has(method);
}

/** Parses an http or https origin; undefined for `null` and all others. */
function parseOrigin(text: string): URL | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  return url?.protocol === 'https:' || url?.protocol === 'http:' ? url : undefined;
}

/** Normalizes a host by the URL Standard: lower case, without the default port of the scheme. */
function normalizeHost(protocol: string, host: string): string | undefined {
  const text = `${protocol}//${host}`;
  return URL.canParse(text) ? new URL(text).host : undefined;
}
