/** POST /auth/refresh of the running program. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type Answer,
  base,
  bearer,
  login,
  register,
  serveAccounts,
  tokensOf,
} from '../../harness/account-client.ts';

const { client } = await serveAccounts({ env: { COMITY_PASSWORD_MEMORY_KIBIBYTES: '8' } });

const path = `${base}/auth/refresh`;
let accounts = 0;

function newAccount() {
  accounts += 1;
  return register(client, `refresh-${accounts}@shop.example`, 'correct horse');
}

function refresh(refreshToken: unknown): Promise<Answer> {
  return client.ask('POST', path, { json: { refreshToken } });
}

async function me(token: string): Promise<number> {
  return (await client.ask('GET', `${base}/auth/me`, { headers: bearer(token) })).status;
}

function assertInvalid(answer: Answer): void {
  assert.equal(answer.status, 401);
  assert.deepEqual(answer.json(), { error: 'invalid token', code: 'invalid_token' });
  assert.match(String(answer.headers['www-authenticate']), /^Bearer .*error="invalid_token".*Basic/);
  assert.equal(answer.headers['cache-control'], 'no-store');
}

test('gives the next refresh token and a new access token, and nobody may keep the answer', async () => {
  const first = await newAccount();
  const answer = await refresh(first.refreshToken);
  assert.equal(answer.status, 200);
  assert.equal(answer.headers['cache-control'], 'no-store');
  assert.deepEqual(Object.keys(answer.json()), ['token', 'expiresIn', 'refreshToken', 'user']);
  assert.equal(answer.json().expiresIn, 900);
  const second = tokensOf(answer);
  assert.equal(second.userId, first.userId);
  assert.notEqual(second.refreshToken, first.refreshToken);
  assert.notEqual(second.token, first.token);
  assert.equal(await me(second.token), 200);
  assert.equal((await refresh(second.refreshToken)).status, 200);
});

test('a refresh token that is used again ends its session, and the other sessions of the account go on', async () => {
  const first = await newAccount();
  const other = await login(client, `refresh-${accounts}@shop.example`, 'correct horse');
  const second = tokensOf(await refresh(first.refreshToken));
  assertInvalid(await refresh(first.refreshToken));
  assertInvalid(await refresh(second.refreshToken));
  for (const { token } of [first, second]) assert.equal(await me(token), 401);
  assert.equal(await me(other.token), 200);
  assert.equal((await refresh(other.refreshToken)).status, 200);
});

test('of two refreshes at once one is answered and the session ends', async () => {
  const { refreshToken, token } = await newAccount();
  const answers = await Promise.all([refresh(refreshToken), refresh(refreshToken)]);
  assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 401]);
  assert.equal(await me(token), 401);
});

test('refuses what is no refresh token with the same 401, and an access token among it', async () => {
  const { refreshToken, token } = await newAccount();
  const cut = refreshToken.slice(0, -1);
  for (const text of ['', 'x', token, cut, `${refreshToken}x`, ` ${refreshToken}`, 'rt_'.repeat(50_000)]) {
    assertInvalid(await refresh(text));
  }
  assert.equal((await refresh(refreshToken)).status, 200);
});

test('tells a body that is missing, malformed or of the wrong type by its own status', async () => {
  assert.equal((await client.ask('POST', path)).status, 400);
  assert.equal((await client.ask('POST', path, { json: {} })).status, 400);
  assert.equal((await client.ask('POST', path, { json: { refreshToken: 7 } })).status, 422);
  assert.equal((await client.ask('POST', path, { json: { refreshToken: 'x', more: 1 } })).status, 422);
  assert.equal((await client.ask('POST', path, { json: { refreshToken: 'x\u0000' } })).status, 422);
  const headers = { 'Content-Type': 'text/plain' };
  assert.equal((await client.ask('POST', path, { body: 'x', headers })).status, 415);
  assert.equal((await client.ask('GET', path)).status, 405);
});

test('keeps no answer for repetition: an Idempotency-Key is no way around single use', async () => {
  const { refreshToken } = await newAccount();
  const asked = { json: { refreshToken }, headers: { 'Idempotency-Key': '"again"' } };
  assert.equal((await client.ask('POST', path, asked)).status, 200);
  assertInvalid(await client.ask('POST', path, asked));
});
