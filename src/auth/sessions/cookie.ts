/**
 * The session cookie (§5.2, RFC 6265bis). `__Host-` makes browsers refuse one that is not Secure, names a domain, or holds for a part
 * of the paths, so no other host can plant it. Its value is the session and a secret that no other session has; a login always makes
 * both anew, so a value that somebody planted before is worth nothing after.
 */
import type { SessionRow } from './session-row.ts';

export const sessionCookieName = '__Host-comity_session';

export type SameSite = 'Lax' | 'Strict';

export type CookieParts = { readonly session: SessionRow['id']; readonly secret: string };

const valueShape = /^(ses_[0-9a-z]{26})\.([A-Za-z0-9_-]{43})$/;
const valueCharacters = 'ses_'.length + 26 + '.'.length + 43;

/** The field that sets it, as name and value. @param seconds what is left of the session's absolute lifetime */
export function setSessionCookie(parts: CookieParts, seconds: number, sameSite: SameSite): readonly string[] {
  return ['Set-Cookie', cookie(`${parts.session}.${parts.secret}`, seconds, sameSite)];
}

/** The field that makes a browser forget it. */
export function clearSessionCookie(sameSite: SameSite): readonly string[] {
  return ['Set-Cookie', cookie('', 0, sameSite)];
}

/** Undefined for what never was the value of one. */
export function parseSessionCookie(value: string): CookieParts | undefined {
  if (value.length !== valueCharacters) return undefined;
  const [, session, secret] = valueShape.exec(value) ?? [];
  return session === undefined || secret === undefined ? undefined : { session, secret };
}

function cookie(value: string, seconds: number, sameSite: SameSite): string {
  return `${sessionCookieName}=${value}; Path=/; Max-Age=${seconds}; HttpOnly; Secure; SameSite=${sameSite}`;
}
