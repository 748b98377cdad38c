/** Who is behind each entry of the audit trail, and in which request (§2.9.4): every kind of entry that a request can lead to. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { Secret, TOTP } from 'otpauth';
import {
  type Asked,
  asAdministrator,
  base,
  basic,
  bearer,
  makeKey,
  register,
  serveAccounts,
  tokensOf,
} from '../../harness/account-client.ts';
import { codeIn, startMailServer } from '../../harness/mail-server.ts';
import { clientSecret, openProviderServer } from '../../harness/openid-provider.ts';
import { until } from '../../harness/until.ts';
import { Browser } from '../../oidc/browser.ts';
import { createPasskey } from './fixtures/software-authenticator.ts';

const password = 'correct horse battery';
const origin = 'https://app.shop.example';
const mails = await startMailServer({ after });
const op = await openProviderServer('company');
const { client, program } = await serveAccounts({
  env: {
    COMITY_REFRESH_REUSE_SECONDS: '0',
    COMITY_SMTP_URL: mails.url,
    COMITY_MAIL_FROM: 'Shop <no-reply@shop.example>',
    COMITY_MAIL_RESET_URL: 'https://shop.example/reset#{code}',
    COMITY_TOTP_WINDOW_STEPS_MAX: '10',
    COMITY_PASSKEY_ORIGINS: origin,
    COMITY_PASSKEY_RELYING_PARTY_ID: 'shop.example',
    COMITY_LOGIN_ATTEMPTS: '20',
    COMITY_OAUTH_COMPANY_ISSUER: op.issuer,
    COMITY_OAUTH_COMPANY_CLIENT_ID: 'comity',
    COMITY_OAUTH_COMPANY_CLIENT_SECRET: clientSecret,
  },
});
op.register(`${program.url}${base}/auth/oauth/company/callback`);

type Entry = {
  readonly type: string;
  readonly actor?: unknown;
  readonly requestId?: string;
  readonly subject?: string;
  readonly address?: string;
};

async function entries(query: string): Promise<readonly Entry[]> {
  const answer = await client.ask('GET', `${base}/audit?limit=1000&${query}`, { headers: asAdministrator });
  assert.equal(answer.status, 200, answer.body);
  return answer.json().items as readonly Entry[];
}

async function send(method: string, path: string, asked: Asked, status = 200) {
  const answer = await client.ask(method, `${base}${path}`, asked);
  assert.equal(answer.status, status, answer.body);
  return answer;
}

const post = (path: string, json: unknown, token?: string, status = 200) =>
  send('POST', path, { json, ...(token === undefined ? {} : { headers: bearer(token) }) }, status);

const person = (id: string) => ({ kind: 'user', id });
const nobody = { kind: 'anonymous', id: null };
const operator = { kind: 'administrator-key', id: 'administrator' };

/** The one entry of this kind, or the newest, about a subject. */
async function entryOf(type: string, subject?: string): Promise<Entry> {
  const query = `type=${type}&sort=-id${subject === undefined ? '' : `&subject=${subject}`}`;
  await until(async () => (await entries(query)).length > 0, `${type} is in the trail`);
  const [entry] = await entries(query);
  assert.match(String(entry?.requestId), /^[0-9a-f]+-[0-9a-z]+$/, type);
  assert.equal(entry?.address, '127.0.0.1');
  return entry ?? assert.fail(type);
}

const actorOf = async (type: string, subject?: string) => (await entryOf(type, subject)).actor;

test('registrations, logins and failed ones name their actor and their request', async () => {
  const { userId, token } = await register(client, 'ada@shop.example', password);
  assert.deepEqual(await actorOf('account.registered', userId), person(userId));
  await post('/auth/login', { email: 'ada@shop.example', password });
  assert.deepEqual(await actorOf('login.succeeded', userId), person(userId));
  await post('/auth/login', { email: 'ada@shop.example', password: 'wrong horse' }, undefined, 401);
  assert.deepEqual(await actorOf('login.failed', userId), nobody);
  await send('GET', '/auth/me', { headers: basic('ada@shop.example', 'wronger horse') }, 401);
  await until(async () => (await entries(`type=login.failed&subject=${userId}`)).length === 2, 'both failed');
  const failed = await entries(`type=login.failed&subject=${userId}`);
  assert.equal(new Set(failed.map(({ requestId }) => requestId)).size, 2, 'each request is another one');
  await post('/auth/logout', {}, token, 204);
  assert.deepEqual(await actorOf('session.ended'), person(userId));
});

test('changes and resets of passwords, and verified addresses, name them', async () => {
  const email = 'bob@shop.example';
  const { userId, token } = await register(client, email, password);
  const code = codeIn(await mails.next(email));
  await post('/auth/verification/confirm', { code }, undefined, 204);
  assert.deepEqual(await actorOf('email.verified', userId), person(userId));
  await post('/auth/password', { currentPassword: password, newPassword: `${password} 2` }, token, 204);
  assert.deepEqual(await actorOf('password.changed', userId), person(userId));
  await post('/auth/password-reset', { email }, undefined, 204);
  const mailed = codeIn(await mails.next(email));
  assert.deepEqual(await actorOf('password.reset_requested', userId), nobody);
  await post('/auth/password-reset/confirm', { code: mailed, password }, undefined, 204);
  assert.deepEqual(await actorOf('password.reset', userId), person(userId));
  const again = tokensOf(await post('/auth/login', { email, password }));
  await post('/auth/refresh', { refreshToken: again.refreshToken });
  await post('/auth/refresh', { refreshToken: again.refreshToken }, undefined, 401);
  assert.deepEqual(await actorOf('session.reused'), nobody);
});

