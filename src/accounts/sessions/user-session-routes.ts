/**
 * `/users/{id}/sessions` (§5.4.6): the sessions of an account with their times, and their end, for the account itself and for
 * administrators. An account has at most `sessionsPerAccountMax` sessions, so there is one page. A key is for programs: it neither sees
 * nor ends the sessions of the account that it acts for.
 */
import { Type } from 'typebox';
import { actionResource, type Done } from '../../kernel/action.ts';
import { named, pageSchema, pathParameter } from '../../kernel/documentation.ts';
import type { Ask, Resource, Standing } from '../../kernel/resource.ts';
import { isAdministrator } from '../../model/principal.ts';
import { tryCommit } from '../../store/lines.ts';
import { Overtaken, type Row, type Store } from '../../store/store.ts';
import { usersCollection } from '../account-collections.ts';
import { type AccountRouteOptions, anyCredential } from '../account-schemas.ts';
import { sessionsTable, usersTable } from '../account-tables.ts';
import type { Audit } from '../audit-fact.ts';
import { factOfAsk } from '../fact-of-ask.ts';
import type { FindUser } from '../users/find-user.ts';
import { sessionsOfUser } from './open-session.ts';
import { endOf, readSession } from './session-row.ts';
import type { Sessions } from './sessions.ts';

export type UserSessionsOptions = AccountRouteOptions & {
  readonly store: Store;
  readonly findUser: FindUser;
  readonly sessions: Pick<Sessions, 'end' | 'endOfUser'>;
  readonly audit: Pick<Audit, 'entry'>;
  readonly sessionSeconds: number;
  readonly sessionsPerAccountMax: number;
};

export function userSessionResources(options: UserSessionsOptions): readonly Resource[] {
  return [listResource(options), endResource(options)];
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

function listResource(options: UserSessionsOptions): Resource {
  const { base, limits, store, sessionsPerAccountMax } = options;
  return actionResource(
    {
      method: 'GET',
      path: `${base}/${usersTable}/{id}/sessions`,
      ...{ parameters, tag: usersCollection, name: 'UserSessions', noun: 'the sessions of an account' },
      id: 'listUserSessions',
      summary: 'List the sessions of an account',
      description: 'For the account itself and for administrators. The newest comes first.',
      output: {
        schema: pageSchema('Sessions', 'The sessions of an account.', sessionSchema),
        example: { items: [example], nextCursor: null },
      },
      codes: [],
      permission: anyCredential,
      standing: (ask) => standingOf(options, ask),
      mayBeMissing: true,
      handler: async (ask) => {
        const plan = sessionsOfUser(store, ask.captures[0] ?? '', 'desc', sessionsPerAccountMax);
        const { docs } = await plan.page({ from: 'start' });
        const ids = docs.map((doc) => (JSON.parse(doc) as { readonly id: string }).id);
        const rows = await Promise.all(ids.map((id) => store.read(sessionsTable, id)));
        const items = rows.flatMap((row) => (row === undefined ? [] : [shown(options, ask, row)]));
        return { content: { items, nextCursor: null } };
      },
    },
    limits,
  );
}

function shown({ sessionSeconds }: UserSessionsOptions, { known }: Ask, row: Row): typeof example {
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

function endResource(options: UserSessionsOptions): Resource {
  const { base, limits } = options;
  return actionResource(
    {
      path: `${base}/${usersTable}/{id}/sessions/end`,
      ...{ parameters, tag: usersCollection, noun: 'the end of sessions of an account' },
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
      standing: (ask) => standingOf(options, ask),
      mayBeMissing: true,
      handler: (ask, { session }) => end(options, ask, session),
    },
    limits,
  );
}

/** The account of another is hidden, whether it exists or not. */
async function standingOf({ findUser }: UserSessionsOptions, ask: Ask): Promise<Standing> {
  const [id = ''] = ask.captures;
  const { principal, known } = ask;
  const isOwn = principal.kind === 'authenticated' && principal.id === id && known?.scheme !== 'key';
  if (!isOwn && !isAdministrator(principal)) return { exists: true, visible: false, permitted: false };
  return { exists: (await findUser.byId(id)) !== undefined, visible: true, permitted: true };
}

async function end(
  { store, sessions, audit, addressOf }: UserSessionsOptions,
  ask: Ask,
  session: string | undefined,
): Promise<Done> {
  const [user = ''] = ask.captures;
  const all = await sessions.endOfUser(user, ask.known?.session ?? null);
  const ends = session === undefined ? all : await endOne(store, sessions, user, session);
  if (ends.length > 0) {
    const entries = ends.map(({ id }) =>
      audit.entry(factOfAsk(ask, addressOf, { type: 'session.ended', subject: id })),
    );
    const commit = await tryCommit(store, { changes: [...ends, ...entries], events: [] });
    if (commit instanceof Overtaken) return commit;
  }
  return { content: { ended: ends.length } };
}

/** No change for a session that is over, or of another account. */
async function endOne(
  store: Store,
  sessions: UserSessionsOptions['sessions'],
  user: string,
  session: string,
): ReturnType<Sessions['end']> {
  const row = await store.read(sessionsTable, session);
  return row !== undefined && readSession(row).user === user ? sessions.end(session) : [];
}
