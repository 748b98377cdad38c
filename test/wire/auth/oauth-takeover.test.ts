/**
 * Somebody else's address, registered before its owner comes: what the intruder prepared is worth nothing once the owner has the account
 * (docs/decisions/0023-account-linking.md). The whole program, with a real provider and a real mail server.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Answer, RequestOptions } from '../../harness/exchange.ts';
import { codeIn, startUsersMailServer } from '../../harness/mail-server.ts';
import { clientSecret, openProvider, type Person } from '../../harness/openid-provider.ts';
import { startServer } from '../../harness/running-server.ts';
import { Browser, type Page } from '../../oidc/browser.ts';

const auth = '/api/v1/auth';
const email = 'ada@shop.example';
const ada: Person = { sub: 'ada', email, email_verified: true };
const eve: Person = { sub: 'eve', email: 'eve@evil.example', email_verified: true };

test('nothing that an intruder prepared outlives the recovery of an account by its owner', async (context) => {
  const mail = await startUsersMailServer(context);
  const op = await openProvider(context, 'company');
  const program = await startServer({
    env: {
      COMITY_SMTP_URL: mail.url,
      COMITY_OAUTH_COMPANY_ISSUER: op.issuer,
      COMITY_OAUTH_COMPANY_CLIENT_ID: 'comity',
      COMITY_OAUTH_COMPANY_CLIENT_SECRET: clientSecret,
    },
  });
  context.after(() => program.stop());
  const start = `${program.url}${auth}/oauth/company`;
  op.register(`${start}/callback`);
  const post = (path: string, json: unknown, headers: RequestOptions['headers'] = {}): Promise<Answer> =>
    program.send('POST', path, { anonymous: true, json, headers });
  const signIn = (person: Person): Promise<Page> => {
    op.signedIn = person;
    return new Browser().follow(start);
  };

  const registered = await post(`${auth}/register`, { email, password: 'known to Eve alone' });
  assert.equal(registered.status, 201, registered.body);
  const { token, refreshToken } = registered.json() as { token: string; refreshToken: string };
  const bearer = { Authorization: `Bearer ${token}` };
  op.signedIn = eve;
  const linking = new Browser();
  const begun = await linking.get(`${start}?link=true`, bearer);
  assert.equal((await linking.follow(begun.headers.get('location') ?? '')).status, 200);
  assert.equal((await signIn(eve)).status, 200);
  const made = await post('/api/v1/keys', { name: 'later', kind: 'secret' }, bearer);
  assert.equal(made.status, 201, made.body);
  await mail.next(email);

  assert.equal((await signIn(ada)).json().code, 'account_exists');
  await post(`${auth}/password-reset`, { email });
  const code = codeIn(await mail.next(email));
  const reset = await post(`${auth}/password-reset/confirm`, { code, password: 'known to Ada alone' });
  assert.equal(reset.status, 204, reset.body);

  const me = (headers: Readonly<Record<string, string>>) =>
    program.send('GET', `${auth}/me`, { anonymous: true, headers });
  assert.equal((await me(bearer)).status, 401, 'the token of the intruder');
  assert.equal((await post(`${auth}/refresh`, { refreshToken })).status, 401, 'the refresh token');
  assert.equal((await post(`${auth}/login`, { email, password: 'known to Eve alone' })).status, 401);
  assert.equal((await signIn(eve)).json().code, 'account_exists', 'the identity of the intruder');
  assert.equal((await signIn(ada)).status, 200);
  assert.equal(
    (await me({ 'X-API-Key': String(made.json().key) })).status,
    401,
    'nor does an API key that the intruder made',
  );
});
