/** POST /auth/register of the running program. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { base, bearer, serveAccounts, sessionCookieName, setCookies } from '../../harness/account-client.ts';
import { startServer } from '../../harness/running-server.ts';

const path = `${base}/auth/register`;
const password = 'correct horse';

const { client } = await serveAccounts();

test('makes an account, says where it is, and logs it in', async () => {
  const answer = await client.ask('POST', path, {
    json: { email: 'Ada@Shop.example', password, name: 'Ada' },
  });
  assert.equal(answer.status, 201, answer.body);
  const content = answer.json() as { token: string; user: { id: string; email: string } };
  assert.deepEqual(Object.keys(content), ['token', 'expiresIn', 'refreshToken', 'user']);
  assert.equal(content.user.email, 'ada@shop.example');
  assert.equal(answer.headers.location, `${base}/users/${content.user.id}`);
  assert.equal(answer.headers['cache-control'], 'no-store');
  // The content is no representation of the account: nothing may say that it is.
  assert.equal(answer.headers['content-location'], undefined);
  assert.equal(answer.headers.etag, undefined);
  const account = await client.ask('GET', answer.headers.location ?? '', { headers: bearer(content.token) });
  assert.equal(account.status, 200, account.body);
  const { createdAt, updatedAt, ...fields } = account.json();
  assert.equal(createdAt, updatedAt);
  assert.deepEqual(fields, {
    id: content.user.id,
    email: 'ada@shop.example',
    name: 'Ada',
    emailVerified: false,
    roles: [],
    scopes: ['read', 'write'],
    disabled: false,
  });
});

test('lets the new account write at once, and nobody else see it', async () => {
  const [ada, eve] = await Promise.all(
    ['one', 'two'].map((name) =>
      client.ask('POST', path, { json: { email: `${name}@shop.example`, password } }),
    ),
  );
  const token = String(ada?.json().token);
  const note = await client.ask('POST', `${base}/notes`, { json: { text: 'mine' }, headers: bearer(token) });
  assert.equal(note.status, 201, note.body);
  const location = ada?.headers.location ?? '';
  const foreign = await client.ask('GET', location, { headers: bearer(String(eve?.json().token)) });
  assert.equal(foreign.status, 404);
  assert.equal((await client.ask('GET', location)).status, 401);
});

test('answers 409 for an address that is taken, in any spelling', async () => {
  const first = await client.ask('POST', path, { json: { email: 'taken@shop.example', password } });
  assert.equal(first.status, 201);
  const second = await client.ask('POST', path, { json: { email: ' Taken@SHOP.example', password } });
  assert.equal(second.status, 409);
  assert.deepEqual(second.json(), {
    error: 'email is already in use',
    code: 'unique_taken',
    errors: [{ pointer: '/email', message: 'already in use' }],
  });
});

for (const [what, json, pointers] of [
  ['an address that is none', { email: 'ada', password }, ['/email']],
  ['an address with a header behind it', { email: 'a@b.example\r\nBcc: c@d.example', password }, ['/email']],
  ['a short password', { email: 'short@shop.example', password: '1234567' }, ['/password']],
  ['a password over the bound', { email: 'long@shop.example', password: 'x'.repeat(1025) }, ['/password']],
  [
    'a password with a control character',
    { email: 'ctl@shop.example', password: 'correct\nhorse' },
    ['/password'],
  ],
  ['both', { email: 'ada', password: 'short' }, ['/email', '/password']],
  ['an empty name', { email: 'name@shop.example', password, name: '' }, ['/name']],
  ['a role', { email: 'role@shop.example', password, roles: ['administrator'] }, ['/roles']],
  ['a verified address', { email: 'ver@shop.example', password, emailVerified: true }, ['/emailVerified']],
] as const) {
  test(`answers 422 for ${what}, and makes no account`, async () => {
    const answer = await client.ask('POST', path, { json });
    assert.equal(answer.status, 422, answer.body);
    const { code, errors } = answer.json() as { code: string; errors: readonly { pointer: string }[] };
    assert.equal(code, 'validation_failed');
    assert.deepEqual(
      errors.map(({ pointer }) => pointer),
      pointers,
    );
    assert.ok(!answer.body.includes(json.password));
  });
}

test('answers 400 for what is missing', async () => {
  const answer = await client.ask('POST', path, { json: { email: 'ada@shop.example' } });
  assert.equal(answer.status, 400);
  assert.equal(answer.json().code, 'field_missing');
});

test('makes one account of an address that many ask for at once', async () => {
  const answers = await Promise.all(
    Array.from({ length: 6 }, () =>
      client.ask('POST', path, { json: { email: 'race@shop.example', password } }),
    ),
  );
  assert.deepEqual(answers.map(({ status }) => status).sort(), [201, 409, 409, 409, 409, 409]);
});

test('sets the session cookie where it is asked for, but for no page of another site', async () => {
  const json = { email: 'cookie@shop.example', password, cookie: true };
  const headers = { 'Sec-Fetch-Site': 'cross-site', Origin: 'https://evil.example' };
  const refused = await client.ask('POST', path, { json, headers });
  assert.equal(refused.status, 403);
  assert.equal(refused.json().code, 'cross_site_request');
  const answer = await client.ask('POST', path, { json });
  assert.equal(answer.status, 201, answer.body);
  assert.ok(setCookies(answer)[0]?.startsWith(`${sessionCookieName}=`));
});

test('refuses everybody where registration is closed', async (context) => {
  const closed = await startServer({ env: { COMITY_REGISTRATION: 'closed' } });
  context.after(() => closed.stop());
  const answer = await closed.send('POST', path, { json: { email: 'ada@shop.example', password } });
  assert.equal(answer.status, 403, answer.body);
  assert.deepEqual(answer.json(), { error: 'registration is closed', code: 'forbidden' });
});
