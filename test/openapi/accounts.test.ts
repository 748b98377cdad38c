/**
 * What the real program answers about accounts, sessions, keys and the audit trail is what the document promises, and what the document
 * says of content is how the program judges it.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { Answer, RequestOptions } from '../harness/exchange.ts';
import { codeIn, startUsersMailServer, textOf } from '../harness/mail-server.ts';
import { clientSecret, type OpenedProvider, openProviderServer } from '../harness/openid-provider.ts';
import { type RunningServer, startServer } from '../harness/running-server.ts';
import { Browser } from '../oidc/browser.ts';
import { accounts, documentOf, type Item, operation, resolved, shopCollections } from './fixture.ts';
import { type Promised, promisedBy } from './promised.ts';

const document = documentOf(shopCollections, '3.2', {
  ...{ traceEnabled: true, corsEnabled: true },
  accounts: { ...accounts, passwordless: { code: true, link: true }, passkeyRegistration: true },
});
const auth = '/api/v1/auth';
const anonymous = { anonymous: true } as const;

let program: RunningServer;
const mails = await startUsersMailServer();
let provider: OpenedProvider;
let promised: Promised;

before(async () => {
  provider = await openProviderServer('example');
  program = await startServer({
    config: fileURLToPath(new URL('../wire/auth/fixtures/passwordless.config.ts', import.meta.url)),
    env: {
      COMITY_REFRESH_REUSE_SECONDS: '0',
      COMITY_CORS_ORIGINS: 'https://a.example',
      COMITY_TRACE_METHOD: 'on',
      COMITY_MAIL_LOGIN_URL: 'https://shop.example/enter#{code}',
      COMITY_PASSKEY_REGISTRATION: 'on',
      COMITY_SMTP_URL: mails.url,
      COMITY_MAIL_FROM: 'Comity <no-reply@shop.example>',
      // The cheapest that argon2 does: nothing here depends on its cost.
      COMITY_PASSWORD_MEMORY_KIBIBYTES: '64',
      COMITY_PASSWORD_PASSES: '1',
      COMITY_OAUTH_EXAMPLE_ISSUER: provider.issuer,
      COMITY_OAUTH_EXAMPLE_CLIENT_ID: 'comity',
      COMITY_OAUTH_EXAMPLE_CLIENT_SECRET: clientSecret,
      // The discard service, which nobody runs.
      COMITY_OAUTH_AWAY_ISSUER: 'http://127.0.0.1:9',
      COMITY_OAUTH_AWAY_CLIENT_ID: 'comity',
      COMITY_OAUTH_AWAY_CLIENT_SECRET: 'secret-of-the-client',
    },
  });
  provider.register(`${program.url}${auth}/oauth/example/callback`);
  promised = promisedBy(document, program);
});

after(async () => {
  await program.stop();
  await provider.stop();
});

function ask(method: string, target: string, options?: RequestOptions): Promise<Answer> {
  return promised.ask(method, target, options);
}

/** Asks with these fields and no other credential. */
function askAs(method: string, target: string, headers: Record<string, string>, json?: unknown) {
  return ask(method, target, { ...anonymous, headers, ...(json === undefined ? {} : { json }) });
}

const bearer = (token: unknown) => ({ Authorization: `Bearer ${token}` });
const password = 'correct horse battery staple';

