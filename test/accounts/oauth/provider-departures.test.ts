/**
 * Providers that depart from OpenID Connect and RFC 7636 (§5.3): each setting and each preset, against a provider that behaves as the
 * vendor's documentation says.
 */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { decodeJwt, decodeProtectedHeader, exportPKCS8, exportSPKI, generateKeyPair, jwtVerify } from 'jose';
import { type OAuthProvider, readOAuthProviders } from '../../../src/config/oauth-providers.ts';
import {
  type Behaviour,
  type FakeProvider,
  openFakeProvider,
} from '../../harness/forging-openid-provider.ts';
import { clientSecret } from '../../harness/openid-provider.ts';
import { engines, openEmbedded } from '../../harness/stores.ts';
import { Browser, type Page } from '../../oidc/browser.ts';
import { type OpenedComity, openComity } from '../../oidc/open-comity.ts';
import { countsOf, docsOf } from '../../oidc/rows.ts';

const email = 'eve@shop.example';
const address = { email, email_verified: true };
const { privateKey, publicKey } = await generateKeyPair('ES256', { extractable: true });

/** As the environment declares it, at the address of the fake. */
function configured(
  fake: FakeProvider,
  name: string,
  parts: Readonly<Record<string, string>>,
): OAuthProvider {
  const mistakes: string[] = [];
  const all = { CLIENT_ID: 'comity', CLIENT_SECRET: clientSecret, ISSUER: fake.issuer, ...parts };
  const environment = Object.entries(all).map(([part, value]) => [`COMITY_OAUTH_${name}_${part}`, value]);
  const [provider] = readOAuthProviders(Object.fromEntries(environment), mistakes).values();
  assert.deepEqual(mistakes, []);
  assert.ok(provider);
  return provider;
}

type Opened = { readonly comity: OpenedComity; readonly fake: FakeProvider; readonly name: string };

async function open(
  context: TestContext,
  behave: Behaviour,
  parts: Readonly<Record<string, string>> = {},
  preset = 'FAKE',
): Promise<Opened> {
  const fake = await openFakeProvider(context);
  fake.behave = { claims: address, ...behave };
  const provider = configured(fake, preset, parts);
  const comity = await openComity(context, { store: await openEmbedded(context), providers: [provider] });
  return { comity, fake, name: provider.name };
}

async function assertEnters(opened: Opened, verified = true): Promise<Page> {
  const page = await new Browser().follow(opened.comity.startOf(opened.name));
  assert.equal(page.status, 200, page.body);
  const [user] = await docsOf(opened.comity.store, 'users');
  assert.deepEqual([user?.email, user?.emailVerified], [email, verified]);
  return page;
}

async function assertRefused({ comity, name, fake }: Opened, code = 'provider_unavailable'): Promise<void> {
  const page = await new Browser().follow(comity.startOf(name));
  if (page.url.startsWith(fake.issuer)) return;
  assert.equal(page.json().code, code, page.body);
  const { users, identities, sessions } = await countsOf(comity.store);
  assert.deepEqual([users, identities, sessions], [0, 0, 0]);
}

const json = (value: unknown) => ({ body: JSON.stringify(value) });

const understood: readonly (readonly [what: string, behave: Behaviour])[] = [
  ['scope as a list', { tokens: (good) => json({ ...good, scope: ['openid', 'email'] }) }],
  ['no token_type', { tokens: ({ token_type: _, ...good }) => json(good) }],
  ['an empty token_type', { tokens: (good) => json({ ...good, token_type: '' }) }],
  [
    'tokens as a form',
    {
      tokens: (good) => ({
        body: new URLSearchParams(
          Object.entries(good).map(([name, value]) => [name, String(value)]),
        ).toString(),
        type: 'application/x-www-form-urlencoded; charset=utf-8',
      }),
    },
  ],
  ['email_verified as text', { claims: { email, email_verified: 'true' } }],
  ['userinfo as a signed token, though not advertised', { claims: {}, signedUserinfo: address }],
];