test('second factors name them, also the rename of a passkey', async () => {
  const { userId, token } = await register(client, 'cy@shop.example', password);
  const begun = (await post('/auth/second-factor/totp', { password }, token)).json();
  const totp = new TOTP({ secret: Secret.fromBase32(String(begun.secret)) });
  let step = Math.floor(Date.now() / 30_000) - 9;
  const code = () => totp.generate({ timestamp: step++ * 30_000 });
  await post('/auth/second-factor/totp/confirm', { enrolment: begun.enrolment, code: code() }, token);
  assert.deepEqual(await actorOf('second_factor.added', userId), person(userId));
  await post('/auth/second-factor/recovery-codes', { code: code() }, token);
  assert.deepEqual(await actorOf('recovery_codes.created', userId), person(userId));
  await post('/auth/login', { email: 'cy@shop.example', password, code: code() });
  const plain = await entryOf('login.succeeded', userId);
  assert.deepEqual(plain.actor, person(userId));
  await post('/auth/login', { email: 'cy@shop.example', password, code: '000000' }, undefined, 401);
  assert.deepEqual(await actorOf('login.failed', userId), nobody);
  const offered = (await post('/auth/passkeys/options', { code: code() }, token)).json();
  const { challenge, options } = offered as { challenge: string; options: { challenge: string } };
  const response = createPasskey().register({ origin, rpId: 'shop.example', challenge: options.challenge });
  const added = (await post('/auth/passkeys', { challenge, name: 'Laptop', response }, token)).json();
  const { id } = added.passkey as { id: string };
  await post(`/auth/passkeys/${id}/rename`, { name: 'Phone' }, token);
  assert.deepEqual(await actorOf('second_factor.changed', userId), person(userId));
  await post(`/auth/passkeys/${id}/rename`, { name: 'Phone' }, token);
  assert.equal((await entries(`type=second_factor.changed&subject=${userId}`)).length, 1, 'nothing changed');
  await post(`/auth/passkeys/${id}/remove`, { code: code() }, token, 204);
  assert.deepEqual(await actorOf('second_factor.removed', userId), person(userId));
  await send('POST', `/users/${userId}/reset-second-factor`, { headers: asAdministrator, json: {} }, 204);
  assert.deepEqual(await actorOf('second_factor.reset', userId), operator);
});

test('keys name them, and the key that an account used', async () => {
  const { userId, token } = await register(client, 'di@shop.example', password);
  const key = await makeKey(client, bearer(token));
  assert.deepEqual(await actorOf('key.created', key.id), person(userId));
  const other = await makeKey(client, { 'X-API-Key': key.key });
  assert.deepEqual(await actorOf('key.created', other.id), { kind: 'key', id: userId, keyId: key.id });
  await send('PATCH', `/keys/${key.id}`, { headers: bearer(token), json: { name: 'renamed' } });
  assert.deepEqual(await actorOf('key.changed', key.id), person(userId));
  await post(`/keys/${key.id}/rotate`, {}, token);
  assert.deepEqual(await actorOf('key.rotated', key.id), person(userId));
  await send('DELETE', `/keys/${other.id}`, { headers: bearer(token) }, 204);
  assert.deepEqual(await actorOf('key.revoked', other.id), person(userId));
});

test('changes of accounts by an administrator name it, and what leaves with an account', async () => {
  const { userId, token } = await register(client, 'ed@shop.example', password);
  const key = await makeKey(client, bearer(token));
  const change = (json: object) => send('PATCH', `/users/${userId}`, { headers: asAdministrator, json });
  await change({ name: 'Ed' });
  await change({ roles: ['editor'] });
  await change({ disabled: true });
  await change({ disabled: false });
  await send('DELETE', `/users/${userId}`, { headers: asAdministrator }, 204);
  for (const type of ['changed', 'roles_changed', 'disabled', 'enabled', 'deleted'])
    assert.deepEqual(await actorOf(`account.${type}`, userId), operator, type);
  assert.deepEqual(await actorOf('key.revoked', key.id), operator);
});

test('sign-ins by a provider name them', async () => {
  op.signedIn = { sub: 'fay', email: 'fay@shop.example', email_verified: true, name: 'Fay' };
  const page = await new Browser().follow(`${program.url}${base}/auth/oauth/company`);
  assert.equal(page.status, 200, page.body);
  const { id } = page.json().user as { id: string };
  for (const type of ['account.registered', 'identity.linked', 'login.succeeded'])
    assert.deepEqual(await actorOf(type, id), person(id), type);
  await op.stop();
});

test('attempts beyond the limit name them', async () => {
  for (let time = 0; time < 20; time += 1)
    await client.ask('POST', `${base}/auth/login`, { json: { email: 'eve@shop.example', password } });
  await post('/auth/login', { email: 'eve@shop.example', password }, undefined, 429);
  assert.deepEqual(await actorOf('login.limited'), nobody);
});

test('every entry of the trail names an actor, and all but those of Comity itself their request', async () => {
  const all = await entries('');
  assert.ok(all.length > 40);
  for (const { type, actor, requestId } of all) {
    const { kind } = actor as { kind: string };
    if (kind === 'system') assert.equal(type, 'signing_key.rotated');
    else assert.ok(requestId, type);
  }
});