test('answers registration, login, refresh and logout as the document says', async () => {
  const ada = { email: 'ada@shop.example', password };
  const registered = await ask('POST', `${auth}/register`, { ...anonymous, json: { ...ada, name: 'Ada' } });
  assert.equal(registered.status, 201);
  for (const json of [
    ada,
    { ...ada, email: 'no address' },
    { ...ada, email: 'b@shop.example', password: 'x' },
    {},
  ])
    await ask('POST', `${auth}/register`, { ...anonymous, json });
  const cookies = await ask('POST', `${auth}/login`, { ...anonymous, json: { ...ada, cookie: true } });
  assert.equal(cookies.status, 200);
  const cookie = String(cookies.headers['set-cookie']?.[0]).split(';', 1)[0] ?? '';
  await askAs('POST', `${auth}/login`, { 'Sec-Fetch-Site': 'cross-site' }, { ...ada, cookie: true });
  await askAs('POST', `${auth}/login`, {}, { ...ada, password: 'wrong' });
  await askAs('POST', `${auth}/login`, { Prefer: 'return=minimal' }, ada);
  await askAs('POST', `${auth}/login`, { 'Content-Type': 'text/csv' }, ada);
  const { token, refreshToken } = registered.json();
  assert.equal((await askAs('GET', `${auth}/me`, bearer(token))).status, 200);
  await askAs('GET', `${auth}/me`, { ...bearer(token), Origin: 'https://a.example' });
  await askAs('HEAD', `${auth}/me`, bearer(token));
  await askAs('GET', `${auth}/me`, { Cookie: cookie });
  await ask('GET', `${auth}/me`);
  await ask('GET', `${auth}/me`, anonymous);
  const basic = Buffer.from(`${ada.email}:${password}`).toString('base64');
  await askAs('GET', `${auth}/me`, { Authorization: `Basic ${basic}` });
  await ask('GET', `${auth}/me`, { headers: { 'X-API-Key': 'sk_second' } });
  const refreshed = await askAs('POST', `${auth}/refresh`, {}, { refreshToken });
  assert.equal(refreshed.status, 200);
  await askAs('POST', `${auth}/refresh`, {}, { refreshToken });
  await askAs('GET', `${auth}/me`, bearer(refreshed.json().token));
  await ask('POST', `${auth}/logout`);
  await ask('POST', `${auth}/logout`, anonymous);
  await askAs('POST', `${auth}/logout`, { Cookie: cookie, Origin: 'https://evil.example' });
  const ended = await askAs('POST', `${auth}/logout`, { Cookie: cookie }, { everywhere: true });
  assert.equal(ended.status, 204);
  await askAs('GET', `${auth}/me`, { Cookie: cookie });
});

test('answers change, verification and reset of a password as the document says', async () => {
  const grace = { email: 'grace@shop.example', password };
  const { token } = (await askAs('POST', `${auth}/register`, {}, grace)).json();
  const change = { currentPassword: password, newPassword: `${password}!` };
  await ask('POST', `${auth}/password`, { json: change });
  await askAs('POST', `${auth}/password`, {}, change);
  await askAs('POST', `${auth}/password`, bearer(token), { ...change, currentPassword: 'wrong' });
  await askAs('POST', `${auth}/password`, bearer(token), { ...change, newPassword: 'x' });
  assert.equal((await askAs('POST', `${auth}/password`, bearer(token), change)).status, 204);
  const verification = codeIn(await mails.next(grace.email));
  assert.equal((await askAs('POST', `${auth}/verification`, bearer(token))).status, 204);
  await askAs('POST', `${auth}/verification`, {}, { email: 'nobody@shop.example' });
  await askAs('POST', `${auth}/verification`, {});
  const newer = codeIn(await mails.next(grace.email));
  const confirmed = [verification, newer].map((code) =>
    askAs('POST', `${auth}/verification/confirm`, {}, { code }),
  );
  assert.deepEqual((await Promise.all(confirmed)).map(({ status }) => status).sort(), [204, 400]);
  await askAs('POST', `${auth}/verification/confirm`, {}, {});
  assert.equal((await askAs('POST', `${auth}/password-reset`, {}, { email: grace.email })).status, 204);
  const code = codeIn(await mails.next(grace.email));
  await askAs('POST', `${auth}/password-reset/confirm`, {}, { code, password: 'x' });
  assert.equal((await askAs('POST', `${auth}/password-reset/confirm`, {}, { code, password })).status, 204);
  await askAs('POST', `${auth}/password-reset/confirm`, {}, { code, password });
});