for (const [what, behave] of understood) {
  test(`understands ${what} without a setting`, async (context) => {
    await assertEnters(await open(context, behave));
  });
}

const notBearer: readonly (readonly [what: string, behave: Behaviour])[] = [
  ['another token_type', { tokens: (good) => json({ ...good, token_type: 'mac' }) }],
  ['a list in place of an answer', { tokens: (good) => json([good]) }],
  ['an error with status 200', { tokens: () => json({ ok: false, error: 'invalid_code' }) }],
  ['userinfo of another person', { claims: {}, signedUserinfo: { ...address, sub: 'another' } }],
  ['userinfo for another client', { claims: {}, signedUserinfo: { ...address, aud: 'another' } }],
  ['userinfo of another issuer', { claims: {}, signedUserinfo: { ...address, iss: 'https://evil.example' } }],
  ['userinfo with a MAC', { claims: {}, signedUserinfo: address, mac: clientSecret }],
];

for (const [what, behave] of notBearer) {
  test(`still refuses ${what}`, async (context) => assertRefused(await open(context, behave)));
}

const settings: readonly (readonly [
  what: string,
  parts: Readonly<Record<string, string>>,
  behave: Behaviour,
])[] = [
  ['no nonce', { NONCE: 'off' }, { refuses: ['nonce'] }],
  ['no PKCE', { PKCE: 'off' }, { refuses: ['code_challenge', 'code_challenge_method', 'code_verifier'] }],
  ['the secret in the form, though not advertised', { CLIENT_AUTH: 'post' }, { wants: 'post' }],
  [
    'the secret in the header, though not advertised',
    { CLIENT_AUTH: 'basic' },
    { wants: 'basic', discovery: { token_endpoint_auth_methods_supported: ['client_secret_post'] } },
  ],
  ['ID tokens with HS256', { ALGORITHMS: 'HS256' }, { mac: clientSecret }],
  [
    'userinfo with HS256',
    { ALGORITHMS: 'HS256' },
    { mac: clientSecret, claims: {}, signedUserinfo: address },
  ],
];

for (const [what, parts, behave] of settings) {
  test(`a setting allows ${what}, which is refused without it`, async (context) => {
    await assertEnters(await open(context, behave, parts));
    await assertRefused(await open(context, behave));
  });
}

test('HS256 is a MAC with the client secret, never with what is public', async (context) => {
  const fake = await open(context, {});
  const jwks = await (await fetch(`${fake.fake.issuer}/jwks`)).text();
  const { keys } = JSON.parse(jwks) as { keys: { x: string }[] };
  for (const mac of [
    jwks,
    JSON.stringify(keys[0]),
    keys[0]?.x ?? '',
    await exportSPKI(publicKey),
    'comity',
  ]) {
    await assertRefused(await open(context, { mac }, { ALGORITHMS: 'HS256,ES256' }));
  }
  // A signature by key is refused where only HS256 is configured, and an algorithm of the header changes nothing.
  await assertRefused(await open(context, {}, { ALGORITHMS: 'HS256' }));
  await assertRefused(await open(context, { mac: clientSecret }, { ALGORITHMS: 'ES256' }));
  const none = (good: string) => good.replace(/^[^.]+/, Buffer.from('{"alg":"none"}').toString('base64url'));
  await assertRefused(await open(context, { idToken: none }, { ALGORITHMS: 'HS256,ES256' }));
});

test('without a nonce, an ID token for another client is refused, and so is one with a nonce', async (context) => {
  for (const claims of [{ aud: 'another' }, { nonce: 'of-another-sign-in' }]) {
    const opened = await open(context, { claims: { ...address, ...claims } }, { NONCE: 'off' });
    await assertRefused(opened, 'nonce' in claims ? 'sign_in_invalid' : 'provider_unavailable');
  }
});

