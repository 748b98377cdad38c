/** Bad input to authentication at the wire: each is refused with an exact status, and none makes the program fail or tell. */
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import {
  base,
  basic,
  bearer,
  login,
  makeKey,
  register,
  serveAccounts,
  sessionCookieName,
  setCookies,
} from '../../harness/account-client.ts';
import { adminKey, type RequestOptions } from '../../harness/exchange.ts';
import type { Expectation } from '../../harness/expected-answer.ts';
import { codeIn, startUsersMailServer } from '../../harness/mail-server.ts';
import { openProvider } from '../../harness/openid-provider.ts';
import { Browser } from '../../oidc/browser.ts';
import { serveOn } from './matrix/engines.ts';

const config = fileURLToPath(new URL('./fixtures/pages.config.ts', import.meta.url));
const email = 'ada@shop.example';
const password = 'correct horse battery staple';

const mail = await startUsersMailServer();
const { program, client } = await serveAccounts({
  config,
  env: {
    COMITY_SMTP_URL: mail.url,
    COMITY_LOGIN_ATTEMPTS: '0',
    COMITY_RATE_LIMIT_READS: '0',
    COMITY_RATE_LIMIT_WRITES: '0',
  },
});
await register(client, email, password);
const tokens = await login(client, email, password, true);
const { key } = await makeKey(client, bearer(tokens.token));

const ask = (headers: NonNullable<RequestOptions['headers']>, expect: Expectation, query = '') =>
  client.ask('GET', `auth/me${query}`, { headers, expect });
const signUp = (json: object, expect: Expectation) => client.ask('POST', 'auth/register', { json, expect });

const basicOf = (bytes: string | Uint8Array) => `Basic ${Buffer.from(bytes).toString('base64')}`;
const invalid: Expectation = [401, 'invalid_credentials'];
const repeated: Expectation = [400, 'credentials_repeated'];

describe('Basic', () => {
  const good = Buffer.from(`${email}:${password}`).toString('base64');
  for (const [what, Authorization] of [
    ['no base64', 'Basic !!!'],
    ['base64url alone', 'Basic __--'],
    ['one character', 'Basic A'],
    ['a stray padding', `Basic ${good}=====`],
    ['text behind the padding', `Basic ${good} ${good}`],
    ['stray bits', 'Basic YWI6Yx=='],
    ['parameters instead', `Basic user="${email}", password="${password}"`],
    ['no colon', basicOf(email)],
    ['bytes that are not UTF-8', basicOf(Buffer.from([0x61, 0x3a, 0xff, 0xfe]))],
    ['an overlong encoding of NUL', basicOf(Buffer.from([0x61, 0x3a, 0xc0, 0x80]))],
    ['half of a surrogate pair', basicOf(Buffer.from([0x61, 0x3a, 0xed, 0xa0, 0x80]))],
    ['nothing at all', 'Basic'],
  ] as const) {
    it(`is refused with ${what}`, async () => {
      await ask({ Authorization }, invalid);
    });
  }

  it('is refused with any control character, NUL among them, in the user and in the password', async () => {
    await ask(basic(email, password), 200);
    for (let code = 0; code < 0x20; code += 1) {
      const control = String.fromCharCode(code);
      await ask(basic(email + control, password), invalid);
      await ask(basic(control + email, password), invalid);
      await ask(basic(email, password + control), invalid);
      await ask(basic(email, `${password}${control}more`), invalid);
    }
    await ask(basic(email, `${password}\u007f`), invalid);
  });

  it('is refused however long it is', async () => {
    await ask(basic(email, 'x'.repeat(2000)), invalid);
    await ask(basic('x'.repeat(2000), password), invalid);
  });

  it('never takes a password for another that begins or ends alike', async () => {
    const long = `${'p'.repeat(200)} 1`;
    await register(client, 'long@shop.example', long);
    // What ends a text elsewhere is in no password.
    const nul = { email: 'nul@shop.example', password: 'a password\u0000with more' };
    await signUp(nul, [422, 'validation_failed']);
    for (const [user, typed, expect] of [
      ['long@shop.example', long, 200],
      ['long@shop.example', `${'p'.repeat(200)} 2`, 401],
      ['long@shop.example', 'p'.repeat(72), 401],
      [email, `${password} `, 401],
      [email, ` ${password}`, 401],
      [email, password.toUpperCase(), 401],
      [email, '', 401],
    ] as const) {
      await client.ask('POST', 'auth/login', { json: { email: user, password: typed }, expect });
    }
  });
});

