/**
 * The session cookie (§5.2): the one carrier that a browser fills by itself, so nothing follows from its being there. A value that
 * is not good is as none (authenticate.ts). So is one of two cookies of the name: `__Host-` keeps a sibling domain from planting a
 * second one, and where a client does not know that prefix nobody can say which of them is the planted one.
 */
import { readCookie } from '../../http/syntax/cookie.ts';
import type { Carrier } from '../credential.ts';
import { sessionCookieName } from '../sessions/cookie.ts';

/** Longer ones were never made here, and are not remembered, hashed or looked for. */
const valueCharactersMax = 256;

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