test('answers invitations, logins by mail and changes of an address as the document says', async () => {
  const kay = 'kay@shop.example';
  const invite = (json: object) => ask('POST', `${auth}/invite`, { json });
  const invited = await invite({ email: kay, name: 'Kay' });
  assert.equal(invited.status, 201);
  const { location } = invited.headers;
  await mails.next(kay);
  assert.equal((await invite({ email: kay })).status, 200);
  await askAs('POST', `${auth}/invite`, {}, { email: kay });
  for (const json of [{}, { email: 'none' }, { email: kay, roles: 'none' }]) await invite(json);
  const code = codeIn(await mails.next(kay));
  await askAs('POST', `${auth}/invitation/accept`, {}, { code, password: 'x' });
  assert.equal((await askAs('POST', `${auth}/invitation/passkey-options`, {}, { code })).status, 200);
  const accepted = await askAs('POST', `${auth}/invitation/accept`, {}, { code, password });
  assert.equal(accepted.status, 200);
  await askAs('POST', `${auth}/invitation/accept`, {}, { code, password });
  await askAs('POST', `${auth}/invitation/passkey-options`, {}, { code });
  assert.equal((await invite({ email: kay })).status, 409);
  assert.equal((await ask('GET', `${location}/second-factor`)).status, 200);
  await ask('GET', '/api/v1/users/usr_none/second-factor');
  const asked = await askAs('POST', `${auth}/code`, {}, { email: kay });
  assert.equal(asked.status, 200);
  const { challenge } = asked.json();
  const typed = /[0-9a-z]{4}-[0-9a-z]{4}/.exec(textOf((await mails.next(kay)).raw))?.[0];
  await askAs('POST', `${auth}/code/confirm`, {}, { challenge, code: 'aaaa-aaaa' });
  await askAs('POST', `${auth}/code/confirm`, {}, { challenge: 'none', code: typed });
  const entered = await askAs('POST', `${auth}/code/confirm`, {}, { challenge, code: typed });
  assert.equal(entered.status, 200);
  assert.equal((await askAs('POST', `${auth}/link`, {}, { email: kay })).status, 200);
  await mails.next(kay);
  const own = bearer(entered.json().token);
  await askAs('POST', `${auth}/me/email`, own, { email: 'kay2@shop.example' });
  assert.equal(
    (await askAs('POST', `${auth}/me/email`, own, { email: 'kay2@shop.example', password })).status,
    204,
  );
  const moved = codeIn(await mails.next('kay2@shop.example'));
  assert.equal((await askAs('POST', `${auth}/verification/confirm`, {}, { code: moved })).status, 204);
  const undo = codeIn(await mails.next(kay));
  assert.equal((await askAs('POST', `${auth}/me/email/undo`, {}, { code: undo, password })).status, 204);
  await askAs('POST', `${auth}/me/email/undo`, {}, { code: undo });
  assert.equal((await askAs('POST', `${auth}/register/passkey-options`, {}, { email: kay })).status, 200);
  await askAs('POST', `${auth}/register/passkey-options`, {}, { email: 'none' });
});

test('answers accounts as the document says', async () => {
  const users = '/api/v1/users';
  const made = await ask('POST', users, { json: { email: 'edsger@shop.example', roles: ['editor'] } });
  assert.equal(made.status, 201);
  const path = String(made.headers.location);
  await ask('POST', users, { json: { email: 'edsger@shop.example' } });
  await ask('POST', users, { json: { email: 'no address' } });
  await ask('POST', users, { json: {} });
  await ask('GET', `${users}?sort=email&limit=1`, { headers: { Prefer: 'count=exact' } });
  await ask('QUERY', users, { json: { filter: { email: 'edsger@shop.example' } } });
  await ask('GET', path);
  await ask('POST', `${path}/password`, { json: { password } });
  await ask('POST', `${path}/password`, { json: { password: 'x' } });
  await ask('POST', `${users}/usr_none/password`, { json: { password } });
  const login = await askAs('POST', `${auth}/login`, {}, { email: 'edsger@shop.example', password });
  const own = bearer(login.json().token);
  for (const target of [users, path, `${users}/usr_none`]) await askAs('GET', target, own);
  await askAs('POST', users, own, { email: 'x@shop.example' });
  await askAs('POST', `${path}/password`, own, { password });
  await askAs('PATCH', path, own, { name: 'Edsger' });
  await askAs('PATCH', path, own, { roles: ['administrator'] });
  await askAs('PUT', path, own, { email: 'edsger@shop.example', name: 'E' });
  await ask('PATCH', path, { json: { disabled: true } });
  await askAs('GET', path, own);
  await ask('GET', users, anonymous);
  assert.equal((await ask('DELETE', path)).status, 204);
  await ask('DELETE', path);
  await ask('POST', `${users}/bulk-delete`, { json: { ids: ['usr_none'] } });
  await ask('OPTIONS', users);
});

