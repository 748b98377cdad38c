/**
 * The life of a session: `/auth/login`, `/auth/me`, `/auth/refresh`, `/auth/logout` and `/auth/password` of the running program, and the
 * sessions of an account as a list (§5.4.6).
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:http2';
import { after, test } from 'node:test';
import {
  type Answer,
  asAdministrator,
  base,
  basic,
  bearer,
  type Client,
  changeUser,
  login,
  makeKey,
  register,
  serveAccounts,
  sessionCookieName,
  setCookies,
  type Tokens,
  tokensOf,
} from '../../harness/account-client.ts';
import { adminKey } from '../../harness/exchange.ts';
import { answered, type Expectation } from '../../harness/expected-answer.ts';
import { scenarios } from '../../harness/scenarios.ts';
import { valuesOf } from '../../harness/values-of.ts';

const env = { COMITY_PASSWORD_MEMORY_KIBIBYTES: '8', COMITY_LOGIN_ATTEMPTS: '0' };
const ada = { email: 'ada@shop.example', password: 'correct horse' };
const challenges = 'Bearer realm="comity", ApiKey realm="comity", Basic realm="comity", charset="UTF-8"';
const noStore = { 'cache-control': 'no-store' };

const { program, client } = await serveAccounts({ env });
const strict = await serveAccounts({ env: { ...env, COMITY_REFRESH_REUSE_SECONDS: '0' } });
await register(client, ada.email, ada.password);
let accounts = 0;

/** A new account with two sessions, of which the second has a cookie. */
async function newAccount(at = client): Promise<{ email: string; first: Tokens; tokens: Tokens }> {
  accounts += 1;
  const email = `account-${accounts}@shop.example`;
  const first = await register(at, email, ada.password);
  return { email, first, tokens: await login(at, email, ada.password, true) };
}

const me = (headers: Readonly<Record<string, string>>, expect: Expectation, at: Client = client) =>
  at.ask('GET', 'auth/me', { headers, expect });
const logIn = (expect: Expectation, json: object = ada, headers = {}) =>
  client.ask('POST', 'auth/login', { json, headers, expect });

test('a login is answered with a token, a refresh token and the account', async () => {
  const fields = { ...noStore, 'content-type': 'application/json', location: undefined, etag: undefined };
  const answer = await logIn({ status: 200, fields, members: { expiresIn: 900 } });
  assert.deepEqual(setCookies(answer), []);
  assert.deepEqual(Object.keys(answer.json()), ['token', 'expiresIn', 'refreshToken', 'user']);
  await me(bearer(answer.json().token), { status: 200, members: { email: ada.email } });
});

test('a login takes a form as it takes JSON', async () => {
  const body = new URLSearchParams({ ...ada, cookie: 'true' }).toString();
  const headers = { 'Content-Type': 'application/x-www-form-urlencoded' };
  const answer = await client.ask('POST', 'auth/login', { body, headers, expect: 200 });
  assert.equal(setCookies(answer).length, 1);
});

test('a login sets a cookie that only this host gets back, over TLS, out of reach of scripts', async () => {
  const [cookie = '', ...others] = setCookies(await logIn(200, { ...ada, cookie: true }));
  assert.deepEqual(others, []);
  const [pair = '', ...attributes] = cookie.split('; ');
  assert.ok(pair.startsWith(`${sessionCookieName}=`));
  const fixed = attributes.filter((attribute) => !attribute.startsWith('Max-Age='));
  assert.deepEqual(fixed.sort(), ['HttpOnly', 'Path=/', 'SameSite=Lax', 'Secure']);
  await me({ Cookie: pair }, 200);
});

test('every login gets a session of its own, whatever cookie came with it', async () => {
  const pairOf = (answer: Answer) => setCookies(answer)[0]?.split(';', 1)[0] ?? '';
  const first = pairOf(await logIn(200, { ...ada, cookie: true }));
  assert.notEqual(pairOf(await logIn(200, { ...ada, cookie: true }, { Cookie: first })), first);
});

for (const [what, headers] of [
  ['a page of another site', { 'Sec-Fetch-Site': 'cross-site', Origin: 'https://evil.example' }],
  ['a page of a sibling host', { 'Sec-Fetch-Site': 'same-site', Origin: 'https://other.example' }],
  ['a page of another origin that an old browser shows', { Origin: 'https://evil.example' }],
  ['a page without an origin', { Origin: 'null' }],
] as const) {
  test(`a login refuses to set a cookie for ${what}`, async () => {
    const answer = await logIn([403, 'cross_site_request'], { ...ada, cookie: true }, headers);
    assert.deepEqual(setCookies(answer), []);
  });
}

