/**
 * Opens a session for a login (§2.3, §5.4), always with a new id and new secrets, so that an attacker cannot fix the session that a
 * user logs in to. An account has at most `sessionsPerAccountMax` sessions; the same unit removes the oldest.
 */

import { idField, ownerField } from '../../model/field.ts';
import { pagesOf } from '../../store/in-batches.ts';
import type { Change, Plan, Store } from '../../store/store.ts';
import { sessionsTable, type User } from '../account-tables.ts';
import { digestOf } from '../digest.ts';
import type { AccessTokens } from '../tokens/access-token.ts';
import { setSessionCookie } from './cookie.ts';
import { drawSecret, formatRefreshToken, type SessionRow, sessionRow } from './session-row.ts';
import type { Opened, Sessions, SessionsOptions, TokenContent } from './sessions.ts';
import { principalOf } from './user-principal.ts';

/** Sessions that one login removes; only after the setting was lowered are there more, which the next logins remove. */
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

/** Removes all but the newest sessions; ids grow with time. */
async function makeRoom(options: SessionsOptions, user: User['id']): Promise<readonly Change[]> {
  const { store, sessionsPerAccountMax } = options;
  const newestFirst = sessionsOfUser(store, user, 'desc', removedMax);
  const page = await newestFirst.page({ from: 'offset', offset: sessionsPerAccountMax - 1 });
  const removals = await Promise.all(
    page.docs.map((doc) => endSession(store, (JSON.parse(doc) as SessionRow).id)),
  );
  return removals.flat();
}

const pageRowsMax = 100;

/**
 * Returns the change that removes the session; empty if it does not exist. The change names the revision, so that a session that was
 * refreshed or seen meanwhile is not missed: the unit is superseded and the caller retries.
 */
export async function endSession(store: Store, id: string): Promise<readonly Change[]> {
  const row = await store.read(sessionsTable, id);
  return row === undefined ? [] : [{ table: sessionsTable, id, expect: { rev: row.rev }, next: null }];
}

export function endSessionsOfUser(store: Store): Sessions['endOfUser'] {
  return async (user, except) => {
    const changes: Change[] = [];
    const plan = sessionsOfUser(store, user, 'asc', pageRowsMax);
    for await (const { docs } of pagesOf(plan)) {
      const ids = docs.map((doc) => (JSON.parse(doc) as SessionRow).id).filter((id) => id !== except);
      const ends = await Promise.all(ids.map((id) => endSession(store, id)));
      changes.push(...ends.flat());
    }
    return changes;
  };
}

/** Lists the sessions of one account in the order of their logins, by an index. @param limit rows on a page */
export function sessionsOfUser(store: Store, user: string, direction: 'asc' | 'desc', limit: number): Plan {
  return store.plan({
    table: sessionsTable,
    filter: { op: 'eq', field: ownerField, value: user },
    sort: [{ field: idField, direction }],
    limit,
  });
}

type ContentParts = {
  readonly user: User;
  readonly session: string;
  readonly refreshToken: string;
  /** Milliseconds since the epoch, like `endsAt`. */
  readonly at: number;
  /** The end of the session, which the token does not outlive. */
  readonly endsAt: number;
};

/** Creates the content of a login, a registration and a refresh (§2.3). @throws Error for a disabled account */
export async function tokenContent(tokens: AccessTokens, parts: ContentParts): Promise<TokenContent> {
  const { user, session, refreshToken, at, endsAt } = parts;
  const principal = principalOf(user);
  if (principal === undefined) throw new Error('an access token requires an active account');
  const claims = { user: user.id, session, scopes: [...principal.scopes] };
  const { token, expiresIn } = await tokens.sign(claims, at, endsAt);
  return { token, expiresIn, refreshToken, user: { id: user.id, email: user.email } };
}
