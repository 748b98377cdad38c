/**
 * Detects cross-site request forgery (§5.4): requests that a page of another site makes a browser send with the user's cookie. Only
 * fields that no script can set count: `Sec-Fetch-Site` (Fetch Metadata) and `Origin` (RFC 6454, Fetch). The check applies to unsafe
 * methods with only the session cookie (authenticate.ts), and to responses that set a cookie: a login sent by a foreign page would log
 * the user in to the attacker's account. A request with another credential, or from a client that is not a browser, is never
 * cross-site. A foreign page that may read responses is allowed only by its origin (§5.5).
 */
import type { Request } from '../http/message.ts';

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
