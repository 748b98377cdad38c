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

const env = { COMITY_PASSWORD_MEMORY_KIBIBYTES: '8' };
const { client } = await serveAccounts({ env });
const strict = await serveAccounts({ env: { ...env, COMITY_REFRESH_REUSE_SECONDS: '0' } });

const path = `${base}/auth/refresh`;
let accounts = 0;

function newAccount(at = client) {
  accounts += 1;
  return register(at, `refresh-${accounts}@shop.example`, 'correct horse');
}

function refresh(refreshToken: unknown, at = client, headers = {}): Promise<Answer> {
  return at.ask('POST', path, { json: { refreshToken }, headers });
}

async function me(token: string, at = client): Promise<number> {
  return (await at.ask('GET', `${base}/auth/me`, { headers: bearer(token) })).status;
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
  const at = strict.client;
  const first = await newAccount(at);
  const other = await login(at, `refresh-${accounts}@shop.example`, 'correct horse');
  const second = tokensOf(await refresh(first.refreshToken, at));
  assertInvalid(await refresh(first.refreshToken, at));
  assertInvalid(await refresh(second.refreshToken, at));
  for (const { token } of [first, second]) assert.equal(await me(token, at), 401);
  assert.equal(await me(other.token, at), 200);
  assert.equal((await refresh(other.refreshToken, at)).status, 200);
});

test('of two refreshes at once one is answered and the session ends, where no reuse is allowed', async () => {
  const { refreshToken, token } = await newAccount(strict.client);
  const answers = await Promise.all([
    refresh(refreshToken, strict.client),
    refresh(refreshToken, strict.client),
  ]);
  assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 401]);
  assert.equal(await me(token, strict.client), 401);
});

test('answers a refresh token that was just exchanged with the same pair, which logout ends', async () => {
  const { refreshToken } = await newAccount();
  const answers = await Promise.all(Array.from({ length: 5 }, () => refresh(refreshToken)));
  const [first] = answers.map(tokensOf);
  for (const answer of answers) assert.deepEqual(tokensOf(answer), first);
  const headers = bearer(String(first?.token));
  assert.equal((await client.ask('POST', `${base}/auth/logout`, { headers })).status, 204);
  assertInvalid(await refresh(refreshToken));
});

test('answers a repeated Idempotency-Key with the same pair, also where no reuse is allowed', async () => {
  const { refreshToken } = await newAccount(strict.client);
  const headers = { 'Idempotency-Key': '"again"' };
  assert.equal((await refresh(refreshToken, strict.client, { 'Idempotency-Key': '"' })).status, 400);
  const first = tokensOf(await refresh(refreshToken, strict.client, headers));
  assert.deepEqual(tokensOf(await refresh(refreshToken, strict.client, headers)), first);
  assertInvalid(await refresh(refreshToken, strict.client, { 'Idempotency-Key': '"other"' }));
  assert.equal(await me(first.token, strict.client), 401);
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