describe('an API key', () => {
  it('is refused with control characters, cut, decorated or in another spelling', async () => {
    for (const wrong of [
      ...[`${key}x`, key.slice(0, -1), key.toUpperCase(), `${key} ${key}`, 'sk_', 'pk_', `${key},${key}`],
      ...[`sk_${'A'.repeat(43)}`, 'x'.repeat(8000)],
    ]) {
      await ask({ 'X-API-Key': wrong }, [401, 'invalid_api_key']);
    }
    const controls = Array.from({ length: 0x20 }, (_, code) => `%${code.toString(16).padStart(2, '0')}`);
    for (const control of [...controls, '%7f', '%C2%80', '%FF', '%E2%80%8B']) {
      await ask({}, 401, `?api_key=${control + key.slice(0, 20)}`);
      await ask({}, 401, `?api_key=${key.slice(0, 20) + control + key.slice(20)}`);
    }
    await ask({}, 200, `?api_key=${key}`);
  });

  it('too long for a message is 414 or 431, and does no harm', async () => {
    await ask({}, 414, `?api_key=sk_${'x'.repeat(20_000)}`);
    for (const headers of [bearer('x'.repeat(100_000)), { 'X-API-Key': 'x'.repeat(100_000) }]) {
      const answer = await client
        .ask('GET', 'auth/me', { headers })
        .catch((error: NodeJS.ErrnoException) => error);
      // The server may close before a client has sent so much.
      if ('status' in answer) assert.equal(answer.status, 431);
      else assert.ok(answer.code === 'ECONNRESET' || answer.code === 'EPIPE', String(answer));
    }
    await ask({ 'X-API-Key': key }, 200);
  });
});

describe('more than one credential', () => {
  const carriers = (credential: string) => [
    bearer(credential),
    basic(credential, ''),
    { Authorization: `Api-Key ${credential}` },
    { Authorization: `ApiKey ${credential}` },
  ];

  it('in a header field and the query component is 400, whether good, bad or alike', async () => {
    for (const queried of [key, adminKey, 'sk_unknown', '']) {
      for (const credential of [key, adminKey, 'sk_unknown']) {
        for (const headers of [...carriers(credential), { 'X-API-Key': credential }])
          await ask(headers, repeated, `?api_key=${queried}`);
      }
    }
  });

  it('in two header fields is 400', async () => {
    for (const headers of carriers(key)) await ask({ ...headers, 'X-API-Key': adminKey }, repeated);
  });

  it('in a field that came twice, or a parameter that came twice, is 400', async () => {
    for (const lines of [
      [`Authorization: Bearer ${key}`, `Authorization: Bearer ${adminKey}`],
      [`X-API-Key: ${key}`, `X-API-Key: ${adminKey}`],
    ]) {
      const socket = connect(program.port, '127.0.0.1');
      const head = ['GET /api/v1/auth/me HTTP/1.1', 'Host: a', ...lines, 'Connection: close', '', ''];
      socket.end(head.join('\r\n'));
      assert.match(await text(socket), /^HTTP\/1\.1 400 /, lines.join());
    }
    await ask({}, 400, `?api_key=${key}&api_key=${adminKey}`);
  });

  it('beside a session cookie counts alone: what was sent on purpose outranks what the browser adds', async () => {
    const Cookie = tokens.cookie;
    await ask({ ...bearer('sk_unknown'), Cookie }, [401, 'invalid_token']);
    await ask({ 'X-API-Key': adminKey, Cookie }, { status: 200, members: { kind: 'administrator' } });
    await ask({ ...bearer(tokens.token), Cookie: `${sessionCookieName}=dead` }, 200);
  });
});

