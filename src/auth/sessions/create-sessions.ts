/** Puts the operations on sessions together, one file each, over one store and one ring of signing keys. */
import { clearSessionCookie } from './cookie.ts';
import { endSession, endSessionsOfUser } from './end.ts';
import { openSession } from './open.ts';
import { refreshSession } from './refresh.ts';
import type { Sessions, SessionsOptions } from './sessions.ts';
import { createSightings } from './sightings.ts';
import { verifyAccessToken } from './verify-access-token.ts';
import { verifySessionCookie } from './verify-cookie.ts';

export function createSessions(options: SessionsOptions): Sessions {
  const sightings = createSightings(options);
  return {
    open: openSession(options),
    refresh: (refreshToken, address) => refreshSession(options, refreshToken, address),
    end: (sessionId) => endSession(options.store, sessionId),
    endOfUser: endSessionsOfUser(options.store),
    verifyToken: (token) => verifyAccessToken(options, token),
    verifyCookie: (cookie) => verifySessionCookie(options, sightings, cookie),
    clearCookie: clearSessionCookie(options.sessionSameSite),
    close: sightings.close,
  };
}
