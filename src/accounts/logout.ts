/**
 * POST /auth/logout (§5.2): ends the session that the credential belongs to, and with it the access tokens, the refresh token and the
 * cookie, at once and on every process. A key, a password and a token of another issuer belong to no session of ours: 403, since
 * answering as if something had ended would be a lie.
 */
import { Type } from 'typebox';
import { readCookie } from '../http/syntax/cookie.ts';
import { actionResource, type Done } from '../kernel/action.ts';
import type { Ask, Resource } from '../kernel/resource.ts';
import { tryCommit } from '../store/lines.ts';
import { type Change, Overtaken, type Store } from '../store/store.ts';
import { type AccountRouteOptions, accountsTag, anyCredential } from './account-schemas.ts';
import type { Audit } from './audit-fact.ts';
import { factOfAsk } from './fact-of-ask.ts';
import { sessionCookieName } from './sessions/cookie.ts';
import type { Sessions } from './sessions/sessions.ts';

export type LogoutOptions = AccountRouteOptions & {
  readonly store: Pick<Store, 'commit'>;
  readonly sessions: Pick<Sessions, 'end' | 'endOfUser' | 'clearCookie'>;
  readonly audit: Pick<Audit, 'entry'>;
};

const schema = Type.Object({
  everywhere: Type.Optional(
    Type.Boolean({ default: false, description: '`true`: ends all sessions of the account.' }),
  ),
});

export function logoutResource(options: LogoutOptions): Resource {
  return actionResource(
    {
      path: `${options.base}/auth/logout`,
      tag: accountsTag,
      noun: 'logout',
      id: 'logout',
      summary: 'End the session',
      description:
        'Revokes the access token, the refresh token and the cookie immediately. Requests with a key or a password have no session and are refused with 403.',
      input: { name: 'Logout', schema, example: { everywhere: true }, optional: true },
      fields: ['Set-Cookie'],
      schemes: ['bearer', 'cookieAuth'],
      codes: ['forbidden'],
      permission: anyCredential,
      handler: (ask, { everywhere = false }) => logOut(options, ask, everywhere),
    },
    options.limits,
  );
}

async function logOut(options: LogoutOptions, ask: Ask, everywhere: boolean): Promise<Done> {
  const session = ask.known?.session ?? null;
  if (session === null) {
    return { refused: { code: 'forbidden', message: 'this credential has no session to end' } };
  }
  const ends = everywhere
    ? await options.sessions.endOfUser(ask.principal.kind === 'authenticated' ? ask.principal.id : '', null)
    : await options.sessions.end(session);
  if (ends.length > 0) {
    const commit = await tryCommit(options.store, {
      changes: [...ends, ...ends.map((end) => entryOf(options, ask, end))],
      events: [],
    });
    if (commit instanceof Overtaken) return commit;
  }
  return { content: null, fields: clearing(options, ask, session, ends) };
}

function entryOf(options: LogoutOptions, ask: Ask, end: Change): Change {
  return options.audit.entry(factOfAsk(ask, options.addressOf, { type: 'session.ended', subject: end.id }));
}

/** A browser forgets the cookie of a session that has ended, also where a token said so; that of another stays. */
function clearing(
  options: LogoutOptions,
  ask: Ask,
  session: string,
  ends: readonly Change[],
): readonly string[] {
  const { cookie } = ask.request.fields;
  const value = cookie === undefined ? undefined : readCookie(cookie, sessionCookieName);
  if (value === undefined) return [];
  const named = value?.split('.', 1)[0];
  const isOver = value === null || named === session || ends.some(({ id }) => id === named);
  return isOver ? options.sessions.clearCookie : [];
}
