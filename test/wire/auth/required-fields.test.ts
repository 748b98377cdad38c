/** Accounts with required fields (§5.7.10): the first sign-in by a provider, and what the OpenAPI document says of a registration. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { clientSecret, type OpenedProvider, openProviderServer } from '../../harness/openid-provider.ts';
import { type RunningServer, startServer } from '../../harness/running-server.ts';
import { Browser } from '../../oidc/browser.ts';

const base = '/api/v1';
const config = fileURLToPath(new URL('./fixtures/club.config.ts', import.meta.url));
const email = 'fay@club.example';
const password = 'correct horse battery';
let program: RunningServer;
let op: OpenedProvider;

before(async () => {
  op = await openProviderServer('company');
  program = await startServer({
    config,
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
const register = (json: object) =>
  program.send('POST', `${base}/auth/register`, { anonymous: true, json: { email, password, ...json } });

test('names the fields that a new account lacks, and signs in to one that was registered and linked', async () => {
  op.signedIn = { sub: 'fay', email, email_verified: true, name: 'Fay' };
  const first = await new Browser().follow(start());
  assert.equal(first.status, 403, first.body);
  const { code, error, errors } = first.json() as { code: string; error: string; errors: object };
  assert.deepEqual(
    [code, errors],
    [
      'forbidden',
      [
        { pointer: '/nick', message: 'is required' },
        { pointer: '/age', message: 'is required' },
      ],
    ],
  );
  assert.match(error, /register first, then link the provider/);
  const users = await program.send('GET', `${base}/users`);
  assert.deepEqual(users.json().items, [], 'nothing half done');
  const registered = await register({ nick: 'fay', age: 41 });
  assert.equal(registered.status, 201, registered.body);
  const { token, user } = registered.json() as { token: string; user: { id: string } };
  const linking = new Browser();
  const begun = await linking.get(start('?link=true'), { Authorization: `Bearer ${token}` });
  const linked = await linking.follow(begun.headers.get('location') ?? '');
  assert.deepEqual(linked.json(), { user: { id: user.id, email } });
  const again = await new Browser().follow(start());
  assert.equal(again.status, 200, again.body);
  assert.equal((again.json().user as { id: string }).id, user.id);
  const bearer = { Authorization: `Bearer ${String(again.json().token)}` };
  const me = await program.send('GET', `${base}/auth/me`, { anonymous: true, headers: bearer });
  assert.deepEqual(me.json().fields, { nick: 'fay', plan: 'free', age: 41 });
});

test('the example of a registration has the fields, and is one that registers', async () => {
  const document = (await program.send('GET', '/openapi.json')).json() as {
    paths: Record<string, { post: { requestBody: { content: Record<string, { example: object }> } } }>;
  };
  const { example } =
    document.paths[`${base}/auth/register`]?.post.requestBody.content['application/json'] ?? assert.fail();
  const { nick, plan, age } = example as Record<string, unknown>;
  assert.deepEqual([nick, plan, age], ['ada', 'free', 30]);
  const registered = await program.send('POST', `${base}/auth/register`, { anonymous: true, json: example });
  assert.equal(registered.status, 201, registered.body);
});
