/** POST /auth/logout of the running program. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:http2';
import { after, test } from 'node:test';
import {
  asAdministrator,
  base,
  basic,
  bearer,
  login,
  makeKey,
  register,
  serveAccounts,
  setCookies,
  type Tokens,
  tokensOf,
} from '../../harness/account-client.ts';

const { program, client } = await serveAccounts({ env: { COMITY_PASSWORD_MEMORY_KIBIBYTES: '8' } });

const path = `${base}/auth/logout`;
const password = 'correct horse';
const cleared = '__Host-comity_session=; Path=/; Max-Age=0; HttpOnly; Secure; SameSite=Lax';
let accounts = 0;

/** A new account with one session, which has a cookie. */
async function newAccount(): Promise<{ email: string; first: Tokens; tokens: Tokens }> {
  accounts += 1;
  const email = `logout-${accounts}@shop.example`;
  const first = await register(client, email, password);
  return { email, first, tokens: await login(client, email, password, true) };
}

async function statusOf(headers: Readonly<Record<string, string>>): Promise<number> {
  return (await client.ask('GET', `${base}/auth/me`, { headers })).status;
}

async function assertDead({ token, refreshToken, cookie }: Tokens): Promise<void> {
  assert.equal(await statusOf(bearer(token)), 401);
  if (cookie !== '') assert.equal(await statusOf({ Cookie: cookie }), 401);
  const answer = await client.ask('POST', `${base}/auth/refresh`, { json: { refreshToken } });
  assert.equal(answer.status, 401);
}

async function assertAlive({ token, cookie }: Tokens): Promise<void> {
  assert.equal(await statusOf(bearer(token)), 200);
  if (cookie !== '') assert.equal(await statusOf({ Cookie: cookie }), 200);
}

test('by a token ends its session and no other, and leaves cookies alone where none was sent', async () => {
  const { first, tokens } = await newAccount();
  const answer = await client.ask('POST', path, { headers: bearer(tokens.token) });
  assert.equal(answer.status, 204);
  assert.equal(answer.body, '');
  assert.deepEqual(setCookies(answer), []);
  await assertDead(tokens);
  await assertAlive(first);
});

test('by a cookie ends its session with its tokens and makes the browser forget it', async () => {
  const { first, tokens } = await newAccount();
  const answer = await client.ask('POST', path, { headers: { Cookie: tokens.cookie } });
  assert.equal(answer.status, 204);
  assert.deepEqual(setCookies(answer), [cleared]);
  await assertDead(tokens);
  await assertAlive(first);
});

test('by a token beside the cookie of its session clears that, and not the cookie of another session', async () => {
  const { email, tokens } = await newAccount();
  const other = await login(client, email, password, true);
  const kept = await client.ask('POST', path, {
    headers: { ...bearer(tokens.token), Cookie: other.cookie },
  });
  assert.equal(kept.status, 204);
  assert.deepEqual(setCookies(kept), []);
  await assertDead(tokens);
  const answer = await client.ask('POST', path, {
    headers: { ...bearer(other.token), Cookie: `a=b; ${other.cookie}` },
  });
  assert.deepEqual(setCookies(answer), [cleared]);
  await assertDead(other);
});

test('everywhere ends every session of the account and none of another', async () => {
  const { email, first, tokens } = await newAccount();
  const more = await login(client, email, password);
  const { tokens: foreign } = await newAccount();
  const answer = await client.ask('POST', path, {
    json: { everywhere: true },
    headers: bearer(more.token),
  });
  assert.equal(answer.status, 204);
  for (const each of [first, tokens, more]) await assertDead(each);
  await assertAlive(foreign);
});

test('wins or loses against a refresh at the same moment, but nothing is good after both', async () => {
  const { email } = await newAccount();
  for (let round = 0; round < 20; round += 1) {
    const tokens = await login(client, email, password, true);
    const [logout, refresh] = await Promise.all([
      client.ask('POST', path, { headers: bearer(tokens.token), json: { everywhere: round % 2 === 0 } }),
      client.ask('POST', `${base}/auth/refresh`, { json: { refreshToken: tokens.refreshToken } }),
    ]);
    assert.equal(logout.status, 204);
    await assertDead(tokens);
    if (refresh.status === 200) await assertDead(tokensOf(refresh));
    else assert.equal(refresh.status, 401);
  }
});

test('tells a caller without a session that there is nothing to end', async () => {
  const { email, tokens } = await newAccount();
  const { key } = await makeKey(client, bearer(tokens.token));
  for (const headers of [asAdministrator, { 'X-API-Key': key }, bearer(key), basic(email, password)]) {
    const answer = await client.ask('POST', path, { headers });
    assert.equal(answer.status, 403);
    assert.deepEqual(answer.json(), {
      error: 'this credential has no session to end',
      code: 'forbidden',
    });
  }
  await assertAlive(tokens);
});

test('asks for a credential, and refuses one that is over', async () => {
  const anonymous = await client.ask('POST', path);
  assert.equal(anonymous.status, 401);
  assert.equal(anonymous.json().error, 'no token provided');
  const { tokens } = await newAccount();
  assert.equal((await client.ask('POST', path, { headers: bearer(tokens.token) })).status, 204);
  const again = await client.ask('POST', path, { headers: bearer(tokens.token) });
  assert.equal(again.status, 401);
  assert.equal(again.json().error, 'invalid token');
});

test('refuses a cookie-carried logout that another site asks for', async () => {
  const { tokens } = await newAccount();
  const answer = await client.ask('POST', path, {
    headers: { Cookie: tokens.cookie, Origin: 'https://evil.example', 'Sec-Fetch-Site': 'cross-site' },
  });
  assert.equal(answer.status, 403);
  assert.equal(answer.json().code, 'cross_site_request');
  await assertAlive(tokens);
});

test('refuses content that says something else', async () => {
  const { tokens } = await newAccount();
  const headers = bearer(tokens.token);
  for (const json of [{ everywhere: 'yes' }, { all: true }, []]) {
    assert.equal((await client.ask('POST', path, { json, headers })).status, 422);
  }
  await assertAlive(tokens);
});

test('is audited with who and from where', async () => {
  const { tokens } = await newAccount();
  await client.ask('POST', path, { headers: bearer(tokens.token) });
  const list = await client.ask('GET', `${base}/audit?type=session.ended&actor.id=${tokens.userId}`, {
    headers: asAdministrator,
  });
  const { items } = list.json() as { items: { subject: string; address: string }[] };
  assert.equal(items.length, 1);
  assert.match(items[0]?.subject ?? '', /^ses_/);
  assert.equal(items[0]?.address, '127.0.0.1');
});

test('ends event streams of the session before it is answered', async () => {
  const { tokens } = await newAccount();
  const session = connect(`http://127.0.0.1:${program.port}`);
  after(() => session.destroy());
  const order: string[] = [];
  const ask = (fields: Readonly<Record<string, string>>) =>
    session.request({ authorization: `Bearer ${tokens.token}`, ...fields }, { endStream: true });
  const streams = Array.from({ length: 5 }, () => {
    const stream = ask({ ':path': `${base}/events`, accept: 'text/event-stream' });
    stream.on('error', () => undefined).on('close', () => order.push('stream'));
    return stream;
  });
  await Promise.all(streams.map((stream) => once(stream.resume(), 'response')));
  const logout = ask({ ':method': 'POST', ':path': path });
  logout.on('response', ({ ':status': status }) => order.push(String(status)));
  await Promise.all([...streams, logout.resume()].map((stream) => once(stream, 'close')));
  assert.deepEqual(order, ['stream', 'stream', 'stream', 'stream', 'stream', '204']);
});