test('a login refuses a wrong password and an unknown address in the same words, with every challenge', async () => {
  const refusal: Expectation = {
    status: 401,
    fields: { ...noStore, 'www-authenticate': challenges },
    json: { error: 'invalid credentials', code: 'invalid_credentials' },
  };
  const wrong = await logIn(refusal, { ...ada, password: 'wrong horse' });
  for (const [email, password] of [
    ['nobody@shop.example', ada.password],
    ['no address', ada.password],
    [ada.email, ''],
    [ada.email, 'x'.repeat(10_000)],
    ['', ''],
  ] as const) {
    await logIn({ ...refusal, body: wrong.body }, { email, password });
  }
});

for (const [what, status, json] of [
  ['nothing in it', 400, {}],
  ['no password', 400, { email: ada.email }],
  ['a password that is no text', 422, { ...ada, password: 1 }],
  ['a member that nobody knows', 422, { ...ada, remember: true }],
  ['a list in its place', 422, []],
] as const) {
  test(`a login answers content with ${what} with ${status}`, async () => {
    await logIn({ status, lacks: [ada.password] }, json);
  });
}

const typed = { 'Content-Type': 'application/json' };
const cut = `{"email":"${ada.email}","password":"${ada.password}"`;

scenarios(client.ask, {
  'a login takes the address in any spelling': [
    'POST auth/login',
    { json: { ...ada, email: ' ADA@Shop.Example ' }, expect: 200 },
  ],
  'a login refuses broken JSON without repeating it': [
    'POST auth/login',
    { body: cut, headers: typed, expect: { status: 400, lacks: [ada.password] } },
  ],
});

test('a login is neither replayed for an Idempotency-Key nor put off', async () => {
  const headers = { 'Idempotency-Key': '"one"', Prefer: 'respond-async' };
  const answers = [await logIn(200, ada, headers), await logIn(200, ada, headers)];
  const [one, other] = answers.map((answer) => answer.json().refreshToken);
  assert.notEqual(one, other);
});

test('a login answers a method other than POST with what is allowed', async () => {
  const answer = await client.ask('GET', 'auth/login', { expect: 405 });
  assert.deepEqual(answer.headers.allow?.split(', ').sort(), ['OPTIONS', 'POST']);
});

test('the program logs nothing of a login but that it was', () => {
  for (const text of [program.stdout(), program.stderr()]) {
    assert.ok(!text.includes(ada.password) && !text.includes(ada.email));
  }
});

test('the sixth attempt after five failures is answered with 429, on every carrier, for the account and for the address', async () => {
  const { client: limited } = await serveAccounts({ env: { COMITY_BEHIND_PROXY: 'on' } });
  const eve = { email: 'eve@shop.example', password: 'battery staple' };
  for (const { email, password } of [ada, eve]) await register(limited, email, password);
  const attempt = (address: string, json: object, expect: Expectation) =>
    limited.ask('POST', 'auth/login', { json, headers: { 'X-Forwarded-For': address }, expect });
  const attemptBasic = (address: string, password: string, expect: Expectation) => {
    const headers = { 'X-Forwarded-For': address, ...basic(ada.email, password) };
    return limited.ask('GET', 'products', { headers, expect });
  };
  for (let at = 0; at < 3; at += 1) await attempt('192.0.2.1', { ...ada, password: 'wrong horse' }, 401);
  for (let at = 0; at < 2; at += 1) await attemptBasic('192.0.2.1', 'wrong horse', 401);
  const fields = { 'ratelimit-policy': '"login";q=5;w=900', 'x-ratelimit-remaining': '0' };
  const refusal: Expectation = { status: 429, code: 'rate_limited', fields };
  for (const { headers } of [
    await attempt('192.0.2.2', ada, refusal),
    await attempt('192.0.2.1', eve, refusal),
    await attemptBasic('192.0.2.3', ada.password, refusal),
  ]) {
    const seconds = Number(headers['retry-after']);
    assert.ok(seconds >= 1 && seconds <= 1800, String(seconds));
    assert.equal(headers.ratelimit, `"login";r=0;t=${seconds}`);
  }
  await attempt('192.0.2.2', eve, 200);
});

