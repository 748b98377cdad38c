/** The sessions of an account as a list, and their end (§5.4.6), over the running program. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { base, type Client, openClient, register } from '../../harness/account-client.ts';
import { type RunningServer, startServer } from '../../harness/running-server.ts';

const password = 'correct horse battery staple';

let program: RunningServer;
let client: Client;

before(async () => {
  program = await startServer();
  client = openClient(program.port);
});

after(async () => {
  client?.close();
  await program?.stop();
});

type Session = { readonly id: string; readonly cookie: boolean; readonly current: boolean };

async function person(name: string) {
  const email = `${name}@sessions.example`;
  const { token, userId } = await register(client, email, password);
  const logIn = async () => {
    const answer = await client.ask('POST', `${base}/auth/login`, {
      json: { email, password, cookie: true },
    });
    return bearer(String(answer.json().token));
  };
  return { headers: bearer(token), path: `${base}/users/${userId}/sessions`, logIn };
}

const bearer = (token: string) => ({ Authorization: `Bearer ${token}` });

async function sessionsOf(path: string, headers: Readonly<Record<string, string>>): Promise<Session[]> {
  const answer = await client.ask('GET', path, { headers });
  assert.equal(answer.status, 200, answer.body);
  return (answer.json() as { items: Session[] }).items;
}

const statusOf = async (headers: Readonly<Record<string, string>>) =>
  (await client.ask('GET', `${base}/auth/me`, { headers })).status;

test('lists the sessions of an account for itself and for administrators, without their secrets', async () => {
  const { headers, path, logIn } = await person('ada');
  await logIn();
  const own = await sessionsOf(path, headers);
  assert.deepEqual(
    own.map(({ cookie, current }) => [cookie, current]),
    [
      [true, false],
      [false, true],
    ],
  );
  const answer = await program.send('GET', path);
  assert.equal(answer.status, 200);
  assert.deepEqual(Object.keys((answer.json() as { items: object[] }).items[0] ?? {}), [
    ...['id', 'createdAt', 'seenAt', 'endsAt', 'cookie', 'current'],
  ]);
});

test('ends one session, or all but the one that asks, at once and with an entry in the audit trail', async () => {
  const { headers, path, logIn } = await person('grace');
  const others = [await logIn(), await logIn(), await logIn()];
  const [newest] = await sessionsOf(path, headers);
  const one = await client.ask('POST', `${path}/end`, { headers, json: { session: newest?.id } });
  assert.deepEqual(one.json(), { ended: 1 });
  assert.deepEqual(await Promise.all(others.map(statusOf)), [200, 200, 401]);
  assert.deepEqual((await client.ask('POST', `${path}/end`, { headers })).json(), { ended: 2 });
  assert.deepEqual(await Promise.all([...others, headers].map(statusOf)), [401, 401, 401, 200]);
  const audit = await program.send('GET', `${base}/audit?type=session.ended&subject=${newest?.id}`);
  assert.equal((audit.json() as { items: unknown[] }).items.length, 1);
  assert.deepEqual((await program.send('POST', `${path}/end`)).json(), { ended: 1 }, 'by an administrator');
  assert.equal(await statusOf(headers), 401);
});

test('hides the sessions of an account from other accounts, and from keys', async () => {
  const ada = await person('mira');
  const other = await person('tomas');
  const made = await client.ask('POST', `${base}/keys`, {
    headers: ada.headers,
    json: { name: 'k', kind: 'secret' },
  });
  const key = { 'X-API-Key': String(made.json().key) };
  for (const headers of [other.headers, key]) {
    assert.equal((await client.ask('GET', ada.path, { headers })).status, 404);
    assert.equal((await client.ask('POST', `${ada.path}/end`, { headers })).status, 404);
  }
  assert.equal((await client.ask('GET', ada.path)).status, 401);
  const [mine] = await sessionsOf(ada.path, ada.headers);
  const foreign = await client.ask('POST', `${other.path}/end`, {
    ...{ headers: other.headers, json: { session: mine?.id } },
  });
  assert.deepEqual(foreign.json(), { ended: 0 });
  assert.equal(await statusOf(ada.headers), 200);
  assert.equal((await program.send('GET', `${base}/users/usr_none/sessions`)).status, 404);
});
