/** Bad input to authentication at the wire: each is refused with an exact status, and none makes the program fail or tell. */
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import {
  type Answer,
  base,
  basic,
  bearer,
  type Client,
  login,
  makeKey,
  openClient,
  register,
  sessionCookieName,
  setCookies,
  type Tokens,
} from '../../harness/account-client.ts';
import { adminKey } from '../../harness/exchange.ts';
import { codeIn, startUsersMailServer } from '../../harness/mail-server.ts';
import { openProvider } from '../../harness/openid-provider.ts';
import { type RunningServer, startServer } from '../../harness/running-server.ts';
import { Browser } from '../../oidc/browser.ts';
import { serveOn } from './matrix/engines.ts';

const config = fileURLToPath(new URL('./fixtures/pages.config.ts', import.meta.url));
const email = 'ada@shop.example';
const password = 'correct horse battery staple';

const mail = await startUsersMailServer();
let program: RunningServer;
let client: Client;
let tokens: Tokens;
let key: string;

before(async () => {
  program = await startServer({
    config,
    env: {
      COMITY_SMTP_URL: mail.url,
      COMITY_LOGIN_ATTEMPTS: '0',
      COMITY_RATE_LIMIT_READS: '0',
      COMITY_RATE_LIMIT_WRITES: '0',
    },
  });
  client = openClient(program.port);
  await register(client, email, password);
  tokens = await login(client, email, password, true);
  ({ key } = await makeKey(client, bearer(tokens.token)));
});

after(async () => {
  client?.close();
  await program?.stop();
});

const me = `${base}/auth/me`;
const ask = (headers: Readonly<Record<string, string | readonly string[]>>, path = me) =>
  client.ask('GET', path, { headers });

function assertRefused(answer: Answer, status: number, code: string, label: string): void {
  assert.equal(answer.status, status, `${label}: ${answer.status} ${answer.body}`);
  assert.equal(answer.json().code, code, label);
}

const basicOf = (bytes: string | Uint8Array) => ({
  Authorization: `Basic ${Buffer.from(bytes).toString('base64')}`,
});

describe('Basic', () => {
  it('is refused with bad base64, without a colon, and in another character set', async () => {
    const good = Buffer.from(`${email}:${password}`).toString('base64');
    assert.equal((await ask(basic(email, password))).status, 200);
    const bad = {
      'no base64': 'Basic !!!',
      'base64url alone': 'Basic __--',
      'one character': 'Basic A',
      'a stray padding': `Basic ${good}=====`,
      'text behind the padding': `Basic ${good} ${good}`,
      'stray bits': 'Basic YWI6Yx==',
      'parameters instead': `Basic user="${email}", password="${password}"`,
      'no colon': basicOf(email).Authorization,
      'bytes that are not UTF-8': basicOf(Buffer.from([0x61, 0x3a, 0xff, 0xfe])).Authorization,
      'an overlong encoding of NUL': basicOf(Buffer.from([0x61, 0x3a, 0xc0, 0x80])).Authorization,
      'half of a surrogate pair': basicOf(Buffer.from([0x61, 0x3a, 0xed, 0xa0, 0x80])).Authorization,
      'nothing at all': 'Basic',
    };
    for (const [what, Authorization] of Object.entries(bad)) {
      assertRefused(await ask({ Authorization }), 401, 'invalid_credentials', what);
    }
  });

  it('is refused with any control character, NUL among them, in the user and in the password', async () => {
    for (let code = 0; code < 0x20; code += 1) {
      const control = String.fromCharCode(code);
      for (const [user, typed] of [
        [email + control, password],
        [control + email, password],
        [email, password + control],
        [email, `${password}${control}more`],
      ] as const) {
        assertRefused(await ask(basic(user, typed)), 401, 'invalid_credentials', `character ${code}`);
      }
    }
    assertRefused(await ask(basic(email, `${password}\u007f`)), 401, 'invalid_credentials', 'DEL');
  });

  it('is refused however long it is', async () => {
    assertRefused(await ask(basic(email, 'x'.repeat(2000))), 401, 'invalid_credentials', '2000');
    assertRefused(await ask(basic('x'.repeat(2000), password)), 401, 'invalid_credentials', 'a long user');
  });

  it('never takes a password for another that begins or ends alike', async () => {
    const long = `${'p'.repeat(200)} 1`;
    await register(client, 'long@shop.example', long);
    const nul = { email: 'nul@shop.example', password: 'a password\u0000with more' };
    const refused = await client.ask('POST', `${base}/auth/register`, { json: nul });
    assertRefused(refused, 422, 'validation_failed', 'what ends a text elsewhere is in no password');
    for (const [user, typed, status] of [
      ['long@shop.example', long, 200],
      ['long@shop.example', `${'p'.repeat(200)} 2`, 401],
      ['long@shop.example', 'p'.repeat(72), 401],
      [email, `${password} `, 401],
      [email, ` ${password}`, 401],
      [email, password.toUpperCase(), 401],
      [email, '', 401],
    ] as const) {
      const json = { email: user, password: typed };
      const answer = await client.ask('POST', `${base}/auth/login`, { json });
      assert.equal(answer.status, status, `${user} ${JSON.stringify(typed)}: ${answer.body}`);
    }
  });
});