test('eight at once are logged in from one address with the default limit', async () => {
  const { client: limited } = await serveAccounts();
  await register(limited, ada.email, ada.password);
  const json = ada;
  await Promise.all(
    Array.from({ length: 8 }, () => limited.ask('POST', 'auth/login', { json, expect: 200 })),
  );
});

test('/auth/me says the same of an account by whatever credential it came, and by which', async () => {
  const account = { email: 'me@shop.example', password: ada.password };
  const made = await client.ask('POST', 'auth/register', { json: { ...account, name: 'Ada' } });
  const { id } = made.json().user;
  await changeUser(client, id, { roles: ['clerk'], tenant: 'north' });
  const { token, cookie } = await login(client, account.email, account.password, true);
  const { key } = await makeKey(client, bearer(token));
  const person = { id, kind: 'user', email: account.email, name: 'Ada', roles: ['clerk'] };
  const expected = { ...person, scopes: ['read', 'write'], tenant: 'north' };
  for (const [headers, authenticatedBy] of [
    [bearer(token), 'token'],
    [{ Cookie: cookie }, 'session-cookie'],
    [basic(account.email, account.password), 'password'],
    [{ 'X-API-Key': key }, 'key'],
  ] as const) {
    await me(headers, { status: 200, json: { ...expected, authenticatedBy } });
  }
});

test('/auth/me says who the administrator key and the keys that it makes are', async () => {
  const shared = { tenant: null, authenticatedBy: 'key' };
  const scopes = ['read', 'write', 'webhooks', 'tunnel', 'admin'];
  const administrator = { id: 'administrator', kind: 'administrator', roles: ['administrator'], scopes };
  await me(asAdministrator, { status: 200, json: { ...administrator, ...shared } });
  const { id, key } = await makeKey(client, asAdministrator, { scopes: ['read'] });
  await me(bearer(key), { status: 200, json: { id, kind: 'key', roles: [], scopes: ['read'], ...shared } });
});

scenarios(client.ask, {
  '/auth/me is kept by nobody on the way, has no validators, and is never 304': [
    'GET auth/me',
    {
      as: adminKey,
      headers: { 'If-None-Match': '*' },
      expect: {
        status: 200,
        fields: { 'cache-control': 'private, no-store', etag: undefined, 'last-modified': undefined },
      },
    },
  ],
  '/auth/me tells nobody who they are, with every scheme that would be accepted': [
    [
      'GET auth/me',
      {
        expect: {
          status: 401,
          json: { error: 'no token provided', code: 'no_token_provided' },
          fields: { 'www-authenticate': challenges },
        },
      },
    ],
    ['POST auth/me', { as: adminKey, expect: 405 }],
    ['HEAD auth/me', { as: adminKey, expect: { status: 200, body: '' } }],
  ],
});

const invalid: Expectation = {
  status: 401,
  json: { error: 'invalid token', code: 'invalid_token' },
  fields: { ...noStore, 'www-authenticate': /^Bearer .*error="invalid_token".*Basic/ },
};

const refresh = (refreshToken: unknown, expect: Expectation, at: Client = client, headers = {}) =>
  at.ask('POST', 'auth/refresh', { json: { refreshToken }, headers, expect });

test('a refresh gives the next refresh token and a new access token, and caches may not store the answer', async () => {
  const { first } = await newAccount();
  const expected = { status: 200, fields: noStore, members: { expiresIn: 900 } };
  const answer = await refresh(first.refreshToken, expected);
  assert.deepEqual(Object.keys(answer.json()), ['token', 'expiresIn', 'refreshToken', 'user']);
  const second = tokensOf(answer);
  assert.equal(second.userId, first.userId);
  assert.notEqual(second.refreshToken, first.refreshToken);
  assert.notEqual(second.token, first.token);
  await me(bearer(second.token), 200);
  await refresh(second.refreshToken, 200);
});

test('a refresh token that is used again ends its session, and the other sessions of the account go on', async () => {
  const at = strict.client;
  const { first, tokens: other } = await newAccount(at);
  const second = tokensOf(await refresh(first.refreshToken, 200, at));
  await refresh(first.refreshToken, invalid, at);
  await refresh(second.refreshToken, invalid, at);
  for (const { token } of [first, second]) await me(bearer(token), 401, at);
  await me(bearer(other.token), 200, at);
  await refresh(other.refreshToken, 200, at);
});

