/** `/users` (§5.1) and `/auth/register`: accounts as people make them, as administrators manage them, and as each sees its own. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  base,
  bearer,
  changeUser,
  login,
  makeKey,
  register,
  serveAccounts,
  sessionCookieName,
  setCookies,
} from '../../harness/account-client.ts';
import { adminKey } from '../../harness/exchange.ts';
import type { Expectation } from '../../harness/expected-answer.ts';
import { scenarios } from '../../harness/scenarios.ts';
import { until } from '../../harness/until.ts';
import { valuesOf } from '../../harness/values-of.ts';

const password = 'correct horse battery';
const otherPassword = 'another horse battery';

const { client } = await serveAccounts({
  env: { COMITY_LOGIN_ATTEMPTS: '0', COMITY_RATE_LIMIT_WRITES: '0' },
});
const ada = await register(client, 'ada@shop.example', password);
const bob = await register(client, 'bob@shop.example', password);

type Fields = Readonly<Record<string, string>>;

const send = (method: string, path: string, headers: Fields, expect: Expectation, json?: unknown) =>
  client.ask(method, path, { headers, json, expect });
const administer = (method: string, path: string, expect: Expectation, json?: unknown) =>
  client.ask(method, path, { as: adminKey, json, expect });
const me = (headers: Fields, expect: Expectation) => send('GET', 'auth/me', headers, expect);
const logIn = (email: string, expect: Expectation) =>
  client.ask('POST', 'auth/login', { json: { email, password }, expect });
const signUp = (json: unknown, expect: Expectation, headers: Fields = {}) =>
  send('POST', 'auth/register', headers, expect, json);

async function typesOf(subject: string): Promise<readonly string[]> {
  const audit = await administer('GET', `audit?subject=${subject}&limit=100`, 200);
  return valuesOf(audit.json().items, 'type');
}

test('lists, queries, makes and deletes in bulk for administrators alone', async () => {
  for (const [method, path, json] of [
    ['GET', 'users', undefined],
    ['QUERY', 'users', { limit: 5 }],
    ['POST', 'users', { email: 'new@shop.example' }],
    ['POST', 'users/bulk-delete', { ids: [bob.userId] }],
    ['POST', `users/${bob.userId}/password`, { password: otherPassword }],
  ] as const) {
    await send(method, path, {}, 401, json);
    await send(method, path, bearer(ada.token), 403, json);
  }
  await me(bearer(bob.token), 200);
  const { items } = (await administer('GET', 'users?sort=email', 200)).json();
  assert.deepEqual(valuesOf(items, 'email'), ['ada@shop.example', 'bob@shop.example']);
  assert.deepEqual(Object.keys(items[0]), [
    ...['id', 'email', 'emailVerified', 'roles', 'scopes', 'disabled', 'createdAt', 'updatedAt'],
  ]);
  const filter = { email: 'bob@shop.example' };
  const queried = await administer('QUERY', 'users', { status: 200, ids: [bob.userId] }, { filter });
  await send('GET', String(queried.headers.location), bearer(ada.token), 403);
});

test('shows an account to itself and to administrators, and to nobody else that it is there', async () => {
  const path = `users/${ada.userId}`;
  const expected = { status: 200, members: { email: 'ada@shop.example' } };
  const { body } = await send('GET', path, bearer(ada.token), expected);
  await administer('GET', path, { status: 200, body });
  const missing = await send('GET', 'users/usr_none', bearer(bob.token), 404);
  for (const [method, json] of [
    ['GET', undefined],
    ['PATCH', { name: 'Not Ada' }],
    ['PUT', { email: 'ada@shop.example' }],
    ['DELETE', undefined],
  ] as const) {
    await send(method, path, bearer(bob.token), { status: 404, body: missing.body }, json);
    await send(method, path, {}, 401, json);
  }
});

test('lets an account change its name, and nothing that decides what it may do', async () => {
  const path = `users/${ada.userId}`;
  const headers = bearer(ada.token);
  await send('PATCH', path, headers, { status: 200, members: { name: 'Ada' } }, { name: 'Ada' });
  for (const [member, value] of [
    ['email', 'eve@shop.example'],
    ['emailVerified', true],
    ['roles', ['administrator']],
    ['scopes', ['admin']],
    ['tenant', 'north'],
    ['disabled', true],
  ] as const) {
    await send('PATCH', path, headers, [400, 'field_unpatchable', `/${member}`], { [member]: value });
  }
  const members = { name: 'Ada L.', scopes: ['read', 'write'] };
  const json = { email: 'ada@shop.example', name: 'Ada L.' };
  await send('PUT', path, headers, { status: 200, members }, json);
});

test('makes accounts whose address is unique in its one spelling', async () => {
  const members = { email: 'cara@shop.example', emailVerified: false, disabled: false };
  const expected = { status: 201, members: { ...members, roles: [], scopes: ['read', 'write'] } };
  const made = await administer('POST', 'users', expected, { email: ' Cara@Shop.Example ', name: 'Cara' });
  const { id } = made.json();
  assert.match(id, /^usr_[0-9a-hjkmnp-tv-z]{26}$/);
  assert.equal(made.headers.location, `${base}/users/${id}`);
  await administer('POST', 'users', 409, { email: 'CARA@shop.example' });
  for (const email of ['no address', 'a@b@c', 'cara@', 'cara\r\n@shop.example']) {
    await administer('POST', 'users', { status: 422, pointers: ['/email'] }, { email });
  }
  await administer('POST', 'users', 400, {});
  assert.deepEqual(await typesOf(id), ['account.registered']);
});

test('an address that changes is no longer verified, unless the same request says so', async () => {
  const made = await administer('POST', 'users', 201, { email: 'dora@shop.example', emailVerified: true });
  const path = `users/${made.json().id}`;
  const patch = (json: unknown, expect: Expectation) => administer('PATCH', path, expect, json);
  await patch({ name: 'Dora' }, { status: 200, members: { emailVerified: true } });
  const moved = { email: 'dora.two@shop.example', emailVerified: false };
  await patch({ email: 'Dora.Two@Shop.example' }, { status: 200, members: moved });
  const verified = { status: 200, members: { emailVerified: true } };
  await patch({ email: 'dora3@shop.example', emailVerified: true }, verified);
  await patch({ email: 'nowhere' }, 422);
  await patch({ email: 'ada@shop.example' }, 409);
});

test('a disabled account has no good credential, and gets its keys back but not its sessions', async () => {
  const eve = await register(client, 'eve@shop.example', password);
  const { key } = await makeKey(client, bearer(eve.token));
  await changeUser(client, eve.userId, { disabled: true });
  await me(bearer(eve.token), 401);
  await me({ 'X-API-Key': key }, 401);
  await logIn('eve@shop.example', 401);
  await changeUser(client, eve.userId, { disabled: false });
  await me(bearer(eve.token), 401);
  await me({ 'X-API-Key': key }, 200);
  await logIn('eve@shop.example', 200);
  const types = await typesOf(eve.userId);
  assert.ok(types.includes('account.disabled') && types.includes('account.enabled'));
});

test('a role counts at once, and is told in the audit trail', async () => {
  const fay = await register(client, 'fay@shop.example', password);
  const list = (expect: Expectation) => send('GET', 'users', bearer(fay.token), expect);
  await list(403);
  await changeUser(client, fay.userId, { roles: ['administrator'] });
  await list(200);
  await changeUser(client, fay.userId, { roles: [] });
  await list(403);
  const audit = await administer('GET', `audit?subject=${fay.userId}&type=account.roles_changed`, 200);
  const details = valuesOf(audit.json().items, 'detail');
  assert.deepEqual(valuesOf(details, 'roles'), [['administrator'], []]);
});

test('a password that an administrator sets counts at once and ends every session', async () => {
  const email = 'gus@shop.example';
  const { id } = (await administer('POST', 'users', 201, { email })).json();
  const set = (json: unknown, expect: Expectation) =>
    administer('POST', `users/${id}/password`, expect, json);
  await set({ password }, 204);
  const gus = await login(client, email, password);
  await set({ password: otherPassword }, 204);
  await me(bearer(gus.token), 401);
  await logIn(email, 401);
  await login(client, email, otherPassword);
  for (const bad of ['short', 'x'.repeat(1025)]) {
    await set({ password: bad }, { status: 422, pointers: ['/password'] });
  }
  await set({}, 400);
  await administer('POST', 'users/usr_none/password', 404, { password });
});

test('an account that is deleted leaves nothing that is good, however much it had', async () => {
  const hal = await register(client, 'hal@shop.example', password);
  const keys = await Promise.all(Array.from({ length: 60 }, () => makeKey(client, bearer(hal.token))));
  await send('DELETE', `users/${hal.userId}`, bearer(hal.token), 204);
  await me(bearer(hal.token), 401);
  for (const { id, key } of keys) {
    await me({ 'X-API-Key': key }, 401);
    await administer('GET', `keys/${id}`, 404);
    assert.deepEqual(await typesOf(id), ['key.created', 'key.revoked']);
  }
  await logIn('hal@shop.example', 401);
  await administer('GET', `users/${hal.userId}`, 404);
  const again = await register(client, 'hal@shop.example', password);
  assert.notEqual(again.userId, hal.userId);
  assert.ok((await typesOf(hal.userId)).includes('account.deleted'));
});

test('a key deletes no account, not even its own and not even later', async () => {
  const gus = await register(client, 'keyed@shop.example', password);
  const { key } = await makeKey(client, bearer(gus.token));
  const error = 'log in to delete your account; a key cannot';
  await send('DELETE', `users/${gus.userId}`, { 'X-API-Key': key }, { status: 403, error });
  const later = { 'X-API-Key': key, Prefer: 'respond-async' };
  const { location } = (await send('DELETE', `users/${gus.userId}`, later, 202)).headers;
  const look = () => client.ask('GET', String(location), { as: adminKey });
  await until(async () => (await look()).json().status !== 'pending', 'the operation has ended');
  await me(bearer(gus.token), 200);
});

test('administrators delete in bulk, and what accounts leave goes with them', async () => {
  const ivy = await register(client, 'ivy@shop.example', password);
  const jon = await register(client, 'jon@shop.example', password);
  const { id, key } = await makeKey(client, bearer(ivy.token));
  const ids = [ivy.userId, jon.userId, 'usr_none'];
  await administer('POST', 'users/bulk-delete', { status: 200, json: { deleted: 2 } }, { ids });
  for (const { token } of [ivy, jon]) await me(bearer(token), 401);
  await me({ 'X-API-Key': key }, 401);
  await administer('GET', `keys/${id}`, 404);
});

test('accounts and keys append no events', async () => {
  await makeKey(client, bearer(ada.token));
  await administer('GET', 'events?limit=1000', { status: 200, ids: [] });
});

test('a registration makes an account, says where it is, and logs it in', async () => {
  // The content is no representation of the account: nothing may say that it is.
  const fields = { 'cache-control': 'no-store', 'content-location': undefined, etag: undefined };
  const json = { email: 'Zoe@Shop.example', password, name: 'Zoe' };
  const answer = await signUp(json, { status: 201, fields });
  const { token, user } = answer.json();
  assert.deepEqual(Object.keys(answer.json()), ['token', 'expiresIn', 'refreshToken', 'user']);
  const shown = { id: user.id, email: 'zoe@shop.example' };
  assert.equal(user.email, shown.email);
  assert.equal(answer.headers.location, `${base}/users/${user.id}`);
  const account = await send('GET', String(answer.headers.location), bearer(token), 200);
  const { createdAt, updatedAt, ...members } = account.json();
  assert.equal(createdAt, updatedAt);
  const rights = { roles: [], scopes: ['read', 'write'], disabled: false };
  assert.deepEqual(members, { ...shown, name: 'Zoe', emailVerified: false, ...rights });
});

test('a new account may write at once, and nobody else sees it', async () => {
  const [one, two] = await Promise.all(
    ['one', 'two'].map((name) => signUp({ email: `${name}@shop.example`, password }, 201)),
  );
  await send('POST', 'notes', bearer(one?.json().token), 201, { text: 'mine' });
  const location = String(one?.headers.location);
  await send('GET', location, bearer(two?.json().token), 404);
  await send('GET', location, {}, 401);
});

const taken: Expectation = {
  status: 409,
  json: {
    error: 'email is already in use',
    code: 'unique_taken',
    errors: [{ pointer: '/email', message: 'already in use' }],
  },
};

scenarios(client.ask, {
  'a registration answers 409 for an address that is taken, in any spelling': [
    ['POST auth/register', { json: { email: 'taken@shop.example', password }, expect: 201 }],
    ['POST auth/register', { json: { email: ' Taken@SHOP.example', password }, expect: taken }],
  ],
  'a registration answers 400 for what is missing': [
    'POST auth/register',
    { json: { email: 'less@shop.example' }, expect: [400, 'field_missing'] },
  ],
});

const controls = 'correct\nhorse';
for (const [what, json, pointers] of [
  ['an address that is none', { email: 'ada', password }, ['/email']],
  ['an address with a header behind it', { email: 'a@b.example\r\nBcc: c@d.example', password }, ['/email']],
  ['a short password', { email: 'short@shop.example', password: '1234567' }, ['/password']],
  ['a password over the bound', { email: 'long@shop.example', password: 'x'.repeat(1025) }, ['/password']],
  ['a password with a control character', { email: 'ctl@shop.example', password: controls }, ['/password']],
  ['both', { email: 'ada', password: 'short' }, ['/email', '/password']],
  ['an empty name', { email: 'name@shop.example', password, name: '' }, ['/name']],
  ['a role', { email: 'role@shop.example', password, roles: ['administrator'] }, ['/roles']],
  ['a verified address', { email: 'ver@shop.example', password, emailVerified: true }, ['/emailVerified']],
] as const) {
  test(`a registration answers 422 for ${what}, and makes no account`, async () => {
    await signUp(json, { status: 422, code: 'validation_failed', pointers, lacks: [json.password] });
  });
}

test('one account is made of an address that many ask for at once', async () => {
  const json = { email: 'race@shop.example', password };
  const asked = Array.from({ length: 6 }, () => client.ask('POST', 'auth/register', { json }));
  assert.deepEqual(valuesOf(await Promise.all(asked), 'status').sort(), [201, 409, 409, 409, 409, 409]);
});

test('a registration sets the session cookie where it is asked for, but for no page of another site', async () => {
  const json = { email: 'cookie@shop.example', password, cookie: true };
  const headers = { 'Sec-Fetch-Site': 'cross-site', Origin: 'https://evil.example' };
  await signUp(json, [403, 'cross_site_request'], headers);
  const answer = await signUp(json, 201);
  assert.ok(setCookies(answer)[0]?.startsWith(`${sessionCookieName}=`));
});

test('registration refuses everybody where it is closed', async () => {
  const { program: closed } = await serveAccounts({ env: { COMITY_REGISTRATION: 'closed' } });
  const json = { email: 'ada@shop.example', password };
  const refusal = { error: 'registration is closed', code: 'forbidden' };
  await closed.send('POST', 'auth/register', { json, expect: { status: 403, json: refusal } });
});
