/** GET /auth/me of the running program. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  asAdministrator,
  base,
  basic,
  bearer,
  changeUser,
  login,
  makeKey,
  serveAccounts,
} from '../../harness/account-client.ts';

const { client } = await serveAccounts({ env: { COMITY_PASSWORD_MEMORY_KIBIBYTES: '8' } });

const path = `${base}/auth/me`;
const email = 'ada@shop.example';
const password = 'correct horse';

function ask(headers: Readonly<Record<string, string>> = {}) {
  return client.ask('GET', path, { headers });
}

test('says the same of an account by whatever credential it came, and by which', async () => {
  const made = await client.ask('POST', `${base}/auth/register`, {
    json: { email, password, name: 'Ada' },
  });
  const { user } = made.json() as { user: { id: string } };
  await changeUser(client, user.id, { roles: ['clerk'], tenant: 'north' });
  const { token, cookie } = await login(client, email, password, true);
  const { key } = await makeKey(client, bearer(token));
  const expected = {
    id: user.id,
    kind: 'user',
    email,
    name: 'Ada',
    roles: ['clerk'],
    scopes: ['read', 'write'],
    tenant: 'north',
  };
  for (const [headers, authenticatedBy] of [
    [bearer(token), 'token'],
    [{ Cookie: cookie }, 'session-cookie'],
    [basic(email, password), 'password'],
    [{ 'X-API-Key': key }, 'key'],
  ] as const) {
    const answer = await ask(headers);
    assert.equal(answer.status, 200);
    assert.deepEqual(answer.json(), { ...expected, authenticatedBy });
  }
});

test('says who the administrator key and the keys that it makes are', async () => {
  assert.deepEqual((await ask(asAdministrator)).json(), {
    id: 'administrator',
    kind: 'administrator',
    roles: ['administrator'],
    scopes: ['read', 'write', 'webhooks', 'tunnel', 'admin'],
    tenant: null,
    authenticatedBy: 'key',
  });
  const { id, key } = await makeKey(client, asAdministrator, { scopes: ['read'] });
  assert.deepEqual((await ask(bearer(key))).json(), {
    id,
    kind: 'key',
    roles: [],
    scopes: ['read'],
    tenant: null,
    authenticatedBy: 'key',
  });
});

test('is kept by nobody on the way, has no validators, and is never 304', async () => {
  const answer = await ask({ ...asAdministrator, 'If-None-Match': '*' });
  assert.equal(answer.status, 200);
  assert.equal(answer.headers['cache-control'], 'private, no-store');
  assert.equal(answer.headers.etag, undefined);
  assert.equal(answer.headers['last-modified'], undefined);
});

test('tells nobody who they are, with every scheme that would be accepted', async () => {
  const answer = await ask();
  assert.equal(answer.status, 401);
  assert.deepEqual(answer.json(), { error: 'no token provided', code: 'no_token_provided' });
  assert.equal(
    answer.headers['www-authenticate'],
    'Bearer realm="comity", ApiKey realm="comity", Basic realm="comity", charset="UTF-8"',
  );
  assert.equal((await client.ask('POST', path, { headers: asAdministrator })).status, 405);
  const head = await client.ask('HEAD', path, { headers: asAdministrator });
  assert.equal(head.status, 200);
  assert.equal(head.body, '');
});