test('of two refreshes at once one is answered and the session ends, where no reuse is allowed', async () => {
  const at = strict.client;
  const { refreshToken, token } = (await newAccount(at)).first;
  const json = { refreshToken };
  const answers = await Promise.all([1, 2].map(() => at.ask('POST', 'auth/refresh', { json })));
  assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 401]);
  await me(bearer(token), 401, at);
});

test('a refresh token that was just exchanged is answered with the same pair, which logout ends', async () => {
  const { refreshToken } = (await newAccount()).first;
  const answers = await Promise.all(Array.from({ length: 5 }, () => refresh(refreshToken, 200)));
  const [first] = answers.map(tokensOf);
  for (const answer of answers) assert.deepEqual(tokensOf(answer), first);
  await client.ask('POST', 'auth/logout', { as: String(first?.token), expect: 204 });
  await refresh(refreshToken, invalid);
});

test('a refresh answers a repeated Idempotency-Key with the same pair, also where no reuse is allowed', async () => {
  const at = strict.client;
  const { refreshToken } = (await newAccount(at)).first;
  const headers = { 'Idempotency-Key': '"again"' };
  await refresh(refreshToken, 400, at, { 'Idempotency-Key': '"' });
  const first = tokensOf(await refresh(refreshToken, 200, at, headers));
  assert.deepEqual(tokensOf(await refresh(refreshToken, 200, at, headers)), first);
  await refresh(refreshToken, invalid, at, { 'Idempotency-Key': '"other"' });
  await me(bearer(first.token), 401, at);
});

test('a refresh refuses what is no refresh token with the same 401, and an access token among it', async () => {
  const { refreshToken, token } = (await newAccount()).first;
  const short = refreshToken.slice(0, -1);
  for (const text of ['', 'x', token, short, `${refreshToken}x`, ` ${refreshToken}`, 'rt_'.repeat(50_000)]) {
    await refresh(text, invalid);
  }
  await refresh(refreshToken, 200);
});

scenarios(client.ask, {
  'a refresh tells a body that is missing, malformed or of the wrong type by its own status': [
    ['POST auth/refresh', { expect: 400 }],
    ['POST auth/refresh', { json: {}, expect: 400 }],
    ['POST auth/refresh', { json: { refreshToken: 7 }, expect: 422 }],
    ['POST auth/refresh', { json: { refreshToken: 'x', more: 1 }, expect: 422 }],
    ['POST auth/refresh', { json: { refreshToken: 'x\u0000' }, expect: 422 }],
    ['POST auth/refresh', { body: 'x', headers: { 'Content-Type': 'text/plain' }, expect: 415 }],
    ['GET auth/refresh', { expect: 405 }],
  ],
});

const cleared = '__Host-comity_session=; Path=/; Max-Age=0; HttpOnly; Secure; SameSite=Lax';

const logOut = (headers: Readonly<Record<string, string>>, expect: Expectation, json?: unknown) =>
  client.ask('POST', 'auth/logout', { headers, json, expect });

async function assertDead({ token, refreshToken, cookie }: Tokens): Promise<void> {
  await me(bearer(token), 401);
  if (cookie !== '') await me({ Cookie: cookie }, 401);
  await refresh(refreshToken, 401);
}

async function assertAlive({ token, cookie }: Tokens): Promise<void> {
  await me(bearer(token), 200);
  if (cookie !== '') await me({ Cookie: cookie }, 200);
}

test('a logout by a token ends its session and no other, and leaves cookies alone where none was sent', async () => {
  const { first, tokens } = await newAccount();
  assert.deepEqual(setCookies(await logOut(bearer(tokens.token), { status: 204, body: '' })), []);
  await assertDead(tokens);
  await assertAlive(first);
});

test('a logout by a cookie ends its session with its tokens and makes the browser forget it', async () => {
  const { first, tokens } = await newAccount();
  assert.deepEqual(setCookies(await logOut({ Cookie: tokens.cookie }, 204)), [cleared]);
  await assertDead(tokens);
  await assertAlive(first);
});

test('a logout by a token beside the cookie of its session clears that, and not the cookie of another session', async () => {
  const { email, tokens } = await newAccount();
  const other = await login(client, email, ada.password, true);
  const kept = await logOut({ ...bearer(tokens.token), Cookie: other.cookie }, 204);
  assert.deepEqual(setCookies(kept), []);
  await assertDead(tokens);
  const answer = await logOut({ ...bearer(other.token), Cookie: `a=b; ${other.cookie}` }, 204);
  assert.deepEqual(setCookies(answer), [cleared]);
  await assertDead(other);
});

