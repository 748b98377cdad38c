/** POST /auth/password of the running program. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  asAdministrator,
  base,
  basic,
  bearer,
  login,
  makeKey,
  register,
  serveAccounts,
} from '../../harness/account-client.ts';

const path = `${base}/auth/password`;
const password = 'correct horse';
const newPassword = 'battery staple';
let count = 0;

const { client } = await serveAccounts({ env: { COMITY_LOGIN_ATTEMPTS: '0' } });

async function newcomer() {
  count += 1;
  const email = `user${count}@shop.example`;
  return { email, ...(await register(client, email, password)) };
}

const statusOf = async (headers: Readonly<Record<string, string>>): Promise<number> =>
  (await client.ask('GET', `${base}/auth/me`, { headers })).status;

test('changes the password, ends every other session at once and keeps the one that asked', async () => {
  const { email, token } = await newcomer();
  const other = await login(client, email, password, true);
  const json = { currentPassword: password, newPassword };
  const answer = await client.ask('POST', path, { json, headers: bearer(token) });
  assert.equal(answer.status, 204, answer.body);
  assert.equal(answer.body, '');
  assert.equal(await statusOf(bearer(token)), 200);
  assert.equal(await statusOf(bearer(other.token)), 401);
  assert.equal(await statusOf({ Cookie: other.cookie }), 401);
  assert.equal(await statusOf(basic(email, password)), 401);
  assert.equal(await statusOf(basic(email, newPassword)), 200);
  const refreshed = await client.ask('POST', `${base}/auth/refresh`, {
    json: { refreshToken: other.refreshToken },
  });
  assert.equal(refreshed.status, 401);
});

test('takes a session cookie and Basic as it takes a token', async () => {
  const { email } = await newcomer();
  const { cookie } = await login(client, email, password, true);
  const byCookie = await client.ask('POST', path, {
    json: { currentPassword: password, newPassword },
    headers: { Cookie: cookie },
  });
  assert.equal(byCookie.status, 204, byCookie.body);
  assert.equal(await statusOf({ Cookie: cookie }), 200);
  const byBasic = await client.ask('POST', path, {
    json: { currentPassword: newPassword, newPassword: password },
    headers: basic(email, newPassword),
  });
  assert.equal(byBasic.status, 204, byBasic.body);
  // Basic belongs to no session, so none is kept.
  assert.equal(await statusOf({ Cookie: cookie }), 401);
});

test('refuses a wrong current password with 401', async () => {
  const { token } = await newcomer();
  const json = { currentPassword: 'wrong horse', newPassword };
  const answer = await client.ask('POST', path, { json, headers: bearer(token) });
  assert.equal(answer.status, 401);
  assert.equal(answer.json().error, 'invalid credentials');
  assert.equal(await statusOf(bearer(token)), 200);
});

test('refuses a new password that may not be, with 422 and where it stands', async () => {
  const { token } = await newcomer();
  const json = { currentPassword: password, newPassword: 'short' };
  const answer = await client.ask('POST', path, { json, headers: bearer(token) });
  assert.equal(answer.status, 422, answer.body);
  assert.deepEqual(answer.json().errors, [
    { pointer: '/newPassword', message: 'must be at least 8 characters long' },
  ]);
});

test('refuses who is not known with 401, and a key with 403', async () => {
  const { token } = await newcomer();
  const json = { currentPassword: password, newPassword };
  assert.equal((await client.ask('POST', path, { json })).status, 401);
  const { key } = await makeKey(client, bearer(token));
  for (const headers of [{ 'X-API-Key': key }, asAdministrator]) {
    const answer = await client.ask('POST', path, { json, headers });
    assert.equal(answer.status, 403, answer.body);
    assert.equal(
      answer.json().error,
      'this credential cannot change a password; use a session or the current password of the account',
    );
  }
});

test('refuses a page of another site that makes a browser send the cookie', async () => {
  const { email } = await newcomer();
  const { cookie } = await login(client, email, password, true);
  const answer = await client.ask('POST', path, {
    json: { currentPassword: password, newPassword },
    headers: { Cookie: cookie, 'Sec-Fetch-Site': 'cross-site', Origin: 'https://evil.example' },
  });
  assert.equal(answer.status, 403);
  assert.equal(answer.json().code, 'cross_site_request');
});