/** What the documentation of each vendor says, as of November 2026. */
const vendors: readonly (readonly [name: string, behave: Behaviour, verified: boolean])[] = [
  ['GOOGLE', {}, true],
  // Entra asserts nothing about addresses.
  ['MICROSOFT', { claims: { email } }, false],
  ['LINKEDIN', { refuses: ['nonce', 'code_challenge', 'code_verifier'], wants: 'post' }, true],
  ['SLACK', { wants: 'post', tokens: (good) => json({ ok: true, ...good }) }, true],
  [
    'TWITCH',
    {
      ...{ wants: 'post', refuses: ['code_challenge', 'code_verifier'] },
      tokens: (good) => json({ ...good, token_type: 'bearer', scope: ['openid', 'user:read:email'] }),
    },
    true,
  ],
  ['LINE', { wants: 'post', mac: clientSecret, claims: { email } }, false],
  ['GITLAB', {}, true],
  ['KEYCLOAK', { claims: { ...address, azp: 'comity', typ: 'ID' } }, true],
  ['AUTH0', {}, true],
  ['OKTA', {}, true],
  ['COGNITO', { claims: { email, email_verified: 'true', token_use: 'id' } }, true],
  ['CLERK', {}, true],
];

for (const [name, behave, verified] of vendors) {
  test(`the preset ${name.toLowerCase()} signs in where the vendor answers as documented`, async (context) => {
    const opened = await open(context, behave, {}, name);
    await assertEnters(opened, verified);
  });
}

test('the preset twitch asks for the claims that it needs', async (context) => {
  const { comity } = await open(context, {}, {}, 'TWITCH');
  const location = new URL((await new Browser().get(comity.startOf('twitch'))).headers.get('location') ?? '');
  assert.deepEqual(JSON.parse(location.searchParams.get('claims') ?? ''), {
    id_token: { email: null, email_verified: null },
  });
});

const apple = {
  CLIENT_SECRET: (await exportPKCS8(privateKey)).trim(),
  KEY_ID: 'ABC123DEFG',
  TEAM_ID: 'DEF123GHIJ',
};

/** The form that the page of the provider sends. */
function formOf(page: Page): { readonly action: string; readonly form: URLSearchParams } {
  const inputs = page.body.matchAll(/name="([^"]*)" value="([^"]*)"/g);
  return {
    action: /action="([^"]*)"/.exec(page.body)?.[1] ?? '',
    form: new URLSearchParams(
      [...inputs].map(([, name = '', value = '']) => [name, value.replaceAll('&quot;', '"')]),
    ),
  };
}

test('the preset apple signs its secret, takes the form and the name beside the code', async (context) => {
  const user = '{"name":{"firstName":"Eve","lastName":"Smith"},"email":"victim@shop.example"}';
  for (const CLIENT_SECRET of [apple.CLIENT_SECRET, apple.CLIENT_SECRET.replaceAll('\n', '\\n')]) {
    const opened = await open(
      context,
      {
        ...{ wants: 'post', refuses: ['code_challenge'], back: { user, iss: null } },
        claims: { email, email_verified: 'true' },
        discovery: { authorization_response_iss_parameter_supported: false },
      },
      { ...apple, CLIENT_SECRET },
      'APPLE',
    );
    const browser = new Browser();
    const { action, form } = formOf(await browser.follow(opened.comity.startOf('apple')));
    const posted = await browser.post(action, form);
    assert.deepEqual([posted.status, posted.headers.getSetCookie()], [303, []]);
    const location = new URL(posted.headers.get('location') ?? '', action);
    assert.equal(location.origin + location.pathname, opened.comity.callbackOf('apple'));
    const page = await browser.get(location.href);
    assert.equal(page.status, 200, page.body);
    const [account] = await docsOf(opened.comity.store, 'users');
    assert.deepEqual([account?.email, account?.emailVerified, account?.name], [email, true, 'Eve Smith']);
    const secret = opened.fake.exchanges[0]?.get('client_secret') ?? '';
    assert.deepEqual(decodeProtectedHeader(secret), { alg: 'ES256', kid: apple.KEY_ID });
    const { iat = 0, exp = 0 } = decodeJwt(secret);
    assert.equal(exp - iat, 300);
    await jwtVerify(secret, publicKey, {
      ...{ issuer: apple.TEAM_ID, audience: opened.fake.issuer, subject: 'comity' },
      currentDate: new Date(iat * 1000),
    });
  }
});

