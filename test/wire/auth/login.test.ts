/** POST /auth/login of the running program. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type Answer,
  base,
  basic,
  bearer,
  openClient,
  register,
  serveAccounts,
  sessionCookieName,
  setCookies,
} from '../../harness/account-client.ts';
import { startServer } from '../../harness/running-server.ts';

const ada = { email: 'ada@shop.example', password: 'correct horse' };
const path = `${base}/auth/login`;
const challenges = 'Bearer realm="comity", ApiKey realm="comity", Basic realm="comity", charset="UTF-8"';

const { program, client } = await serveAccounts({ env: { COMITY_LOGIN_ATTEMPTS: '0' } });
await register(client, ada.email, ada.password);

test('answers a login with a token, a refresh token and the account', async () => {
  const answer = await client.ask('POST', path, { json: ada });
  assert.equal(answer.status, 200, answer.body);
  assert.equal(answer.headers['cache-control'], 'no-store');
  assert.equal(answer.headers['content-type'], 'application/json');
  assert.equal(answer.headers.location, undefined);
  assert.equal(answer.headers.etag, undefined);
  assert.deepEqual(setCookies(answer), []);
  const content = answer.json();
  assert.deepEqual(Object.keys(content), ['token', 'expiresIn', 'refreshToken', 'user']);
  assert.equal(content.expiresIn, 900);
  const me = await client.ask('GET', `${base}/auth/me`, { headers: bearer(String(content.token)) });
  assert.equal(me.status, 200);
  assert.equal(me.json().email, ada.email);
});

test('takes a form as it takes JSON', async () => {
  const answer = await client.ask('POST', path, {
    body: new URLSearchParams({ ...ada, cookie: 'true' }).toString(),
    headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
  });
  assert.equal(answer.status, 200, answer.body);
  assert.equal(setCookies(answer).length, 1);
});

test('sets a cookie that only this host gets back, over TLS, out of reach of scripts', async () => {
  const answer = await client.ask('POST', path, { json: { ...ada, cookie: true } });
  assert.equal(answer.status, 200, answer.body);
  const [cookie = '', ...others] = setCookies(answer);
  assert.deepEqual(others, []);
  const [pair = '', ...attributes] = cookie.split('; ');
  assert.ok(pair.startsWith(`${sessionCookieName}=`));
  assert.deepEqual(attributes.filter((attribute) => !attribute.startsWith('Max-Age=')).sort(), [
    'HttpOnly',
    'Path=/',
    'SameSite=Lax',
    'Secure',
  ]);
  const me = await client.ask('GET', `${base}/auth/me`, { headers: { Cookie: pair } });
  assert.equal(me.status, 200, me.body);
});

test('gives every login a session of its own, whatever cookie came with it', async () => {
  const first = setCookies(await client.ask('POST', path, { json: { ...ada, cookie: true } }))[0] ?? '';
  const pair = first.split(';', 1)[0] ?? '';
  const second = await client.ask('POST', path, {
    json: { ...ada, cookie: true },
    headers: { Cookie: pair },
  });
  assert.equal(second.status, 200, second.body);
  assert.notEqual(setCookies(second)[0]?.split(';', 1)[0], pair);
});

for (const [what, headers] of [
  ['a page of another site', { 'Sec-Fetch-Site': 'cross-site', Origin: 'https://evil.example' }],
  ['a page of a sibling host', { 'Sec-Fetch-Site': 'same-site', Origin: 'https://other.example' }],
  ['a page of another origin that an old browser shows', { Origin: 'https://evil.example' }],
  ['a page without an origin', { Origin: 'null' }],
] as const) {
  test(`refuses to set a cookie for ${what}`, async () => {
    const answer = await client.ask('POST', path, { json: { ...ada, cookie: true }, headers });
    assert.equal(answer.status, 403, answer.body);
    assert.equal(answer.json().code, 'cross_site_request');
    assert.deepEqual(setCookies(answer), []);
  });
}

async function refusal(email: string, password: string): Promise<Answer> {
  const answer = await client.ask('POST', path, { json: { email, password } });
  assert.equal(answer.status, 401, answer.body);
  return answer;
}

test('refuses a wrong password and an unknown address in the same words, with every challenge', async () => {
  const wrong = await refusal(ada.email, 'wrong horse');
  assert.deepEqual(wrong.json(), { error: 'invalid credentials', code: 'invalid_credentials' });
  assert.equal(wrong.headers['www-authenticate'], challenges);
  assert.equal(wrong.headers['cache-control'], 'no-store');
  for (const [email, password] of [
    ['nobody@shop.example', ada.password],
    ['no address', ada.password],
    [ada.email, ''],
    [ada.email, 'x'.repeat(10_000)],
    ['', ''],
  ] as const) {
    const answer = await refusal(email, password);
    assert.equal(answer.body, wrong.body, email);
    assert.equal(answer.headers['www-authenticate'], challenges);
  }
});

test('takes the address in any spelling', async () => {
  const answer = await client.ask('POST', path, { json: { ...ada, email: ' ADA@Shop.Example ' } });
  assert.equal(answer.status, 200, answer.body);
});

for (const [what, status, json] of [
  ['nothing in it', 400, {}],
  ['no password', 400, { email: ada.email }],
  ['a password that is no text', 422, { ...ada, password: 1 }],
  ['a member that nobody knows', 422, { ...ada, remember: true }],
  ['a list in its place', 422, []],
] as const) {
  test(`answers content with ${what} with ${status}`, async () => {
    const answer = await client.ask('POST', path, { json });
    assert.equal(answer.status, status, answer.body);
    assert.ok(!answer.body.includes(ada.password));
  });
}

test('refuses broken JSON without repeating it', async () => {
  const answer = await client.ask('POST', path, {
    body: `{"email":"${ada.email}","password":"${ada.password}"`,
    headers: { 'Content-Type': 'application/json' },
  });
  assert.equal(answer.status, 400);
  assert.ok(!answer.body.includes(ada.password));
});

test('neither replays a login for an Idempotency-Key nor puts it off', async () => {
  const headers = { 'Idempotency-Key': '"one"', Prefer: 'respond-async' };
  const answers = [
    await client.ask('POST', path, { json: ada, headers }),
    await client.ask('POST', path, { json: ada, headers }),
  ];
  const tokens = answers.map((answer) => {
    assert.equal(answer.status, 200, answer.body);
    return answer.json().refreshToken;
  });
  assert.notEqual(tokens[0], tokens[1]);
});

test('answers a method other than POST with what is allowed', async () => {
  const answer = await client.ask('GET', path);
  assert.equal(answer.status, 405);
  assert.deepEqual(answer.headers.allow?.split(', ').sort(), ['OPTIONS', 'POST']);
});

test('logs nothing of a login but that it was', () => {
  for (const text of [program.stdout(), program.stderr()]) {
    assert.ok(!text.includes(ada.password) && !text.includes(ada.email));
  }
});

test('answers the sixth attempt after five failures with 429, on every carrier, for the account and for the address', async (context) => {
  const limited = await startServer({ env: { COMITY_BEHIND_PROXY: 'on' } });
  context.after(() => limited.stop());
  const other = openClient(limited.port);
  context.after(() => other.close());
  await register(other, ada.email, ada.password);
  await register(other, 'eve@shop.example', 'battery staple');
  const from = (address: string) => ({ 'X-Forwarded-For': address });
  const failing = { ...ada, password: 'wrong horse' };
  for (let at = 0; at < 3; at += 1) {
    const answer = await other.ask('POST', path, { json: failing, headers: from('192.0.2.1') });
    assert.equal(answer.status, 401);
  }
  for (let at = 0; at < 2; at += 1) {
    const headers = { ...from('192.0.2.1'), ...basic(ada.email, 'wrong horse') };
    assert.equal((await other.ask('GET', `${base}/products`, { headers })).status, 401);
  }
  const byAccount = await other.ask('POST', path, { json: ada, headers: from('192.0.2.2') });
  const byAddress = await other.ask('POST', path, {
    json: { email: 'eve@shop.example', password: 'battery staple' },
    headers: from('192.0.2.1'),
  });
  const byBasic = await other.ask('GET', `${base}/products`, {
    headers: { ...from('192.0.2.3'), ...basic(ada.email, ada.password) },
  });
  for (const answer of [byAccount, byAddress, byBasic]) {
    assert.equal(answer.status, 429, answer.body);
    assert.equal(answer.json().code, 'rate_limited');
    assert.equal(answer.headers['ratelimit-policy'], '"login";q=5;w=900');
    assert.equal(answer.headers['x-ratelimit-remaining'], '0');
    const seconds = Number(answer.headers['retry-after']);
    assert.ok(seconds >= 1 && seconds <= 1800, String(seconds));
    assert.equal(answer.headers.ratelimit, `"login";r=0;t=${seconds}`);
  }
  const elsewhere = await other.ask('POST', path, {
    json: { email: 'eve@shop.example', password: 'battery staple' },
    headers: from('192.0.2.2'),
  });
  assert.equal(elsewhere.status, 200, elsewhere.body);
});

test('logs eight in at once from one address with the default limit', async (context) => {
  const limited = await startServer();
  context.after(() => limited.stop());
  const other = openClient(limited.port);
  context.after(() => other.close());
  await register(other, ada.email, ada.password);
  const answers = await Promise.all(Array.from({ length: 8 }, () => other.ask('POST', path, { json: ada })));
  assert.deepEqual(
    answers.map(({ status }) => status),
    Array.from({ length: 8 }, () => 200),
  );
});