describe('an API key', () => {
  it('is refused with control characters, cut, decorated or in another spelling', async () => {
    const fields = [
      `${key}x`,
      key.slice(0, -1),
      key.toUpperCase(),
      `${key} ${key}`,
      'sk_',
      'pk_',
      `${key},${key}`,
    ];
    for (const wrong of [...fields, `sk_${'A'.repeat(43)}`, 'x'.repeat(8000)]) {
      assertRefused(await ask({ 'X-API-Key': wrong }), 401, 'invalid_api_key', wrong);
    }
    const controls = Array.from({ length: 0x20 }, (_, code) => `%${code.toString(16).padStart(2, '0')}`);
    for (const control of [...controls, '%7f', '%C2%80', '%FF', '%E2%80%8B']) {
      for (const wrong of [control + key.slice(0, 20), key.slice(0, 20) + control + key.slice(20)]) {
        assert.equal((await ask({}, `${me}?api_key=${wrong}`)).status, 401, wrong);
      }
    }
    assert.equal((await ask({}, `${me}?api_key=${key}`)).status, 200);
  });

  it('too long for a message is 414 or 431, and does no harm', async () => {
    assert.equal((await ask({}, `${me}?api_key=sk_${'x'.repeat(20_000)}`)).status, 414);
    for (const headers of [bearer('x'.repeat(100_000)), { 'X-API-Key': 'x'.repeat(100_000) }]) {
      const answer = await ask(headers).catch((error: NodeJS.ErrnoException) => error);
      // The server may close before a client has sent so much.
      if ('status' in answer) assert.equal(answer.status, 431);
      else assert.ok(answer.code === 'ECONNRESET' || answer.code === 'EPIPE', String(answer));
    }
    assert.equal((await ask({ 'X-API-Key': key })).status, 200);
  });
});

describe('more than one credential', () => {
  const carriers = (credential: string) =>
    ({
      bearer: bearer(credential),
      basic: basic(credential, ''),
      'X-API-Key': { 'X-API-Key': credential },
      'Api-Key': { Authorization: `Api-Key ${credential}` },
      ApiKey: { Authorization: `ApiKey ${credential}` },
    }) as const;

  it('in a header field and the query component is 400, whether good, bad or alike', async () => {
    for (const queried of [key, adminKey, 'sk_unknown', '']) {
      for (const credential of [key, adminKey, 'sk_unknown']) {
        for (const [what, headers] of Object.entries(carriers(credential))) {
          const answer = await ask(headers, `${me}?api_key=${queried}`);
          assertRefused(answer, 400, 'credentials_repeated', `${what} beside ?api_key=${queried}`);
        }
      }
    }
  });

  it('in two header fields is 400', async () => {
    for (const [what, headers] of Object.entries(carriers(key))) {
      if (what === 'X-API-Key') continue;
      const answer = await ask({ ...headers, 'X-API-Key': adminKey });
      assertRefused(answer, 400, 'credentials_repeated', what);
    }
  });

  it('in a field that came twice, or a parameter that came twice, is 400', async () => {
    for (const [what, lines] of [
      ['Authorization', [`Authorization: Bearer ${key}`, `Authorization: Bearer ${adminKey}`]],
      ['X-API-Key', [`X-API-Key: ${key}`, `X-API-Key: ${adminKey}`]],
    ] as const) {
      const answer = await raw([
        'GET /api/v1/auth/me HTTP/1.1',
        'Host: a',
        ...lines,
        'Connection: close',
        '',
        '',
      ]);
      assert.match(answer, /^HTTP\/1\.1 400 /, what);
    }
    assert.equal((await ask({}, `${me}?api_key=${key}&api_key=${adminKey}`)).status, 400);
  });

  it('beside a session cookie counts alone: what was sent on purpose outranks what the browser adds', async () => {
    const Cookie = tokens.cookie;
    assertRefused(await ask({ ...bearer('sk_unknown'), Cookie }), 401, 'invalid_token', 'a bad key');
    const byKey = await ask({ 'X-API-Key': adminKey, Cookie });
    assert.equal(byKey.json().kind, 'administrator');
    const dead = await ask({ ...bearer(tokens.token), Cookie: `${sessionCookieName}=dead` });
    assert.equal(dead.status, 200);
  });
});

