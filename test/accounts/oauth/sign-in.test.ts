/** Sign-in by a real OpenID provider, from the first redirect to the session (§5.3), over real sockets and both stores. */
import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { type TestContext, test } from 'node:test';
import { sessionCookieName } from '../../../src/accounts/sessions/cookie.ts';
import {
  clientSecret,
  type OpenedProvider,
  openProvider,
  type Person,
} from '../../harness/openid-provider.ts';
import { embeddedOnly, openEmbedded } from '../../harness/stores.ts';
import { Browser } from '../../oidc/browser.ts';
import { type ComityOptions, type OpenedComity, openComity } from '../../oidc/open-comity.ts';
import { accountTables, countsOf, docsOf, factsOf } from '../../oidc/rows.ts';

const ada: Person = { sub: 'ada', email: 'Ada@Shop.Example', email_verified: true, name: 'Ada' };
const cookieName = '__Host-comity_sign_in';

type Opened = { readonly comity: OpenedComity; readonly op: OpenedProvider };

async function open(context: TestContext, options: Partial<ComityOptions> = {}): Promise<Opened> {
  const store = options.store ?? (await openEmbedded(context));
  const op = await openProvider(context);
  const comity = await openComity(context, { providers: [op.provider], ...options, store });
  op.register(comity.callbackOf('oidc'));
  op.signedIn = ada;
  return { comity, op };
}

/** From the start to the URL of the callback, which is not asked for. */
async function comeBack(browser: Browser, { comity }: Opened, query = ''): Promise<string> {
  const { next, body } = await browser.follow(`${comity.startOf('oidc')}${query}`, (url) =>
    url.startsWith(comity.callbackOf('oidc')),
  );
  assert.ok(next !== undefined, body);
  return next;
}

async function assertInvalid(browser: Browser, url: string): Promise<void> {
  const page = await browser.get(url);
  assert.deepEqual([page.status, page.json().code], [400, 'sign_in_invalid'], url);
  assert.equal(page.headers.get('set-cookie'), null);
}

for (const [engine, openStores] of embeddedOnly) {
  test(`makes an account for who comes the first time, and knows them the second (${engine})`, async (context) => {
    const [store] = await openStores(context);
    const { comity } = await open(context, { store });
    const first = await new Browser().follow(comity.startOf('oidc'));
    assert.equal(first.status, 200, first.body);
    assert.equal(first.headers.get('cache-control'), 'no-store');
    assert.equal(first.headers.get('set-cookie'), null);
    const { token, expiresIn, refreshToken, user } = first.json() as Record<string, unknown>;
    assert.deepEqual(Object.keys(first.json()).sort(), ['expiresIn', 'refreshToken', 'token', 'user']);
    assert.deepEqual(Object.keys(user as object), ['id', 'email']);
    assert.equal(expiresIn, 900);
    assert.equal((await comity.refresh(String(refreshToken), null)).ok, true);
    const verdict = await comity.sessions.verifyToken(String(token));
    assert.ok(!('problem' in verdict));
    const [account] = await docsOf(store, 'users');
    assert.equal(verdict.principal.id, account?.id);
    const { id, createdAt, updatedAt, ...fields } = account ?? {};
    assert.match(String(id), /^usr_[0-9a-z]{26}$/);
    assert.equal(createdAt, updatedAt);
    assert.deepEqual(fields, {
      email: 'ada@shop.example',
      name: 'Ada',
      emailVerified: true,
      roles: [],
      scopes: ['read', 'write'],
      disabled: false,
    });
    assert.equal((await docsOf(store, 'passwords'))[0]?.hash, null);
    const facts = ['account.registered', 'identity.linked', 'login.succeeded'];
    assert.deepEqual((await factsOf(store)).toSorted(), facts);

    const second = await new Browser().follow(comity.startOf('oidc'));
    assert.deepEqual(second.json().user, user);
    assert.deepEqual(await countsOf(store), {
      users: 1,
      passwords: 1,
      identities: 1,
      sessions: 2,
      sign_ins: 0,
    });
    assert.deepEqual((await factsOf(store)).toSorted(), [...facts, 'login.succeeded']);
  });
}