test('answers keys as the document says', async () => {
  const keys = '/api/v1/keys';
  const made = await ask('POST', keys, { json: { name: 'Import', kind: 'secret' } });
  assert.equal(made.status, 201);
  const path = String(made.headers.location);
  for (const json of [
    { name: 'Page', kind: 'publishable', scopes: ['write'] },
    { name: 'Late', kind: 'secret', expiresAt: '2001-01-01T00:00:00.000Z' },
    { name: 'Odd', kind: 'odd' },
    {},
  ]) {
    await ask('POST', keys, { json });
  }
  const reader = await ask('POST', keys, { json: { name: 'Page', kind: 'publishable' } });
  await askAs('POST', keys, { 'X-API-Key': String(reader.json().key) }, { name: 'More', kind: 'secret' });
  await askAs('POST', keys, {}, { name: 'More', kind: 'secret' });
  await ask('GET', path);
  await ask('GET', `${keys}?kind=secret`);
  await ask('QUERY', keys, { json: { filter: { kind: 'secret' } } });
  await ask('PATCH', path, { json: { name: 'Nightly import' } });
  await ask('PATCH', path, { json: { kind: 'publishable' } });
  const later = { json: { name: 'Import' }, headers: { Prefer: 'respond-async' } };
  assert.equal((await ask('PATCH', path, later)).status, 200, 'a key is changed at once');
  await ask('PATCH', path, { json: { expiresAt: '2001-01-01T00:00:00.000Z' } });
  const rotated = await ask('POST', `${path}/rotate`, { json: { overlapSeconds: 60 } });
  assert.equal(rotated.status, 200);
  assert.equal((await ask('POST', `${path}/rotate`)).status, 200);
  await ask('POST', `${path}/rotate`, { json: { overlapSeconds: -1 } });
  await ask('POST', `${keys}/key_none/rotate`);
  await ask('DELETE', path);
  await ask('GET', path);
  await ask('POST', `${keys}/bulk-delete`, { json: { ids: ['key_none'] } });
  await ask('GET', keys, anonymous);
});

test('answers the audit trail and the public keys as the document says', async () => {
  const audit = '/api/v1/audit';
  const list = await ask('GET', `${audit}?type=account.registered&limit=2`);
  const [entry] = list.json().items as readonly { id: string }[];
  await ask('GET', `${audit}/${entry?.id}`);
  await ask('GET', `${audit}/aud_none`);
  await ask('QUERY', audit, { json: { filter: { type: 'key.created' } } });
  await ask('GET', audit, anonymous);
  const key = (await ask('POST', '/api/v1/keys', { json: { name: 'Other', kind: 'secret' } })).json().key;
  await askAs('GET', audit, { 'X-API-Key': String(key) });
  for (const method of ['POST', 'DELETE']) {
    assert.equal((await program.send(method, audit, { json: {} })).status, 405);
  }
  const jwks = await ask('GET', '/.well-known/jwks.json', anonymous);
  assert.equal(jwks.status, 200);
  await askAs('GET', '/.well-known/jwks.json', { 'If-None-Match': String(jwks.headers.etag) });
  await askAs('GET', '/.well-known/jwks.json', { Accept: 'application/json' });
});