async function raw(lines: readonly string[]): Promise<string> {
  const socket = connect(program.port, '127.0.0.1');
  socket.end(lines.join('\r\n'));
  return text(socket);
}

describe('a session cookie', () => {
  const logIn = (Cookie: string) =>
    client.ask('POST', `${base}/auth/login`, {
      json: { email, password, cookie: true },
      headers: { Cookie },
    });
  const valueIn = (cookie: string) => cookie.slice(cookie.indexOf('=') + 1);

  it('cannot be fixed before a login: the login makes its own, and what was planted stays worthless', async () => {
    const planted = [
      `${sessionCookieName}=planted`,
      `${sessionCookieName}=ses_${'0'.repeat(26)}.${'A'.repeat(43)}`,
      `${sessionCookieName}=a; ${sessionCookieName}=b`,
    ];
    for (const cookie of planted) {
      const answer = await logIn(cookie);
      assert.equal(answer.status, 200, answer.body);
      const [made = ''] = setCookies(answer);
      assert.match(
        made,
        /^__Host-comity_session=ses_[^;]+; Path=\/; Max-Age=\d+; HttpOnly; Secure; SameSite=Lax$/,
      );
      assert.ok(!cookie.includes(valueIn(made.split(';', 1)[0] ?? '')));
      assert.equal((await ask({ Cookie: cookie })).status, 401);
    }
  });

  it('is never the same twice, and a login with an old one makes a new one', async () => {
    const seen = new Set<string>();
    for (let round = 0; round < 5; round += 1) {
      const answer = await logIn(tokens.cookie);
      seen.add(valueIn(setCookies(answer)[0]?.split(';', 1)[0] ?? ''));
    }
    seen.add(valueIn(tokens.cookie));
    assert.equal(seen.size, 6);
  });

  it('is nobody when two of its name came: none of them can be told from a planted one', async () => {
    const Cookie = `${tokens.cookie}; ${sessionCookieName}=planted`;
    assert.equal((await ask({ Cookie })).status, 401);
  });

  it('is nobody with the secret of another session, or cut, or decorated', async () => {
    const value = valueIn(tokens.cookie);
    const [session = '', secret = ''] = value.split('.');
    const other = await login(client, email, password, true);
    const [, otherSecret = ''] = valueIn(other.cookie).split('.');
    for (const forged of [
      `${session}.${otherSecret}`,
      `${session}.`,
      `.${secret}`,
      session,
      secret,
      value.slice(0, -1),
      `${value}A`,
      `"${value}"x`,
      value.toUpperCase(),
      encodeURIComponent(`${value}\u0000`),
    ]) {
      const answer = await ask({ Cookie: `${sessionCookieName}=${forged}` });
      assertRefused(answer, 401, 'no_token_provided', forged);
    }
  });
});

describe('a sign-in by a provider', () => {
  it('is finished once, in time, by the browser that began it, and leads to no foreign page', async (context) => {
    const provider = await openProvider(context);
    provider.signedIn = { sub: 'person', email: 'person@provider.example', email_verified: true };
    const served = await serveOn('SQLite', config, {
      COMITY_OAUTH_OIDC_ISSUER: provider.issuer,
      COMITY_OAUTH_OIDC_CLIENT_ID: 'comity',
      COMITY_OAUTH_OIDC_CLIENT_SECRET: provider.provider.clientSecret,
    });
    context.after(() => served.stop());
    const origin = `http://127.0.0.1:${served.port}`;
    const start = `${origin}${base}/auth/oauth/oidc`;
    const isCallback = (url: string) => url.startsWith(`${start}/callback`);
    provider.register(`${start}/callback`);

    const browser = new Browser();
    const { next: callback = '' } = await browser.follow(start, isCallback);
    const stolen = await new Browser().get(callback);
    assert.equal(stolen.status, 400, 'in another browser');
    const finished = await browser.get(callback);
    assert.equal(finished.status, 200, finished.body);
    assert.equal(typeof finished.json().token, 'string');
    const replayed = await browser.get(callback);
    assert.deepEqual([replayed.status, replayed.json().code], [400, 'sign_in_invalid']);

    const { next: late = '' } = await browser.follow(start, isCallback);
    served.moveClock(601);
    const stale = await browser.get(late);
    assert.deepEqual([stale.status, stale.json().code], [400, 'sign_in_invalid']);

    const never = await browser.get(`${start}/callback?code=x&state=${'A'.repeat(43)}`);
    assert.deepEqual([never.status, never.json().code], [400, 'sign_in_invalid']);
    for (const redirect of foreignPages) {
      const refused = await browser.get(`${start}?redirect=${redirect}`);
      assert.equal(refused.status, 400, redirect);
      assert.equal(refused.json().code, 'query_parameter_invalid', redirect);
      assert.equal(refused.headers.get('location'), null);
    }
    const led = await browser.get(start, { Host: 'evil.example' });
    const redirectUri = new URL(String(led.headers.get('location'))).searchParams.get('redirect_uri');
    assert.equal(redirectUri, `${start}/callback`, 'whatever Host says');
    assert.equal((await browser.get(`${origin}${base}/auth/oauth/unknown`)).status, 404);
  });
});

