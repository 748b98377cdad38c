/** A provider whose answers are forged, broken, endless or late (§5.3; OpenID Connect Core 1.0 §3.1.3.7, RFC 9207). */
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { type TestContext, test } from 'node:test';
import { base64url, generateKeyPair, SignJWT } from 'jose';
import {
  type Behaviour,
  type FakeProvider,
  openFakeProvider,
} from '../../harness/forging-openid-provider.ts';
import { clientSecret } from '../../harness/openid-provider.ts';
import { openEmbedded } from '../../harness/stores.ts';
import { Browser, type Page } from '../../oidc/browser.ts';
import { type OpenedComity, openComity } from '../../oidc/open-comity.ts';
import { countsOf } from '../../oidc/rows.ts';

const address = { email: 'eve@shop.example', email_verified: true };

async function open(
  context: TestContext,
  behave: Behaviour = {},
): Promise<{ comity: OpenedComity; fake: FakeProvider }> {
  const fake = await openFakeProvider(context);
  fake.behave = { claims: address, ...behave };
  const store = await openEmbedded(context);
  return { fake, comity: await openComity(context, { store, providers: [fake.openId] }) };
}

/** @param code of the refusal; undefined: signed in */
async function assertEnds(comity: OpenedComity, code: string | undefined): Promise<Page> {
  const page = await new Browser().follow(comity.startOf('fake'));
  assert.equal(page.status === 200 ? undefined : page.json().code, code, page.body);
  if (code === undefined) return page;
  assert.equal(page.status, code === 'sign_in_invalid' ? 400 : 502);
  assert.equal(page.headers.get('set-cookie'), null);
  const { users, identities, sessions } = await countsOf(comity.store);
  assert.deepEqual([users, identities, sessions], [0, 0, 0]);
  return page;
}

test('signs in by an ID token that nothing speaks against', async (context) => {
  const { comity, fake } = await open(context);
  await assertEnds(comity, undefined);
  assert.deepEqual([...fake.asked.keys()].sort(), [
    '/.well-known/openid-configuration',
    '/authorize',
    '/jwks',
    '/token',
  ]);
  await assertEnds(comity, undefined);
  assert.equal(fake.asked.get('/.well-known/openid-configuration'), 1);
});

const now = () => Math.floor(Date.now() / 1000);

const badTokens: readonly (readonly [what: string, behave: () => Behaviour])[] = [
  ['another issuer', () => ({ claims: { iss: 'https://evil.example' } })],
  ['another audience', () => ({ claims: { aud: 'somebody-else' } })],
  ['a second audience without azp', () => ({ claims: { aud: ['comity', 'somebody-else'] } })],
  ['another authorized party', () => ({ claims: { aud: ['comity', 'x'], azp: 'x' } })],
  ['its time over', () => ({ claims: { exp: now() - 60 } })],
  ['its time not come', () => ({ claims: { nbf: now() + 600 } })],
  ['no subject', () => ({ claims: { sub: undefined } })],
  ['an empty subject', () => ({ claims: { sub: '' } })],
  ['a subject that is no string', () => ({ claims: { sub: 7 } })],
  ['a huge subject', () => ({ claims: { sub: 'x'.repeat(1025) } })],
  ['no nonce', () => ({ claims: { nonce: undefined } })],
  ['a key that the provider does not publish', () => ({ header: { kid: 'other' } })],
  ['a critical extension', () => ({ header: { crit: ['x'], x: true } })],
  ['no signature', () => ({ idToken: unsigned })],
  ['no algorithm', () => ({ idToken: withoutAlgorithm })],
  ['a signature of somebody else', () => ({ idToken: signedByOther })],
  ['a MAC with the client secret', () => ({ idToken: macWithSecret })],
  ['a cut signature', () => ({ idToken: (good) => good.slice(0, -4) })],
  ['other claims than were signed', () => ({ idToken: withOtherClaims })],
  ['no three parts', () => ({ idToken: () => 'x' })],
];

for (const [what, behave] of badTokens) {
  test(`refuses an ID token with ${what}`, async (context) => {
    const { comity } = await open(context, behave());
    await assertEnds(comity, 'provider_unavailable');
  });
}

test('refuses an ID token that answers another sign-in', async (context) => {
  const { comity } = await open(context, { claims: { ...address, nonce: 'a-nonce-of-another-sign-in' } });
  await assertEnds(comity, 'sign_in_invalid');
});

test('refuses an unsigned ID token even where the provider offers that', async (context) => {
  const discovery = { id_token_signing_alg_values_supported: ['ES256', 'none', 'HS256'] };
  for (const idToken of [withoutAlgorithm, macWithSecret]) {
    const { comity } = await open(context, { discovery, idToken });
    await assertEnds(comity, 'provider_unavailable');
  }
});

const badBacks: readonly (readonly [what: string, back: Behaviour['back']])[] = [
  ['another issuer', { iss: 'https://evil.example' }],
  ['no issuer where one was promised', { iss: null }],
  ['a code that the provider does not know', { code: 'made-up' }],
  ['no code', { code: null }],
  ['an error', { error: 'server_error' }],
];

for (const [what, back] of badBacks) {
  test(`refuses a callback with ${what}`, async (context) => {
    const { comity } = await open(context, { back: back ?? {} });
    await assertEnds(comity, 'sign_in_invalid');
  });
}

