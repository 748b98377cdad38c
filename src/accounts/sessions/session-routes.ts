/**
 * POST /auth/logout (§5.2) and `/users/{id}/sessions` (§5.4.6). Logout ends the session of the credential. The account itself and
 * administrators list the sessions of an account and end them. An account has at most `sessionsPerAccountMax` sessions, so there is one
 * page. A key is for programs: it neither sees nor ends the sessions of the account that it acts for.
 */
import { Type } from 'typebox';
import { readCookie } from '../../http/syntax/cookie.ts';
import { actionResource, type Done } from '../../kernel/action.ts';
import { named, pageSchema, pathParameter } from '../../kernel/documentation.ts';
import type { Ask, Resource, Standing } from '../../kernel/resource.ts';
import { isAdministrator } from '../../model/principal.ts';
import { tryCommit } from '../../store/lines.ts';
import { type Change, Overtaken, type Row, type Store } from '../../store/store.ts';
import type { AccountParts } from '../account-parts.ts';
import { accountsTag, anyCredential } from '../account-schemas.ts';
import { sessionsTable, usersCollection, usersTable } from '../account-tables.ts';
import { factOfAsk } from '../audit.ts';
import { sessionCookieName } from './cookie.ts';
import { endOf, readSession, type Sessions, sessionsOfUser } from './sessions.ts';

export function userSessionResources(parts: AccountParts): readonly Resource[] {
  return [listResource(parts), endResource(parts)];
}

const sessionSchema = named('Session', {
  description: 'A session of an account: what one login opened.',
  type: 'object',
  properties: {
    id: { type: 'string' },
    createdAt: { type: 'string', format: 'date-time', description: 'Time of the login.' },
    seenAt: {
      type: 'string',
      format: 'date-time',
      description: 'The last use, to within a tenth of its idle time.',
    },
    endsAt: {
      type: 'string',
      format: 'date-time',
      description: 'The end, however much the session is used.',
    },
    cookie: { type: 'boolean', description: 'The login gave a cookie, as browsers use it.' },
    current: { type: 'boolean', description: 'The session of this request.' },
  },
  required: ['id', 'createdAt', 'seenAt', 'endsAt', 'cookie', 'current'],
});

const example = {
  id: 'ses_01k1jx7v2mh5s8b4c9d0e6f3ga',
  createdAt: '2026-08-01T09:30:00.000Z',
  seenAt: '2026-08-01T10:30:00.000Z',
  endsAt: '2026-08-31T09:30:00.000Z',
  cookie: true,
  current: false,
};

const parameters = [pathParameter('id', 'Id of the account.')];

function listResource(parts: AccountParts): Resource {
  const { base, settings, store } = parts;
  return actionResource(
    {
      method: 'GET',
      path: `${base}/${usersTable}/{id}/sessions`,
      ...{ parameters, tag: usersCollection, name: 'UserSessions' },
      id: 'listUserSessions',
      summary: 'List the sessions of an account',
      description: 'For the account itself and for administrators. The newest comes first.',
      output: {
        schema: pageSchema('Sessions', 'The sessions of an account.', sessionSchema),
        example: { items: [example], nextCursor: null },
      },
      codes: [],
      permission: anyCredential,
      standing: (ask) => standingOf(parts, ask),
      mayBeMissing: true,
      handler: async (ask) => {
        const plan = sessionsOfUser(store, ask.captures[0] ?? '', 'desc', settings.sessionsPerAccountMax);
        const { docs } = await plan.page({ from: 'start' });
        const ids = docs.map((doc) => (JSON.parse(doc) as { readonly id: string }).id);
        const rows = await Promise.all(ids.map((id) => store.read(sessionsTable, id)));
        const items = rows.flatMap((row) =>
          row === undefined ? [] : [shown(settings.sessionSeconds, ask, row)],
        );
        return { content: { items, nextCursor: null } };
      },
    },
    settings,
  );
}

function shown(sessionSeconds: number, { known }: Ask, row: Row): typeof example {
  const time = (ms: number): string => new Date(ms).toISOString();
  return {
    id: row.id,
    createdAt: time(row.createdAt),
    seenAt: time(row.updatedAt),
    endsAt: time(endOf(row, sessionSeconds)),
    cookie: readSession(row).cookie !== null,
    current: known?.session === row.id,
  };
}

const endSchema = Type.Object({
  session: Type.Optional(
    Type.String({ description: 'Absent: all sessions of the account, except that of the request.' }),
  ),
});