/** As they stand in the URL. */
const foreignPages = [
  '//evil.example',
  '/%5Cevil.example',
  '%5C%5Cevil.example',
  '/%09/evil.example',
  '/%0A/evil.example',
  '%20//evil.example',
  'https://evil.example',
  'https:evil.example',
  'http:/evil.example',
  'javascript:alert(1)',
  'data:text/html,x',
  '/.//evil.example',
  '/..//evil.example',
  'https%3A%2F%2Fevil.example',
  '/x%0D%0ASet-Cookie:%20a=b',
  '/x%00',
  'page',
  '',
];

describe('header injection', () => {
  it('by a name, an address or a path makes no field', async () => {
    const injected = 'Ada\r\nSet-Cookie: injected=1\r\nBcc: victim@shop.example';
    const address = 'injected@shop.example';
    const json = { email: address, password, name: injected };
    const registered = await client.ask('POST', `${base}/auth/register`, { json });
    assert.ok(registered.status === 201 || registered.status === 422, registered.body);
    if (registered.status === 201) {
      const { raw: sent, to } = await mail.next(address);
      assert.deepEqual(to, [address]);
      assert.doesNotMatch(sent.slice(0, sent.indexOf('\r\n\r\n')), /^(Bcc|Set-Cookie):/im);
    }
    for (const bad of [
      'a@b.example\r\nBcc: victim@shop.example',
      'a\u0000@b.example',
      'a@b.example\n',
      'a b@c',
    ]) {
      const refused = await client.ask('POST', `${base}/auth/register`, { json: { email: bad, password } });
      const trimmed = bad.trim() !== bad;
      assert.equal(refused.status, trimmed ? 201 : 422, JSON.stringify(bad));
    }
    const path = `${base}/auth/oauth/x%0d%0aSet-Cookie:%20injected=1`;
    const answer = await client.ask('GET', path);
    assert.equal(answer.status, 404);
    assert.equal(answer.headers['set-cookie'], undefined);
  });

  it('by Host leads no mail to another site', async () => {
    const json = { email };
    const headers = { Host: 'evil.example', 'X-Forwarded-Host': 'evil.example' };
    const asked = await client.ask('POST', `${base}/auth/password-reset`, { json, headers });
    assert.ok(asked.status === 202 || asked.status === 204 || asked.status === 200, asked.body);
    let sent = await mail.next(email);
    // The mail of the registration may come first.
    if (!/reset|password/i.test(sent.raw)) sent = await mail.next(email);
    assert.ok(codeIn(sent).length === 43);
    assert.doesNotMatch(sent.raw, /evil/);
  });
});

describe('what nobody may give to themselves', () => {
  it('is no part of a registration, of an account, or of a key', async () => {
    const more = {
      roles: ['administrator'],
      scopes: ['admin'],
      disabled: false,
      emailVerified: true,
      tenant: 'x',
    };
    for (const [name, value] of Object.entries(more)) {
      const json = { email: `${name}@shop.example`, password, [name]: value };
      const registered = await client.ask('POST', `${base}/auth/register`, { json });
      assertRefused(registered, 422, 'validation_failed', name);
      const path = `${base}/users/${tokens.userId}`;
      for (const method of ['PATCH', 'PUT']) {
        const changed = {
          ...(method === 'PUT' ? { email } : {}),
          [name]: name === 'disabled' ? true : value,
        };
        const answer = await client.ask(method, path, { json: changed, headers: bearer(tokens.token) });
        assertRefused(answer, 400, 'field_unpatchable', `${method} ${name}`);
      }
    }
    for (const json of [
      { name: 'x', kind: 'secret', scopes: ['admin'] },
      { name: 'x', kind: 'secret', scopes: ['read', 'webhooks'] },
      { name: 'x', kind: 'publishable', scopes: ['read', 'write'] },
    ]) {
      const answer = await client.ask('POST', `${base}/keys`, { json, headers: bearer(tokens.token) });
      assertRefused(answer, 422, 'validation_failed', JSON.stringify(json));
    }
    assert.equal((await ask(bearer(tokens.token))).json().kind, 'user');
    assertRefused(await ask(bearer(tokens.token), `${base}/users`), 403, 'forbidden', 'users');
  });
});