const badAnswers: readonly (readonly [what: string, behave: Behaviour])[] = [
  ['no JSON', { token: { status: 200, body: 'access_token=x&token_type=bearer' } }],
  ['another media type', { token: { status: 200, body: '{}', type: 'text/html' } }],
  ['no token', { token: { status: 200, body: '{}' } }],
  ['no ID token', { token: { status: 200, body: '{"access_token":"x","token_type":"Bearer"}' } }],
  ['a client that is not known', { token: { status: 401, body: '{"error":"invalid_client"}' } }],
  ['an error page', { token: { status: 500, body: '<h1>oh</h1>', type: 'text/html' } }],
  ['a redirect', { token: { status: 307, body: '' } }],
  ['more than anybody reads', { token: { status: 200, body: `"${'x'.repeat(600_000)}"` } }],
  ['a token endpoint in the clear', { discovery: { token_endpoint: 'http://evil.example/token' } }],
  ['a key set in the clear', { discovery: { jwks_uri: 'http://evil.example/jwks' } }],
];

for (const [what, behave] of badAnswers) {
  test(`answers 502 for ${what}`, async (context) => {
    const { comity } = await open(context, behave);
    await assertEnds(comity, 'provider_unavailable');
    const facts = comity.observations.filter(({ kind }) => kind === 'provider-failed');
    assert.equal(facts.length, 1);
  });
}

test('begins nothing at a provider whose discovery is not its own, or leads into the clear', async (context) => {
  for (const discovery of [
    { issuer: 'https://evil.example' },
    { authorization_endpoint: 'http://evil.example/authorize' },
    { authorization_endpoint: 'javascript:alert(1)' },
    { authorization_endpoint: undefined },
  ]) {
    const { comity } = await open(context, { discovery });
    const page = await new Browser().get(comity.startOf('fake'));
    assert.deepEqual([page.status, page.headers.get('location')], [502, null]);
    assert.equal((await countsOf(comity.store)).sign_ins, 0);
  }
});

for (const path of ['/.well-known/openid-configuration', '/token', '/jwks']) {
  test(`waits no longer than it is told for ${path}`, async (context) => {
    const fake = await openFakeProvider(context);
    fake.behave = { claims: address, silent: new Set([path]) };
    const store = await openEmbedded(context);
    const comity = await openComity(context, {
      store,
      providers: [fake.openId],
      settings: { issuerTimeoutMs: 150 },
    });
    await assertEnds(comity, 'provider_unavailable');
    const [fact] = comity.observations.filter(({ kind }) => kind === 'provider-failed');
    assert.match(String(fact !== undefined && 'error' in fact && fact.error), /: no response in time$/);
  });
}

test('says nothing secret about a failure', async (context) => {
  const { comity, fake } = await open(context, { claims: { ...address, iss: 'https://evil.example' } });
  const page = await assertEnds(comity, 'provider_unavailable');
  fake.behave = {
    token: { status: 400, body: `{"error":"${clientSecret}","error_description":"eyJsecret"}` },
  };
  await assertEnds(comity, 'provider_unavailable');
  const facts = comity.observations.filter(({ kind }) => kind === 'provider-failed');
  assert.equal(facts.length, 2);
  for (const fact of facts) {
    assert.ok('error' in fact && fact.error instanceof Error && fact.error.cause === undefined);
    assert.doesNotMatch(String(fact.error.stack), /eyJ|eve@shop|code-|client-secret/);
  }
  assert.deepEqual(page.json(), {
    error: 'the identity provider is unavailable or its answer is invalid',
    code: 'provider_unavailable',
  });
});

test('takes the address from userinfo where the ID token has none, and only that of the same person', async (context) => {
  const userinfo = { status: 200, body: { sub: 'fake-person', ...address } };
  const { comity } = await open(context, { claims: {}, userinfo });
  const page = await assertEnds(comity, undefined);
  assert.equal((page.json().user as { email: string }).email, 'eve@shop.example');
  const other = await open(context, {
    claims: {},
    userinfo: { status: 200, body: { ...userinfo.body, sub: 'x' } },
  });
  await assertEnds(other.comity, 'provider_unavailable');
});

function part(value: unknown): string {
  return base64url.encode(JSON.stringify(value));
}

function unsigned(good: string): string {
  return `${good.split('.').slice(0, 2).join('.')}.`;
}

function withoutAlgorithm(good: string): string {
  return `${part({ alg: 'none' })}.${good.split('.')[1]}.`;
}

function macWithSecret(good: string): string {
  const signed = `${part({ alg: 'HS256', kid: 'fake' })}.${good.split('.')[1]}`;
  return `${signed}.${createHmac('sha256', clientSecret).update(signed).digest('base64url')}`;
}

async function signedByOther(good: string): Promise<string> {
  const { privateKey } = await generateKeyPair('ES256');
  const claims = JSON.parse(Buffer.from(good.split('.')[1] ?? '', 'base64url').toString()) as Record<
    string,
    unknown
  >;
  return new SignJWT(claims).setProtectedHeader({ alg: 'ES256', kid: 'fake' }).sign(privateKey);
}

function withOtherClaims(good: string): string {
  const [header = '', payload = '', signature = ''] = good.split('.');
  const claims = JSON.parse(Buffer.from(payload, 'base64url').toString()) as Record<string, unknown>;
  return `${header}.${part({ ...claims, sub: 'somebody-else' })}.${signature}`;
}
