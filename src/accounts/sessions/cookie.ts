/**
 * The session cookie (§5.2, RFC 6265bis). `__Host-` makes browsers refuse a cookie that is not Secure, names a domain or has another
 * path, so that no other host can plant one. Its value is the session id and a secret; every login creates both, so a value planted
 * before is worthless.
 */
import type { SessionRow } from './session-row.ts';

export const sessionCookieName = '__Host-comity_session';

export type SameSite = 'Lax' | 'Strict';

export type CookieParts = { readonly session: SessionRow['id']; readonly secret: string };

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