describe('a session cookie', () => {
  const logIn = async (Cookie: string) => {
    const json = { email, password, cookie: true };
    const answer = await client.ask('POST', 'auth/login', { json, headers: { Cookie }, expect: 200 });
    return setCookies(answer)[0] ?? '';
  };
  const valueIn = (cookie: string) => cookie.slice(cookie.indexOf('=') + 1).split(';', 1)[0] ?? '';

  it('cannot be fixed before a login: the login makes its own, and what was planted stays worthless', async () => {
    for (const cookie of [
      `${sessionCookieName}=planted`,
      `${sessionCookieName}=ses_${'0'.repeat(26)}.${'A'.repeat(43)}`,
      `${sessionCookieName}=a; ${sessionCookieName}=b`,
    ]) {
      const made = await logIn(cookie);
      assert.match(
        made,
        /^__Host-comity_session=ses_[^;]+; Path=\/; Max-Age=\d+; HttpOnly; Secure; SameSite=Lax$/,
      );
      assert.ok(!cookie.includes(valueIn(made)));
      await ask({ Cookie: cookie }, 401);
    }
  });

  it('is never the same twice, and a login with an old one makes a new one', async () => {
    const seen = new Set([valueIn(tokens.cookie)]);
    for (let round = 0; round < 5; round += 1) seen.add(valueIn(await logIn(tokens.cookie)));
    assert.equal(seen.size, 6);
  });

  it('is nobody when two of its name came: none of them can be told from a planted one', async () => {
    await ask({ Cookie: `${tokens.cookie}; ${sessionCookieName}=planted` }, 401);
  });

  it('is nobody with the secret of another session, or cut, or decorated', async () => {
    const value = valueIn(tokens.cookie);
    const [session = '', secret = ''] = value.split('.');
    const other = await login(client, email, password, true);
    const [, otherSecret = ''] = valueIn(other.cookie).split('.');
    for (const forged of [
      ...[`${session}.${otherSecret}`, `${session}.`, `.${secret}`, session, secret, value.slice(0, -1)],
      ...[`${value}A`, `"${value}"x`, value.toUpperCase(), encodeURIComponent(`${value}\u0000`)],
    ]) {
      await ask({ Cookie: `${sessionCookieName}=${forged}` }, [401, 'no_token_provided']);
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
    const isRefused = async (url: string, code: string) => {
      const refused = await browser.get(url);
      assert.deepEqual([refused.status, refused.json().code], [400, code], url);
      return refused;
    };
    const { next: callback = '' } = await browser.follow(start, isCallback);
    const stolen = await new Browser().get(callback);
    assert.equal(stolen.status, 400, 'in another browser');
    const finished = await browser.get(callback);
    assert.equal(finished.status, 200, finished.body);
    assert.equal(typeof finished.json().token, 'string');
    await isRefused(callback, 'sign_in_invalid');
    const { next: late = '' } = await browser.follow(start, isCallback);
    served.moveClock(601);
    await isRefused(late, 'sign_in_invalid');
    await isRefused(`${start}/callback?code=x&state=${'A'.repeat(43)}`, 'sign_in_invalid');
    for (const redirect of foreignPages) {
      const refused = await isRefused(`${start}?redirect=${redirect}`, 'query_parameter_invalid');
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
  ...['//evil.example', '/%5Cevil.example', '%5C%5Cevil.example', '/%09/evil.example', '/%0A/evil.example'],
  ...['%20//evil.example', 'https://evil.example', 'https:evil.example', 'http:/evil.example'],
  ...['javascript:alert(1)', 'data:text/html,x', '/.//evil.example', '/..//evil.example'],
  ...['https%3A%2F%2Fevil.example', '/x%0D%0ASet-Cookie:%20a=b', '/x%00', 'page', ''],
];

describe('header injection', () => {
  it('by a name, an address or a path makes no field', async () => {
    const injected = 'Ada\r\nSet-Cookie: injected=1\r\nBcc: victim@shop.example';
    const address = 'injected@shop.example';
    const json = { email: address, password, name: injected };
    const registered = await client.ask('POST', 'auth/register', { json });
    assert.ok(registered.status === 201 || registered.status === 422, registered.body);
    if (registered.status === 201) {
      const { raw: sent, to } = await mail.next(address);
      assert.deepEqual(to, [address]);
      assert.doesNotMatch(sent.slice(0, sent.indexOf('\r\n\r\n')), /^(Bcc|Set-Cookie):/im);
    }
    await signUp({ email: 'a@b.example\r\nBcc: victim@shop.example', password }, 422);
    await signUp({ email: 'a\u0000@b.example', password }, 422);
    // The end of a line is trimmed.
    await signUp({ email: 'a@b.example\n', password }, 201);
    await signUp({ email: 'a b@c', password }, 422);
    const expect = { status: 404, fields: { 'set-cookie': undefined } };
    await client.ask('GET', 'auth/oauth/x%0d%0aSet-Cookie:%20injected=1', { expect });
  });

  it('by Host leads no mail to another site', async () => {
    const headers = { Host: 'evil.example', 'X-Forwarded-Host': 'evil.example' };
    const asked = await client.ask('POST', 'auth/password-reset', { json: { email }, headers });
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
    const as = tokens.token;
    for (const [name, value] of Object.entries({
      ...{ roles: ['administrator'], scopes: ['admin'], disabled: true, emailVerified: true, tenant: 'x' },
    })) {
      const given = { email: `${name}@shop.example`, password, [name]: name === 'disabled' ? false : value };
      await signUp(given, [422, 'validation_failed']);
      const expect: Expectation = [400, 'field_unpatchable'];
      const path = `users/${tokens.userId}`;
      await client.ask('PATCH', path, { json: { [name]: value }, as, expect });
      await client.ask('PUT', path, { json: { email, [name]: value }, as, expect });
    }
    for (const json of [
      { name: 'x', kind: 'secret', scopes: ['admin'] },
      { name: 'x', kind: 'secret', scopes: ['read', 'webhooks'] },
      { name: 'x', kind: 'publishable', scopes: ['read', 'write'] },
    ]) {
      await client.ask('POST', 'keys', { json, as, expect: [422, 'validation_failed'] });
    }
    await client.ask('GET', 'auth/me', { as, expect: { status: 200, members: { kind: 'user' } } });
    await client.ask('GET', 'users', { as, expect: [403, 'forbidden'] });
  });
});
