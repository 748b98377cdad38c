/**
 * The cookie that binds a sign-in to the browser that began it (RFC 9700 §4.7.1): who is sent a callback made elsewhere has another one,
 * so nobody can be signed in to an account that is not theirs. `__Host-` and its attributes as for the session cookie; always Lax, because
 * a callback comes from the provider's site. A browser keeps one secret for its sign-ins, so that two windows do not disturb each other.
 */
import { readCookie } from '../../http/syntax/cookie.ts';
import { isSecret } from './sign-ins.ts';

export const signInCookieName = '__Host-comity_sign_in';

/** @param field value of Cookie. Undefined: none, or not one that was made here */
export function readBrowserSecret(field: string | undefined): string | undefined {
  const value = field === undefined ? undefined : readCookie(field, signInCookieName);
  return typeof value === 'string' && isSecret(value) ? value : undefined;
}

/** The field that keeps the secret, as name and value. */
export function setBrowserSecret(secret: string, seconds: number): readonly string[] {
  const attributes = `Path=/; Max-Age=${seconds}; HttpOnly; Secure; SameSite=Lax`;
  return ['Set-Cookie', `${signInCookieName}=${secret}; ${attributes}`];
}
