/**
 * A login becomes a session (§2.3, §5.4): always a new one with new secrets, whatever the client brought, so that nobody can be made
 * to log in to a session that another knows. An account has at most `sessionsPerAccountMax`; the oldest make room in the same unit.
 */
import type { Change } from '../../store/store.ts';
import { digestOf } from '../digest.ts';
import { sessionsTable, type User } from '../tables.ts';
import { setSessionCookie } from './cookie.ts';
import { endSession } from './end.ts';
import { drawSecret, formatRefreshToken, type SessionRow, sessionRow } from './session-row.ts';
import type { Opened, Sessions, SessionsOptions } from './sessions.ts';
import { sessionsOfUser } from './sessions-of-user.ts';
import { tokenContent } from './token-content.ts';

/** Sessions that one login removes at most; only a setting that was lowered asks for more than one, and the next logins go on. */
const removedMax = 100;

export function openSession(options: SessionsOptions): Sessions['open'] {
  const { random, sessionSeconds, sessionSameSite } = options;
  return async (user, { cookie, at }) => {
    const id = `ses_${options.newId()}`;
    const familySecret = drawSecret(random);
    const secret = drawSecret(random);
    const cookieSecret = cookie ? drawSecret(random) : null;
    const session: SessionRow = {
      id,
      user: user.id,
      refresh: { family: digestOf(familySecret), current: digestOf(secret), issuedAt: at },
      cookie: cookieSecret === null ? null : digestOf(cookieSecret),
    };
    const opened: Change = {
      table: sessionsTable,
      id,
      expect: { absent: true },
      next: sessionRow(session, at, at),
    };
    const endsAt = at + sessionSeconds * 1000;
    const refreshToken = formatRefreshToken({ session: id, familySecret, secret });
    const content = await tokenContent(options.tokens, { user, session: id, refreshToken, at, endsAt });
    const changes = [opened, ...(await makeRoom(options, user.id))];
    const fields =
      cookieSecret === null
        ? []
        : setSessionCookie({ session: id, secret: cookieSecret }, sessionSeconds, sessionSameSite);
    return { changes, session: id, content, fields } satisfies Opened;
  };
}

/** Removes what is beyond the newest of the account; ids grow with time. */
async function makeRoom(options: SessionsOptions, user: User['id']): Promise<readonly Change[]> {
  const { store, sessionsPerAccountMax } = options;
  const newestFirst = sessionsOfUser(store, user, 'desc', removedMax);
  const page = await newestFirst.page({ from: 'offset', offset: sessionsPerAccountMax - 1 });
  const removals = await Promise.all(
    page.docs.map((doc) => endSession(store, (JSON.parse(doc) as SessionRow).id)),
  );
  return removals.flat();
}