function endResource(parts: AccountParts): Resource {
  const { base, settings } = parts;
  return actionResource(
    {
      path: `${base}/${usersTable}/{id}/sessions/end`,
      ...{ parameters, tag: usersCollection },
      id: 'endUserSessions',
      summary: 'End sessions of an account',
      description:
        'For the account itself and for administrators. Access tokens, refresh tokens and cookies of a session end with it, in every process immediately.',
      input: { name: 'SessionsEnd', schema: endSchema, example: { session: example.id }, optional: true },
      output: {
        schema: named('SessionsEnded', {
          type: 'object',
          properties: { ended: { type: 'integer', minimum: 0 } },
          required: ['ended'],
        }),
        example: { ended: 1 },
      },
      codes: [],
      permission: anyCredential,
      standing: (ask) => standingOf(parts, ask),
      mayBeMissing: true,
      handler: (ask, { session }) => end(parts, ask, session),
    },
    settings,
  );
}

/** The account of another is hidden, whether it exists or not. */
async function standingOf({ findUser }: AccountParts, ask: Ask): Promise<Standing> {
  const [id = ''] = ask.captures;
  const { principal, known } = ask;
  const isOwn = principal.kind === 'authenticated' && principal.id === id && known?.scheme !== 'key';
  if (!isOwn && !isAdministrator(principal)) return { exists: true, visible: false, permitted: false };
  return { exists: (await findUser.byId(id)) !== undefined, visible: true, permitted: true };
}

async function end(parts: AccountParts, ask: Ask, session: string | undefined): Promise<Done> {
  const { store, sessions } = parts;
  const [user = ''] = ask.captures;
  const all = await sessions.endOfUser(user, ask.known?.session ?? null);
  const ends = session === undefined ? all : await endOne(store, sessions, user, session);
  if (ends.length > 0) {
    const changes = [...ends, ...endEntries(parts, ask, ends)];
    const commit = await tryCommit(store, { changes, events: [] });
    if (commit instanceof Overtaken) return commit;
  }
  return { content: { ended: ends.length } };
}

/** No change for a session that is over, or of another account. */
async function endOne(
  store: Store,
  sessions: Pick<Sessions, 'end'>,
  user: string,
  session: string,
): ReturnType<Sessions['end']> {
  const row = await store.read(sessionsTable, session);
  return row !== undefined && readSession(row).user === user ? sessions.end(session) : [];
}

const logoutSchema = Type.Object({
  everywhere: Type.Optional(
    Type.Boolean({ default: false, description: '`true`: ends all sessions of the account.' }),
  ),
});

/**
 * POST /auth/logout ends the session that the credential belongs to, and with it the access tokens, the refresh token and the cookie,
 * immediately and in every process. A key, a password and a token of another issuer have no session here: 403, because a success would
 * claim that something has ended.
 */
export function logoutResource(parts: AccountParts): Resource {
  const { base, settings } = parts;
  return actionResource(
    {
      path: `${base}/auth/logout`,
      tag: accountsTag,
      id: 'logout',
      summary: 'End the session',
      description:
        'Revokes the access token, the refresh token and the cookie immediately. Requests with a key or a password have no session and are refused with 403.',
      input: { name: 'Logout', schema: logoutSchema, example: { everywhere: true }, optional: true },
      fields: ['Set-Cookie'],
      schemes: ['bearer', 'cookieAuth'],
      codes: ['forbidden'],
      permission: anyCredential,
      handler: (ask, { everywhere = false }) => logOut(parts, ask, everywhere),
    },
    settings,
  );
}

async function logOut(parts: AccountParts, ask: Ask, everywhere: boolean): Promise<Done> {
  const { store, sessions } = parts;
  const session = ask.known?.session ?? null;
  if (session === null) {
    return { refused: { code: 'forbidden', message: 'this credential has no session to end' } };
  }
  const ends = everywhere
    ? await sessions.endOfUser(ask.principal.kind === 'authenticated' ? ask.principal.id : '', null)
    : await sessions.end(session);
  if (ends.length > 0) {
    const changes = [...ends, ...endEntries(parts, ask, ends)];
    const commit = await tryCommit(store, { changes, events: [] });
    if (commit instanceof Overtaken) return commit;
  }
  return { content: null, fields: clearing(sessions, ask, session, ends) };
}

function endEntries(
  { audit, addressOf }: AccountParts,
  ask: Ask,
  ends: readonly Change[],
): readonly Change[] {
  return ends.map(({ id }) => audit.entry(factOfAsk(ask, addressOf, { type: 'session.ended', subject: id })));
}

/** A browser forgets the cookie of a session that has ended, also where a token said so; that of another stays. */
function clearing(
  sessions: Pick<Sessions, 'clearCookie'>,
  ask: Ask,
  session: string,
  ends: readonly Change[],
): readonly string[] {
  const { cookie } = ask.request.fields;
  const value = cookie === undefined ? undefined : readCookie(cookie, sessionCookieName);
  if (value === undefined) return [];
  const named = value?.split('.', 1)[0];
  const isOver = value === null || named === session || ends.some(({ id }) => id === named);
  return isOver ? sessions.clearCookie : [];
}