test('asks the provider for a code with state, nonce and PKCE', async (context) => {
  const { comity, op } = await open(context);
  const page = await new Browser().get(comity.startOf('oidc'));
  assert.equal(page.status, 303);
  assert.equal(page.headers.get('cache-control'), 'no-store');
  const location = new URL(page.headers.get('location') ?? '');
  assert.equal(location.origin, op.issuer);
  const { state = '', nonce = '', code_challenge = '', ...rest } = Object.fromEntries(location.searchParams);
  for (const secret of [state, nonce, code_challenge]) assert.match(secret, /^[\w-]{43}$/);
  assert.equal(new Set([state, nonce, code_challenge]).size, 3);
  assert.deepEqual(rest, {
    response_type: 'code',
    client_id: 'comity',
    redirect_uri: comity.callbackOf('oidc'),
    scope: 'openid email profile',
    code_challenge_method: 'S256',
  });
  const attributes = '; Path=/; Max-Age=600; HttpOnly; Secure; SameSite=Lax';
  const [cookie = '', ...others] = page.headers.getSetCookie();
  assert.equal(others.length, 0);
  assert.match(cookie, new RegExp(`^${cookieName}=[\\w-]{43}${attributes}$`));
});

test('leads on to where it was asked, with a session cookie', async (context) => {
  const opened = await open(context, { allowedOrigins: ['https://app.example'] });
  for (const [redirect, location] of [
    ['/welcome?x=1', '/welcome?x=1'],
    ['https://app.example/in', 'https://app.example/in'],
  ]) {
    const browser = new Browser();
    const callback = await comeBack(browser, opened, `?redirect=${encodeURIComponent(redirect ?? '')}`);
    const page = await browser.get(callback);
    assert.deepEqual([page.status, page.headers.get('location'), page.body], [303, location, '']);
    assert.equal(page.headers.get('cache-control'), 'no-store');
    assert.match(
      page.headers.getSetCookie().join('\n'),
      /^__Host-comity_session=\S+; Path=\/; Max-Age=\d+; HttpOnly; Secure; SameSite=Lax$/,
    );
    const cookie = browser.cookie(opened.comity.origin, sessionCookieName);
    const verdict = await opened.comity.sessions.verifyCookie(cookie ?? '');
    assert.ok(!('problem' in verdict));
    assert.equal(verdict.scheme, 'session-cookie');
  }
});

test('begins nothing that would lead elsewhere', async (context) => {
  const { comity } = await open(context, { allowedOrigins: ['https://app.example'] });
  const queries = [
    'redirect=//evil.example',
    'redirect=https://evil.example/',
    'redirect=/%5Cevil.example',
    'redirect=/%0d%0aSet-Cookie:%20a=b',
    'redirect=/ok&redirect=//evil.example',
    'redirect=',
    'link=yes',
    'prompt=none',
    'redirect=%ff',
  ];
  for (const query of queries) {
    const page = await new Browser().get(`${comity.startOf('oidc')}?${query}`);
    assert.deepEqual([page.status, page.json().code], [400, 'query_parameter_invalid'], query);
    assert.deepEqual([page.headers.get('location'), page.headers.get('set-cookie')], [null, null]);
  }
  assert.equal((await countsOf(comity.store)).sign_ins, 0);
});

test('knows no provider that is not declared', async (context) => {
  const { comity } = await open(context);
  for (const url of [comity.startOf('other'), `${comity.callbackOf('other')}?state=x&code=y`]) {
    assert.equal((await new Browser().get(url)).status, 404);
  }
});

test('tells of a refusal by the provider in its own words only', async (context) => {
  const opened = await open(context);
  const { comity, op } = opened;
  op.signedIn = undefined;
  const page = await new Browser().follow(comity.startOf('oidc'));
  assert.equal(page.status, 400);
  assert.deepEqual(page.json(), {
    error: 'this sign-in cannot be finished; start it again',
    code: 'sign_in_invalid',
    reason: 'access_denied',
  });
  const browser = new Browser();
  const callback = new URL(await comeBack(browser, opened));
  callback.searchParams.set('error', '<script>');
  const forged = await browser.get(callback.href);
  assert.deepEqual([forged.status, forged.json().reason], [400, undefined]);
  assert.deepEqual(Object.values(await countsOf(comity.store)), [0, 0, 0, 0, 0]);
});

