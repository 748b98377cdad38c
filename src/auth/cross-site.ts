/**
 * Refuses what a page of another site makes a browser send with the user's cookie (§5.4: cross-site request forgery). Only what a
 * browser cannot be talked out of counts: `Sec-Fetch-Site` (Fetch Metadata), which no script can set, and `Origin` (RFC 6454, Fetch).
 *
 * It is asked for unsafe methods that the session cookie alone carries (authenticate.ts), and where a cookie is to be set: a login
 * that a foreign page sends would put the user into the attacker's account. A request with a credential of its own, or from what is
 * no browser, is never cross-site; a foreign page that may read answers is let through by name alone (§5.5).
 */
import type { Request } from '../http/message.ts';

/** True where a page of a site that is neither ours nor allowed has sent the request. */
export type CrossSiteCheck = (request: Pick<Request, 'fields'>) => boolean;

export type CrossSiteOptions = {
  /** Origin that clients see; undefined: only Host tells. */
  readonly publicUrl: string | undefined;
  /** Serialized origins that may send credentials. */
  readonly credentialedOrigins: ReadonlySet<string>;
};

export function createCrossSiteCheck(options: CrossSiteOptions): CrossSiteCheck {
  const publicOrigin = options.publicUrl === undefined ? undefined : new URL(options.publicUrl);
  return ({ fields: { origin, secFetchSite, host } }) => {
    // `none`: the user did it, by a bookmark or by loading the page again.
    if (secFetchSite === 'same-origin' || secFetchSite === 'none') return false;
    if (origin === undefined) return secFetchSite !== undefined;
    if (origin === publicOrigin?.origin || options.credentialedOrigins.has(origin)) return false;
    // A browser that tells the site has said that this is another one; its scheme may differ and its host not.
    if (secFetchSite !== undefined || host === undefined) return true;
    const from = originOf(origin);
    if (from === undefined) return true;
    const own = from.host === hostOf(from.protocol, host);
    return !own || (publicOrigin !== undefined && from.host === publicOrigin.host);
  };
}

const safeMethods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'QUERY', 'TRACE']);

/** RFC 9110 §9.2.1, RFC 10008 §2. */
export function isSafeMethod(method: string): boolean {
  return safeMethods.has(method);
}

/** Undefined for `null` and for what a page of ours cannot have. */
function originOf(text: string): URL | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  return url?.protocol === 'https:' || url?.protocol === 'http:' ? url : undefined;
}

/** Host in the spelling of the URL Standard: lower case, without the port that the scheme has anyway. */
function hostOf(protocol: string, host: string): string | undefined {
  const text = `${protocol}//${host}`;
  return URL.canParse(text) ? new URL(text).host : undefined;
}