test('a logout everywhere ends every session of the account and none of another', async () => {
  const { email, first, tokens } = await newAccount();
  const more = await login(client, email, ada.password);
  const { tokens: foreign } = await newAccount();
  await logOut(bearer(more.token), 204, { everywhere: true });
  for (const each of [first, tokens, more]) await assertDead(each);
  await assertAlive(foreign);
});

test('a logout wins or loses against a refresh at the same moment, but nothing is good after both', async () => {
  const { email } = await newAccount();
  for (let round = 0; round < 20; round += 1) {
    const tokens = await login(client, email, ada.password, true);
    const [, refreshed] = await Promise.all([
      logOut(bearer(tokens.token), 204, { everywhere: round % 2 === 0 }),
      client.ask('POST', 'auth/refresh', { json: { refreshToken: tokens.refreshToken } }),
    ]);
    await assertDead(tokens);
    if (refreshed.status === 200) await assertDead(tokensOf(refreshed));
    else assert.equal(refreshed.status, 401);
  }
});

test('a logout tells a caller without a session that there is nothing to end', async () => {
  const { email, tokens } = await newAccount();
  const { key } = await makeKey(client, bearer(tokens.token));
  const json = { error: 'this credential has no session to end', code: 'forbidden' };
  for (const headers of [asAdministrator, { 'X-API-Key': key }, bearer(key), basic(email, ada.password)]) {
    await logOut(headers, { status: 403, json });
  }
  await assertAlive(tokens);
});

test('a logout asks for a credential, and refuses one that is over', async () => {
  await logOut({}, { status: 401, error: 'no token provided' });
  const { tokens } = await newAccount();
  await logOut(bearer(tokens.token), 204);
  await logOut(bearer(tokens.token), { status: 401, error: 'invalid token' });
});

test('a logout by a cookie is refused if another site asks for it', async () => {
  const { tokens } = await newAccount();
  const site = { Origin: 'https://evil.example', 'Sec-Fetch-Site': 'cross-site' };
  await logOut({ Cookie: tokens.cookie, ...site }, [403, 'cross_site_request']);
  await assertAlive(tokens);
});

test('a logout refuses content that says something else', async () => {
  const { tokens } = await newAccount();
  for (const json of [{ everywhere: 'yes' }, { all: true }, []])
    await logOut(bearer(tokens.token), 422, json);
  await assertAlive(tokens);
});

test('a logout is audited with who and from where', async () => {
  const { tokens } = await newAccount();
  await logOut(bearer(tokens.token), 204);
  const path = `audit?type=session.ended&actor.id=${tokens.userId}`;
  const { items } = (await client.ask('GET', path, { as: adminKey })).json();
  assert.equal(items.length, 1);
  assert.match(items[0].subject, /^ses_/);
  assert.equal(items[0].address, '127.0.0.1');
});

test('a logout ends event streams of the session before it is answered', async () => {
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
  const logout = ask({ ':method': 'POST', ':path': `${base}/auth/logout` });
  logout.on('response', ({ ':status': status }) => order.push(String(status)));
  await Promise.all([...streams, logout.resume()].map((stream) => once(stream, 'close')));
  assert.deepEqual(order, ['stream', 'stream', 'stream', 'stream', 'stream', '204']);
});

const newPassword = 'battery staple';

const changePassword = (headers: Readonly<Record<string, string>>, expect: Expectation, json = {}) =>
  client.ask('POST', 'auth/password', {
    json: { currentPassword: ada.password, newPassword, ...json },
    headers,
    expect,
  });

test('a change of the password ends every other session at once and keeps the one that asked', async () => {
  const { email, first, tokens: other } = await newAccount();
  await changePassword(bearer(first.token), { status: 204, body: '' });
  await me(bearer(first.token), 200);
  await assertDead(other);
  await me(basic(email, ada.password), 401);
  await me(basic(email, newPassword), 200);
});

test('a change of the password takes a session cookie and Basic as it takes a token', async () => {
  const { email, tokens } = await newAccount();
  await changePassword({ Cookie: tokens.cookie }, 204);
  await me({ Cookie: tokens.cookie }, 200);
  const back = { currentPassword: newPassword, newPassword: ada.password };
  await changePassword(basic(email, newPassword), 204, back);
  // Basic belongs to no session, so none is kept.
  await me({ Cookie: tokens.cookie }, 401);
});