test('ends a sign-in once: a callback that comes again is refused', async (context) => {
  const opened = await open(context);
  const browser = new Browser();
  const callback = await comeBack(browser, opened);
  assert.equal((await browser.get(callback)).status, 200);
  await assertInvalid(browser, callback);
  assert.equal((await countsOf(opened.comity.store)).sessions, 1);
});

test('lets one of two callbacks at the same moment through', async (context) => {
  const opened = await open(context);
  const browser = new Browser();
  const callback = await comeBack(browser, opened);
  const pages = await Promise.all([browser.get(callback), browser.get(callback), browser.get(callback)]);
  assert.deepEqual(pages.map(({ status }) => status).sort(), [200, 400, 400]);
});

test('refuses a callback in another browser, and still takes it in its own', async (context) => {
  const opened = await open(context);
  const browser = new Browser();
  const callback = await comeBack(browser, opened);
  await assertInvalid(new Browser(), callback);
  const other = new Browser();
  await other.get(opened.comity.startOf('oidc'));
  await assertInvalid(other, callback);
  assert.equal((await countsOf(opened.comity.store)).sessions, 0);
  assert.equal((await browser.get(callback)).status, 200);
});

test('refuses a callback after its time', async (context) => {
  const opened = await open(context);
  const browser = new Browser();
  const early = await comeBack(browser, opened);
  opened.comity.moveClock(599);
  assert.equal((await browser.get(early)).status, 200);
  const late = await comeBack(browser, opened);
  opened.comity.moveClock(600);
  await assertInvalid(browser, late);
});

test('refuses a callback that belongs to another provider', async (context) => {
  const store = await openEmbedded(context);
  const [op, second] = [await openProvider(context), await openProvider(context, 'second')];
  const comity = await openComity(context, { store, providers: [op.provider, second.provider] });
  op.register(comity.callbackOf('oidc'));
  op.signedIn = ada;
  const browser = new Browser();
  const callback = await comeBack(browser, { comity, op });
  await assertInvalid(browser, callback.replace(comity.callbackOf('oidc'), comity.callbackOf('second')));
});

test('refuses a callback that is not what the provider sent', async (context) => {
  const opened = await open(context);
  const { comity } = opened;
  const browser = new Browser();
  const forgeries: readonly ((query: URLSearchParams) => void)[] = [
    (query) => query.delete('state'),
    (query) => query.set('state', 'a'.repeat(43)),
    (query) => query.set('state', 'short'),
    (query) => query.set('state', ''),
    (query) => query.delete('code'),
    (query) => query.set('code', ''),
    (query) => query.set('code', 'a-code-of-somebody-else'),
    (query) => query.append('code', 'second'),
    (query) => query.append('state', query.get('state') ?? ''),
    (query) => query.set('iss', 'https://evil.example'),
    (query) => query.delete('iss'),
    (query) => query.set('response', 'eyJhbGciOiJub25lIn0.e30.'),
    (query) => query.set('id_token', 'x'),
  ];
  for (const forge of forgeries) {
    const callback = new URL(await comeBack(browser, opened));
    forge(callback.searchParams);
    await assertInvalid(browser, callback.href);
  }
  await assertInvalid(browser, `${comity.callbackOf('oidc')}?state=%ff&code=x`);
  await assertInvalid(browser, comity.callbackOf('oidc'));
  const { users, identities, sessions } = await countsOf(comity.store);
  assert.deepEqual([users, identities, sessions], [0, 0, 0]);
});

test('refuses a code that was given to another sign-in of the same browser', async (context) => {
  const opened = await open(context);
  const browser = new Browser();
  const one = new URL(await comeBack(browser, opened));
  const other = new URL(await comeBack(browser, opened));
  one.searchParams.set('code', other.searchParams.get('code') ?? '');
  await assertInvalid(browser, one.href);
});

test('leaves a sign-in alone when its callback is only looked at', async (context) => {
  const opened = await open(context);
  const browser = new Browser();
  const callback = await comeBack(browser, opened);
  const looked = await browser.get(callback, {}, 'HEAD');
  assert.deepEqual([looked.status, looked.headers.get('set-cookie')], [400, null]);
  assert.equal((await browser.get(callback, { 'If-Match': '"x"' })).status, 412);
  assert.equal((await countsOf(opened.comity.store)).sessions, 0);
  assert.equal((await browser.get(callback)).status, 200);
});