test('a form leads to the callback alone, with known parameters alone, and finishes nothing by itself', async (context) => {
  const opened = await open(context, {}, { RESPONSE_MODE: 'form_post' });
  const { comity } = opened;
  const browser = new Browser();
  const { action, form } = formOf(await browser.follow(comity.startOf('fake')));
  form.set('redirect', 'https://evil.example');
  form.set('id_token', 'x');
  const { status, headers } = await browser.post(`${action}?next=//evil.example`, form);
  const location = headers.get('location') ?? '';
  assert.equal(status, 303);
  assert.match(location, /^\/api\/v1\/auth\/oauth\/fake\/callback\?/);
  assert.deepEqual([...new URLSearchParams(location.split('?')[1]).keys()].sort(), ['code', 'iss', 'state']);
  assert.equal((await countsOf(comity.store)).sessions, 0);
  const stranger = await new Browser().get(new URL(location, action).href);
  assert.deepEqual([stranger.status, stranger.json().code], [400, 'sign_in_invalid']);
  assert.equal((await browser.get(new URL(location, action).href)).status, 200);
  assert.equal((await browser.get(new URL(location, action).href)).status, 400);
  form.append('code', 'second');
  assert.equal((await browser.post(action, form)).status, 400);
  const long = new URLSearchParams({ code: 'x'.repeat(4096 - 'code='.length) });
  assert.equal((await browser.post(action, long)).status, 303);
  long.set('code', `${long.get('code')}x`);
  assert.equal((await browser.post(action, long)).status, 413);
});

test('takes no form for a provider without form_post', async (context) => {
  const { comity } = await open(context, {});
  const posted = await new Browser().post(
    comity.callbackOf('fake'),
    new URLSearchParams({ code: 'x', state: 'y' }),
  );
  assert.equal(posted.status, 405);
});

for (const [engine, openStores] of engines) {
  test(`a refused sign-in ends on the page of the application, with the code of the error (${engine})`, async (context) => {
    const [store] = await openStores(context);
    const fake = await openFakeProvider(context);
    const provider = configured(fake, 'FAKE', {});
    const allowedOrigins = ['https://app.example'];
    const comity = await openComity(context, { store, providers: [provider], allowedOrigins });
    const end = async (redirect: string) => {
      const start = `${comity.startOf('fake')}?redirect=${encodeURIComponent(redirect)}`;
      const isPage = (url: string) => url.startsWith('https://app.example') || url.includes('/welcome');
      return (await new Browser().follow(start, isPage)).next?.replace(comity.origin, '');
    };
    fake.behave = { back: { error: 'access_denied' } };
    assert.equal(await end('/welcome'), '/welcome?error=sign_in_invalid&reason=access_denied');
    fake.behave = { back: { error: 'https://evil.example' } };
    assert.equal(await end('/welcome?x=1#here'), '/welcome?x=1&error=sign_in_invalid#here');
    fake.behave = { userinfo: { status: 200, body: { sub: 'fake-person' } } };
    assert.equal(await end('https://app.example/in'), 'https://app.example/in?error=sign_in_invalid');
    fake.behave = { token: { status: 500, body: '{}' } };
    assert.equal(await end('/welcome'), '/welcome?error=provider_unavailable');
    assert.deepEqual(Object.values(await countsOf(store)), [0, 0, 0, 0, 0]);
  });
}

test('a sign-in that cannot begin ends on the page of the application too, and one without a page in JSON', async (context) => {
  const { comity, fake } = await open(context, {});
  await fake.stop();
  const start = await new Browser().get(`${comity.startOf('fake')}?redirect=/welcome`);
  assert.deepEqual(
    [start.status, start.headers.get('location')],
    [303, '/welcome?error=provider_unavailable'],
  );
  assert.equal((await new Browser().get(comity.startOf('fake'))).status, 502);
});