test('answers sign-ins as the document says', async () => {
  const start = `${auth}/oauth/example`;
  assert.equal((await ask('GET', `${auth}/oauth/away`, anonymous)).status, 502);
  await ask('GET', `${start}?redirect=//evil.example`, anonymous);
  await ask('GET', `${start}?link=true`);
  await ask('GET', `${start}?link=true`, anonymous);
  await ask('GET', `${auth}/oauth/none`, anonymous);
  await ask('GET', `${start}/callback?code=x&state=y`, anonymous);
  await ask('HEAD', `${start}/callback`, anonymous);
  provider.signedIn = { sub: 'tony', email: 'tony@shop.example', email_verified: true };
  const tokens = await signIn(start);
  assert.equal(tokens.status, 200);
  const page = await signIn(`${start}?redirect=/docs`);
  assert.deepEqual([page.status, page.headers.location], [303, '/docs']);
  const own = bearer(tokens.json().token);
  provider.signedIn = { sub: 'charles', email: 'charles@shop.example', email_verified: true };
  const linked = await signIn(`${start}?link=true`, own);
  assert.deepEqual(Object.keys(linked.json()), ['user']);
  // An account of this address has not been verified here: nobody may walk into it by way of a provider.
  await askAs('POST', `${auth}/register`, {}, { email: 'alan@shop.example', password });
  provider.signedIn = { sub: 'alan', email: 'alan@shop.example', email_verified: true };
  assert.equal((await signIn(start)).status, 409);
});

/** Through the provider and back. */
async function signIn(target: string, headers: Record<string, string> = {}): Promise<Answer> {
  const away = await askAs('GET', target, headers);
  assert.equal(away.status, 303);
  const cookie = String(away.headers['set-cookie']?.[0]).split(';', 1)[0] ?? '';
  const { next = '' } = await new Browser().follow(String(away.headers.location), (url) =>
    url.startsWith(program.url),
  );
  const { pathname, search } = new URL(next);
  return askAs('GET', `${pathname}${search}`, { Cookie: cookie });
}

/** Where content is taken, and with which credential. */
const takers: readonly (readonly [path: string, credential: RequestOptions])[] = [
  [`${auth}/register`, anonymous],
  [`${auth}/login`, anonymous],
  [`${auth}/refresh`, anonymous],
  [`${auth}/logout`, {}],
  [`${auth}/password`, {}],
  [`${auth}/verification`, anonymous],
  [`${auth}/verification/confirm`, anonymous],
  [`${auth}/password-reset`, anonymous],
  [`${auth}/password-reset/confirm`, anonymous],
  [`${auth}/code/confirm`, anonymous],
  [`${auth}/me/email/undo`, anonymous],
  ['/api/v1/keys', {}],
];

for (const [path, credential] of takers) {
  test(`judges content of ${path} by the schema of the document: what is required and what is unknown`, async () => {
    const { content } = operation(document, 'post', path).requestBody as { content: Record<string, Item> };
    const { schema, example } = content['application/json'] as { schema: Item; example: Item };
    const { required = [] } = resolved(document, schema) as { required?: readonly string[] };
    const pointers = async (json: unknown, status: number) => {
      const answer = await ask('POST', path, { ...credential, json });
      assert.equal(answer.status, status, answer.body);
      return (answer.json().errors as readonly { pointer: string }[]).map(({ pointer }) => pointer).sort();
    };
    if (required.length > 0) {
      assert.deepEqual(await pointers({}, 400), required.map((member) => `/${member}`).sort());
    }
    assert.deepEqual(await pointers({ ...example, another: 1 }, 422), ['/another']);
  });
}

test('answers too many failed logins as the document says', async () => {
  const wrong = { email: 'donald@shop.example', password: 'wrong' };
  let answer = await askAs('POST', `${auth}/login`, {}, wrong);
  for (let attempts = 1; answer.status === 401 && attempts < 10; attempts += 1)
    answer = await askAs('POST', `${auth}/login`, {}, wrong);
  assert.equal(answer.status, 429);
  assert.match(String(answer.headers['ratelimit-policy']), /^"login";q=5;w=900$/);
});

test('came to most of the ends that the document has for accounts', () => {
  const { seen } = promised;
  assert(seen.size >= 95, `${seen.size}: ${[...seen].join(', ')}`);
});