test('lets one browser sign in from two windows', async (context) => {
  const opened = await open(context);
  const browser = new Browser();
  const [one, other] = [await comeBack(browser, opened), await comeBack(browser, opened)];
  assert.equal((await browser.get(one)).status, 200);
  assert.equal((await browser.get(other)).status, 200);
});

test('does not take over a secret that it did not make', async (context) => {
  const { comity } = await open(context);
  for (const planted of ['short', 'x'.repeat(43) + '=', 'a b']) {
    const browser = new Browser();
    browser.setCookie(comity.origin, cookieName, planted);
    await browser.get(comity.startOf('oidc'));
    assert.match(browser.cookie(comity.origin, cookieName) ?? '', /^[\w-]{43}$/);
  }
});

test('answers 502 while the provider is away, and stores nothing', async (context) => {
  const opened = await open(context);
  const { comity, op } = opened;
  const browser = new Browser();
  const callback = await comeBack(browser, opened);
  await op.stop();
  const back = await browser.get(callback);
  assert.deepEqual([back.status, back.json().code], [502, 'provider_unavailable']);
  comity.moveClock(3601);
  const start = await browser.get(comity.startOf('oidc'));
  assert.deepEqual([start.status, start.json().code], [502, 'provider_unavailable']);
  assert.deepEqual(Object.values(await countsOf(comity.store)), [0, 0, 0, 0, 0]);
  const failures = comity.observations.filter(({ kind }) => kind === 'provider-failed');
  assert.deepEqual(
    failures.map((failure) => 'provider' in failure && [failure.provider, String(failure.error)]),
    [
      ['oidc', 'ProviderFailure: sign-in: fetch failed (ECONNREFUSED)'],
      ['oidc', 'ProviderFailure: discovery: fetch failed (ECONNREFUSED)'],
    ],
  );
});

test('keeps nothing in the store by which a sign-in could be finished', async (context) => {
  const opened = await open(context);
  const { comity } = opened;
  const browser = new Browser();
  const callback = new URL(await comeBack(browser, opened));
  const secret = browser.cookie(comity.origin, cookieName) ?? '';
  const state = callback.searchParams.get('state') ?? '';
  const [row] = await docsOf(comity.store, 'sign_ins');
  assert.deepEqual(Object.keys(row ?? {}).sort(), ['browser', 'link', 'provider', 'redirect']);
  assert.equal(row?.browser, hash('sha256', secret, 'base64url'));
  const first = await browser.get(callback.href);
  const { token, refreshToken } = first.json() as { token: string; refreshToken: string };
  const rows = await Promise.all([...accountTables, 'audit'].map((table) => docsOf(comity.store, table)));
  const kept = JSON.stringify([row, rows]);
  const code = callback.searchParams.get('code') ?? '';
  for (const given of [secret, state, code, clientSecret, token, refreshToken]) {
    assert.ok(given.length > 20 && !kept.includes(given), given);
  }
});

test('opens no account where registration is closed', async (context) => {
  const { comity } = await open(context, { settings: { registration: 'closed' } });
  const page = await new Browser().follow(comity.startOf('oidc'));
  assert.deepEqual(page.json(), {
    error: 'no account belongs to this identity, and registration is closed',
    code: 'forbidden',
  });
  assert.deepEqual(Object.values(await countsOf(comity.store)), [0, 0, 0, 0, 0]);
});

test('opens no account without an address, nor without a verified one where that is required', async (context) => {
  const { comity, op } = await open(context);
  op.signedIn = { sub: 'nobody' };
  const page = await new Browser().follow(comity.startOf('oidc'));
  assert.deepEqual(
    [page.status, page.json().error],
    [400, 'the provider sent no e-mail address, and an account requires one'],
  );
  const strict = await open(context, { settings: { verifiedEmailRequired: true } });
  strict.op.signedIn = { ...ada, email_verified: false };
  const refused = await new Browser().follow(strict.comity.startOf('oidc'));
  assert.deepEqual([refused.status, refused.json().error], [403, 'the e-mail address is not verified']);
});
