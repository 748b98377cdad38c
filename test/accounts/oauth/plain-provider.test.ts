/** A provider of plain OAuth 2.0, whose word about a person is its userinfo address (§5.3). */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import {
  type Behaviour,
  type FakeProvider,
  openFakeProvider,
} from '../../harness/forging-openid-provider.ts';
import { clientSecret } from '../../harness/openid-provider.ts';
import { openEmbedded } from '../../harness/stores.ts';
import { Browser } from '../../oidc/browser.ts';
import { type OpenedComity, openComity } from '../../oidc/open-comity.ts';
import { countsOf, docsOf } from '../../oidc/rows.ts';

async function open(
  context: TestContext,
  behave: Behaviour,
  emails = false,
): Promise<{ comity: OpenedComity; fake: FakeProvider }> {
  const fake = await openFakeProvider(context);
  fake.behave = behave;
  const provider = emails
    ? { ...fake.plain, emailsUrl: `${fake.issuer}/emails`, verifiedMember: 'verified' }
    : fake.plain;
  const store = await openEmbedded(context);
  return { fake, comity: await openComity(context, { store, providers: [provider] }) };
}

function person(body: unknown): Behaviour {
  return { userinfo: { status: 200, body }, back: { iss: null } };
}

test('sends the parameters of §5.3 to the three addresses of the provider', async (context) => {
  const { comity, fake } = await open(context, person({ id: 42, email: 'a@shop.example' }));
  const browser = new Browser();
  const { next = '' } = await browser.follow(comity.startOf('fake'), (url) => url.startsWith(fake.issuer));
  const asked = Object.fromEntries(new URL(next).searchParams);
  assert.deepEqual(Object.keys(asked).sort(), [
    'client_id',
    'code_challenge',
    'code_challenge_method',
    'fixed',
    'redirect_uri',
    'response_type',
    'scope',
    'state',
  ]);
  const page = await browser.follow(next);
  assert.equal(page.status, 200, page.body);
  const { code = '', code_verifier = '', ...rest } = Object.fromEntries(fake.exchanges[0] ?? []);
  assert.match(code, /^code-/);
  assert.match(code_verifier, /^[\w-]{43}$/);
  assert.deepEqual(rest, {
    grant_type: 'authorization_code',
    redirect_uri: comity.callbackOf('fake'),
    client_id: 'comity',
    client_secret: clientSecret,
  });
});

test('knows a person again by a number, whatever else changes', async (context) => {
  const { comity, fake } = await open(context, person({ id: 42, email: 'a@shop.example', name: 'A' }));
  const first = await new Browser().follow(comity.startOf('fake'));
  fake.behave = person({ id: 42, email: 'b@shop.example', name: 'B' });
  const second = await new Browser().follow(comity.startOf('fake'));
  assert.deepEqual(second.json().user, first.json().user);
  fake.behave = person({ id: 43, email: 'b@shop.example' });
  const other = await new Browser().follow(comity.startOf('fake'));
  assert.notDeepEqual(other.json().user, first.json().user);
});

const assertions: readonly (readonly [
  what: string,
  claims: Readonly<Record<string, unknown>>,
  verified: boolean,
])[] = [
  ['true', { email_verified: true }, true],
  ['false', { email_verified: false }, false],
  ['nothing', {}, false],
  ['"true" as a string', { email_verified: 'true' }, true],
  ['"false" as a string', { email_verified: 'false' }, false],
  ['another string', { email_verified: 'TRUE' }, false],
  ['1', { email_verified: 1 }, false],
  ['a member of another name', { verified: true }, false],
];

for (const [what, claims, verified] of assertions) {
  test(`takes an address as ${verified ? '' : 'not '}verified where the provider says ${what}`, async (context) => {
    const { comity } = await open(context, person({ sub: 'x', email: 'a@shop.example', ...claims }));
    assert.equal((await new Browser().follow(comity.startOf('fake'))).status, 200);
    assert.equal((await docsOf(comity.store, 'users'))[0]?.emailVerified, verified);
  });
}

test('takes the primary address of a list, and what is said about that one', async (context) => {
  const listed = [
    { email: 'old@shop.example', primary: false, verified: true },
    { email: 'a@shop.example', primary: true, verified: false },
  ];
  const behave = { ...person({ id: 1, email: 'shown@shop.example', verified: true }), emails: listed };
  const { comity } = await open(context, behave, true);
  assert.equal((await new Browser().follow(comity.startOf('fake'))).status, 200);
  const [user] = await docsOf(comity.store, 'users');
  assert.deepEqual([user?.email, user?.emailVerified], ['a@shop.example', false]);
});

test('makes a name of what the provider calls somebody, without what no name has', async (context) => {
  const name = `  A\u0000da\r\nX: ${'y'.repeat(300)}`;
  const { comity } = await open(context, person({ id: 1, email: 'a@shop.example', name }));
  assert.equal((await new Browser().follow(comity.startOf('fake'))).status, 200);
  const [user] = await docsOf(comity.store, 'users');
  assert.match(String(user?.name), /^A da {2}X: y{100,}$/);
  assert.ok(String(user?.name).length <= 200);
});

const useless: readonly (readonly [what: string, behave: Behaviour, status: number])[] = [
  ['nobody', person({ email: 'a@shop.example' }), 502],
  ['a number that is none', person({ id: 1.5, email: 'a@shop.example' }), 502],
  ['a list', person([1]), 502],
  ['null', person(null), 502],
  ['an error', { ...person({}), userinfo: { status: 401, body: {} } }, 502],
  ['no address', person({ id: 1 }), 400],
  ['something that is no address', person({ id: 1, email: 'not an address' }), 400],
  ['an address with a line break', person({ id: 1, email: 'a@shop.example\r\nBcc: b@shop.example' }), 400],
  [
    'no token',
    { ...person({ id: 1 }), token: { status: 200, body: '{"error":"bad_verification_code"}' } },
    502,
  ],
];

for (const [what, behave, status] of useless) {
  test(`makes no account of ${what}`, async (context) => {
    const { comity } = await open(context, behave);
    const page = await new Browser().follow(comity.startOf('fake'));
    assert.equal(page.status, status, page.body);
    assert.deepEqual(Object.values(await countsOf(comity.store)), [0, 0, 0, 0, 0]);
  });
}
