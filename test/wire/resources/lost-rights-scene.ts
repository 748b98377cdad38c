/**
 * A caller who follows events in every way and loses the right to read them while it waits: by its roles, its tenant, its account, its
 * session or its key. What is written once the change was answered must not reach it.
 */
import assert from 'node:assert/strict';
import WebSocket from 'ws';
import {
  asAdministrator,
  base,
  bearer,
  type Client,
  changeUser,
  login,
  makeKey,
  openClient,
  register,
} from '../../harness/account-client.ts';
import { readFeed } from '../../harness/feed-follower.ts';
import { until } from '../../harness/until.ts';

type Headers = Readonly<Record<string, string>>;

/** What ended, and what came until then. */
type Followed = { readonly way: string; readonly ended: Promise<string> };

export type Scene = {
  /** Where rights are changed and documents written. */
  readonly writing: { readonly url: string; readonly port: number };
  /** Where the caller waits. */
  readonly waiting: { readonly url: string; readonly port: number };
};

type Caller = {
  readonly client: Client;
  readonly userId: string;
  readonly email: string;
  readonly session: Headers;
  readonly key: { readonly id: string; readonly headers: Headers };
};

export type Loss = {
  readonly name: string;
  /** The credential that it waits with. */
  readonly by: 'session' | 'key';
  readonly lose: (caller: Caller) => Promise<unknown>;
};

async function removed(client: Client, path: string, headers: Headers): Promise<void> {
  const answer = await client.ask('DELETE', `${base}/${path}`, { headers });
  assert.equal(answer.status, 204, answer.body);
}

const rights = { roles: ['editor'], tenant: 'north' };
const change = (json: Readonly<Record<string, unknown>>) => (caller: Caller) =>
  changeUser(caller.client, caller.userId, json);

export const losses: readonly Loss[] = [
  { name: 'its role is taken', by: 'session', lose: change({ roles: [] }) },
  { name: 'its role is taken, for its key', by: 'key', lose: change({ roles: [] }) },
  { name: 'its account is disabled', by: 'key', lose: change({ disabled: true }) },
  {
    name: 'it moves to another tenant',
    by: 'session',
    lose: change({ ...rights, tenant: 'south', roles: [] }),
  },
  {
    name: 'its key is revoked',
    by: 'key',
    lose: ({ client, key }) => removed(client, `keys/${key.id}`, asAdministrator),
  },
  {
    name: 'its session ends',
    by: 'session',
    lose: ({ client, session }) => client.ask('POST', `${base}/auth/logout`, { headers: session }),
  },
  {
    name: 'it is deleted',
    by: 'session',
    lose: ({ client, userId }) => removed(client, `users/${userId}`, asAdministrator),
  },
];

const password = 'correct horse battery';

/** @param round makes names of its own */
export async function loseRights(
  { writing, waiting }: Scene,
  { by, lose }: Loss,
  round: string,
): Promise<void> {
  const client = openClient(writing.port);
  try {
    const email = `${round}@lost.example`;
    const { userId } = await register(client, email, password);
    await changeUser(client, userId, rights);
    const session = bearer((await login(client, email, password)).token);
    const made = await makeKey(client, session);
    const key = { id: made.id, headers: bearer(made.key) };
    const credential = by === 'key' ? key.headers : session;
    const { nextCursor } = await readFeed(waiting.url, 'after=now', credential);
    const open = await connectionsAt(waiting.port);
    const followed = [
      hold(waiting.url, nextCursor, credential),
      stream(waiting.url, nextCursor, credential),
      await subscribe(waiting.url, nextCursor, credential),
    ];
    await until(async () => (await connectionsAt(waiting.port)) === open + followed.length, 'all are open');
    // Credentials that were judged a moment ago are judged again after a rest.
    await changeUser(client, userId, { ...rights, roles: ['editor', 'guest'] }).catch(() => undefined);
    for (const { ended } of followed) assert.ok(!(await ended).includes(`secret ${round}`));

    const again = [
      hold(waiting.url, nextCursor, credential),
      stream(waiting.url, nextCursor, credential),
      await subscribe(waiting.url, nextCursor, credential),
    ];
    await until(
      async () => (await connectionsAt(waiting.port)) === open + again.length,
      'all are open again',
    );
    await lose({ client, userId, email, session, key });
    await Promise.all(
      ['reports', 'offices'].map(async (path) => {
        const json = { text: `secret ${round}`, ...(path === 'offices' ? { tenantId: 'north' } : {}) };
        const answer = await client.ask('POST', `${base}/${path}`, { json, headers: asAdministrator });
        assert.equal(answer.status, 201, answer.body);
      }),
    );
    for (const { way, ended } of again) assert.ok(!(await ended).includes(`secret ${round}`), way);
  } finally {
    client.close();
  }
}

async function connectionsAt(port: number): Promise<number> {
  const client = openClient(port);
  const answer = await client.ask('GET', `${base}/meta/connections`, { headers: asAdministrator });
  client.close();
  return (answer.json().items as unknown[]).length;
}

function hold(url: string, place: string, headers: Headers): Followed {
  const asked = fetch(`${url}${base}/events?after=${place}`, { headers: { ...headers, Prefer: 'wait=20' } });
  return { way: 'a held page', ended: asked.then((answer) => answer.text()) };
}

function stream(url: string, place: string, headers: Headers): Followed {
  const asked = fetch(`${url}${base}/events?after=${place}`, {
    headers: { ...headers, Accept: 'text/event-stream' },
  });
  return { way: 'a stream', ended: asked.then((answer) => answer.text()) };
}

async function subscribe(url: string, place: string, headers: Headers): Promise<Followed> {
  const socket = new WebSocket(`${url.replace('http', 'ws')}${base}/realtime`, 'comity.v1', { headers });
  let heard = '';
  const isOpen = Promise.withResolvers<void>();
  const ended = new Promise<string>((resolve, reject) => {
    socket.on('error', reject);
    socket.on('close', () => resolve(heard));
    socket.on('message', (data) => {
      heard += String(data);
      isOpen.resolve();
    });
  });
  socket.on('open', () => socket.send(JSON.stringify({ subscribe: ['*'], after: place })));
  await isOpen.promise;
  return { way: 'a WebSocket', ended };
}
