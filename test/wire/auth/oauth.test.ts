/** Sign-in by a provider through the whole program (§5.3): what comes out of it is a session like any other. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Secret, TOTP } from 'otpauth';
import type { Answer } from '../../harness/exchange.ts';
import { clientSecret, type OpenedProvider, openProviderServer } from '../../harness/openid-provider.ts';
import { type RunningServer, startServer } from '../../harness/running-server.ts';
import { Browser, type Page } from '../../oidc/browser.ts';

const base = '/api/v1';
let program: RunningServer;
let op: OpenedProvider;

before(async () => {
  op = await openProviderServer('company');
  program = await startServer({
    env: {
      COMITY_OAUTH_COMPANY_ISSUER: op.issuer,
      COMITY_OAUTH_COMPANY_CLIENT_ID: 'comity',
      COMITY_OAUTH_COMPANY_CLIENT_SECRET: clientSecret,
    },
  });
  op.register(`${program.url}${base}/auth/oauth/company/callback`);
});

after(async () => {
  await program.stop();
  await op.stop();
});

const start = (query = '') => `${program.url}${base}/auth/oauth/company${query}`;

function me(headers: Readonly<Record<string, string>>): Promise<Answer> {
  return program.send('GET', `${base}/auth/me`, { anonymous: true, headers });
}

async function register(email: string): Promise<{ id: string; token: string }> {
  const answer = await program.send('POST', `${base}/auth/register`, {
    anonymous: true,
    json: { email, password: 'correct horse battery staple' },
  });
  assert.equal(answer.status, 201, answer.body);
  const { user, token } = answer.json() as { user: { id: string }; token: string };
  return { id: user.id, token };
}

test('a sign-in without redirect answers with a token that is good until logout', async () => {
  op.signedIn = { sub: 'ada', email: 'ada@shop.example', email_verified: true, name: 'Ada' };
  const page = await new Browser().follow(start());
  assert.equal(page.status, 200, page.body);
  const { token, refreshToken, user } = page.json() as {
    token: string;
    refreshToken: string;
    user: { id: string };
  };
  const bearer = { Authorization: `Bearer ${token}` };
  const answer = await me(bearer);
  assert.equal(answer.status, 200, answer.body);
  assert.deepEqual([answer.json().id, answer.json().email], [user.id, 'ada@shop.example']);
  assert.equal(
    (await program.send('POST', `${base}/auth/logout`, { anonymous: true, headers: bearer })).status,
    204,
  );
  assert.equal((await me(bearer)).status, 401);
  const json = { refreshToken };
  assert.equal((await program.send('POST', `${base}/auth/refresh`, { anonymous: true, json })).status, 401);
});

test('a sign-in with redirect gives the browser a session', async () => {
  op.signedIn = { sub: 'bob', email: 'bob@shop.example', email_verified: true };
  const browser = new Browser();
  const page = await browser.follow(start('?redirect=/docs'), (url) => url === `${program.url}/docs`);
  assert.equal(page.next, `${program.url}/docs`);
  const answer = await browser.get(`${program.url}${base}/auth/me`);
  assert.deepEqual([answer.status, answer.json().email], [200, 'bob@shop.example']);
});

test('a cookie of a session that is over does not keep anybody from signing in again', async () => {
  op.signedIn = { sub: 'bob', email: 'bob@shop.example', email_verified: true };
  const browser = new Browser();
  browser.setCookie(program.url, '__Host-comity_session', `ses_${'0'.repeat(26)}.${'A'.repeat(43)}`);
  const page = await browser.follow(start('?redirect=/docs'), (url) => url === `${program.url}/docs`);
  assert.equal(page.next, `${program.url}/docs`);
  assert.equal((await browser.get(`${program.url}${base}/auth/me`)).status, 200);
});

test('an account with a password is linked by its token, and not by its address', async () => {
  const { id, token } = await register('eve@shop.example');
  op.signedIn = { sub: 'eve', email: 'eve@shop.example', email_verified: true };
  const refused = await new Browser().follow(start());
  assert.deepEqual([refused.status, refused.json().code], [409, 'account_exists']);
  const linking = new Browser();
  const begun = await linking.get(start('?link=true'), { Authorization: `Bearer ${token}` });
  const linked: Page = await linking.follow(begun.headers.get('location') ?? '');
  assert.deepEqual(linked.json(), { user: { id, email: 'eve@shop.example' } });
  const signedIn = await new Browser().follow(start());
  assert.deepEqual([signedIn.status, (signedIn.json().user as { id: string }).id], [200, id]);
});

async function enrol(token: string): Promise<{ recoveryCodes: readonly string[] }> {
  const post = async (path: string, json: Readonly<Record<string, unknown>>) => {
    const headers = { Authorization: `Bearer ${token}` };
    const answer = await program.send('POST', `${base}/auth/${path}`, { anonymous: true, json, headers });
    assert.equal(answer.status, 200, answer.body);
    return answer.json() as Record<string, string> & { recoveryCodes: string[] };
  };
  const begun = await post('second-factor/totp', { password: 'correct horse battery staple' });
  const code = new TOTP({ secret: Secret.fromBase32(begun.secret ?? '') }).generate();
  return post('second-factor/totp/confirm', { enrolment: begun.enrolment, code });
}

test('a sign-in to an account with a second factor asks for it, and links nothing by an address', async () => {
  const { id, token } = await register('mia@shop.example');
  const linking = new Browser();
  op.signedIn = { sub: 'mia', email: 'mia@shop.example', email_verified: true };
  const begun = await linking.get(start('?link=true'), { Authorization: `Bearer ${token}` });
  await linking.follow(begun.headers.get('location') ?? '');
  const { recoveryCodes } = await enrol(token);
  const plain = await new Browser().follow(start());
  assert.deepEqual([plain.status, plain.json().code], [401, 'second_factor_required']);
  assert.equal(plain.json().token, undefined);
  const browser = new Browser();
  const isPage = (url: string) => url.startsWith(`${program.url}/docs`);
  const { next = '' } = await browser.follow(start('?redirect=/docs'), isPage);
  assert.equal((await browser.get(`${program.url}${base}/auth/me`)).status, 401);
  const fragment = new URLSearchParams(new URL(next).hash.slice(1));
  assert.equal(fragment.get('methods'), 'totp,recovery_code');
  for (const [index, challenge] of [plain.json().challenge, fragment.get('second_factor')].entries()) {
    const json = { challenge, code: recoveryCodes[index] };
    const finished = await program.send('POST', `${base}/auth/login/second-factor`, {
      anonymous: true,
      json,
    });
    assert.deepEqual([finished.status, (finished.json().user as { id: string }).id], [200, id]);
  }
  op.signedIn = { sub: 'thief', email: 'mia@shop.example', email_verified: true };
  const stolen = await new Browser().follow(start());
  assert.deepEqual([stolen.status, stolen.json().code], [409, 'account_exists']);
});

test('a callback counts once, in its own browser, with what the provider sent', async () => {
  op.signedIn = { sub: 'bob', email: 'bob@shop.example', email_verified: true };
  const browser = new Browser();
  const { next = '' } = await browser.follow(start(), (url) => url.includes('/callback?'));
  const stranger = await new Browser().get(next);
  assert.deepEqual([stranger.status, stranger.json().code], [400, 'sign_in_invalid']);
  assert.equal((await browser.get(next)).status, 200);
  assert.equal((await browser.get(next)).status, 400);
});

test('the log says nothing of what was sent', async () => {
  const log = `${program.stdout()}${program.stderr()}`;
  assert.doesNotMatch(log, new RegExp(`${clientSecret}|eyJ|code=|state=`));
});