test('a change of the password refuses a wrong current password with 401', async () => {
  const { token } = (await newAccount()).first;
  const refusal = { status: 401, error: 'invalid credentials' };
  await changePassword(bearer(token), refusal, { currentPassword: 'wrong horse' });
  await me(bearer(token), 200);
});

test('a change of the password refuses a new password that may not be, with 422 and where it stands', async () => {
  const { token } = (await newAccount()).first;
  const errors = [{ pointer: '/newPassword', message: 'must be at least 8 characters long' }];
  await changePassword(bearer(token), { status: 422, members: { errors } }, { newPassword: 'short' });
});

test('a change of the password refuses who is not known with 401, and a key with 403', async () => {
  const { token } = (await newAccount()).first;
  await changePassword({}, 401);
  const { key } = await makeKey(client, bearer(token));
  const error =
    'this credential cannot change a password; use a session or the current password of the account';
  for (const headers of [{ 'X-API-Key': key }, asAdministrator]) {
    await changePassword(headers, { status: 403, error });
  }
});

test('a change of the password refuses a page of another site that makes a browser send the cookie', async () => {
  const { tokens } = await newAccount();
  const site = { 'Sec-Fetch-Site': 'cross-site', Origin: 'https://evil.example' };
  await changePassword({ Cookie: tokens.cookie, ...site }, [403, 'cross_site_request']);
});

async function person(name: string) {
  const email = `${name}@sessions.example`;
  const { token, userId } = await register(client, email, ada.password);
  const logIn = async () => bearer((await login(client, email, ada.password, true)).token);
  return { headers: bearer(token), path: `users/${userId}/sessions`, logIn };
}

const sessionsOf = async (path: string, headers: Readonly<Record<string, string>>) =>
  (await client.ask('GET', path, { headers, expect: 200 })).json().items;

const statusOf = async (headers: Readonly<Record<string, string>>) =>
  (await client.ask('GET', 'auth/me', { headers })).status;

test('an account and administrators list the sessions of the account, without their secrets', async () => {
  const { headers, path, logIn } = await person('ada');
  await logIn();
  const own = await sessionsOf(path, headers);
  assert.deepEqual(valuesOf(own, 'cookie', 'current'), [
    [true, false],
    [false, true],
  ]);
  const [shown] = await sessionsOf(path, asAdministrator);
  assert.deepEqual(Object.keys(shown), ['id', 'createdAt', 'seenAt', 'endsAt', 'cookie', 'current']);
});

test('an account ends one session, or all but the one that asks, at once and with an entry in the audit trail', async () => {
  const { headers, path, logIn } = await person('grace');
  const others = [await logIn(), await logIn(), await logIn()];
  const [newest] = await sessionsOf(path, headers);
  const end = (json?: unknown, as = headers) => client.ask('POST', `${path}/end`, { headers: as, json });
  await answered(end({ session: newest.id }), { status: 200, json: { ended: 1 } });
  assert.deepEqual(await Promise.all(others.map(statusOf)), [200, 200, 401]);
  await answered(end(), { status: 200, json: { ended: 2 } });
  assert.deepEqual(await Promise.all([...others, headers].map(statusOf)), [401, 401, 401, 200]);
  const audit = await client.ask('GET', `audit?type=session.ended&subject=${newest.id}`, { as: adminKey });
  assert.equal(audit.json().items.length, 1);
  await answered(end(undefined, asAdministrator), { status: 200, json: { ended: 1 } });
  await me(headers, 401);
});

test('the sessions of an account are hidden from other accounts, and from keys', async () => {
  const mira = await person('mira');
  const other = await person('tomas');
  const { key } = await makeKey(client, mira.headers);
  for (const headers of [other.headers, { 'X-API-Key': key }]) {
    await client.ask('GET', mira.path, { headers, expect: 404 });
    await client.ask('POST', `${mira.path}/end`, { headers, expect: 404 });
  }
  await client.ask('GET', mira.path, { expect: 401 });
  const [mine] = await sessionsOf(mira.path, mira.headers);
  const foreign = { headers: other.headers, json: { session: mine.id } };
  await client.ask('POST', `${other.path}/end`, { ...foreign, expect: { status: 200, json: { ended: 0 } } });
  await me(mira.headers, 200);
  await client.ask('GET', 'users/usr_none/sessions', { as: adminKey, expect: 404 });
});
