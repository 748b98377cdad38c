/** `/users` (§5.1): accounts as administrators manage them, and as each sees its own. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type Answer,
  asAdministrator,
  base,
  bearer,
  changeUser,
  login,
  makeKey,
  register,
  serveAccounts,
} from '../../harness/account-client.ts';

const password = 'correct horse battery';

const { client } = await serveAccounts({ env: { COMITY_LOGIN_ATTEMPTS: '0' } });
const ada = await register(client, 'ada@shop.example', password);
const bob = await register(client, 'bob@shop.example', password);

type Fields = Readonly<Record<string, string>>;

function send(method: string, path: string, headers: Fields, json?: unknown): Promise<Answer> {
  return client.ask(method, `${base}${path}`, { headers, ...(json === undefined ? {} : { json }) });
}

function pointersOf(answer: Answer): readonly string[] {
  return (answer.json() as { errors: readonly { pointer: string }[] }).errors.map(({ pointer }) => pointer);
}

async function statusOf(credential: Fields): Promise<number> {
  return (await send('GET', '/auth/me', credential)).status;
}

async function typesOf(subject: string): Promise<readonly string[]> {
  const audit = await send('GET', `/audit?subject=${subject}&limit=100`, asAdministrator);
  return (audit.json().items as readonly { type: string }[]).map(({ type }) => type);
}

test('lists, queries, makes and deletes in bulk for administrators alone', async () => {
  const asked = [
    ['GET', '/users', undefined],
    ['QUERY', '/users', { limit: 5 }],
    ['POST', '/users', { email: 'new@shop.example' }],
    ['POST', '/users/bulk-delete', { ids: [bob.userId] }],
    ['POST', `/users/${bob.userId}/password`, { password: 'another horse battery' }],
  ] as const;
  for (const [method, path, json] of asked) {
    assert.equal((await send(method, path, {}, json)).status, 401, `${method} ${path}`);
    assert.equal((await send(method, path, bearer(ada.token), json)).status, 403, `${method} ${path}`);
  }
  assert.equal(await statusOf(bearer(bob.token)), 200);
  const listed = await send('GET', '/users?sort=email', asAdministrator);
  const items = listed.json().items as readonly Record<string, unknown>[];
  assert.deepEqual(
    items.map(({ email }) => email),
    ['ada@shop.example', 'bob@shop.example'],
  );
  assert.deepEqual(Object.keys(items[0] ?? {}), [
    ...['id', 'email', 'emailVerified', 'roles', 'scopes', 'disabled', 'createdAt', 'updatedAt'],
  ]);
  const queried = await send('QUERY', '/users', asAdministrator, { filter: { email: 'bob@shop.example' } });
  assert.deepEqual(
    (queried.json().items as readonly { id: string }[]).map(({ id }) => id),
    [bob.userId],
  );
  const repeated = await client.ask('GET', queried.headers.location ?? '', { headers: bearer(ada.token) });
  assert.equal(repeated.status, 403);
});

test('shows an account to itself and to administrators, and to nobody else that it is there', async () => {
  const path = `/users/${ada.userId}`;
  const own = await send('GET', path, bearer(ada.token));
  assert.equal(own.status, 200);
  assert.equal(own.json().email, 'ada@shop.example');
  assert.equal((await send('GET', path, asAdministrator)).body, own.body);
  const missing = await send('GET', '/users/usr_none', bearer(bob.token));
  for (const [method, json] of [
    ['GET', undefined],
    ['PATCH', { name: 'Not Ada' }],
    ['PUT', { email: 'ada@shop.example' }],
    ['DELETE', undefined],
  ] as const) {
    const answer = await send(method, path, bearer(bob.token), json);
    assert.deepEqual([answer.status, answer.body], [404, missing.body], method);
    assert.equal((await send(method, path, {}, json)).status, 401, method);
  }
});

test('lets an account change its name, and nothing that decides what it may do', async () => {
  const path = `/users/${ada.userId}`;
  const headers = bearer(ada.token);
  const renamed = await send('PATCH', path, headers, { name: 'Ada' });
  assert.equal(renamed.status, 200, renamed.body);
  assert.equal(renamed.json().name, 'Ada');
  for (const [member, value] of [
    ['email', 'eve@shop.example'],
    ['emailVerified', true],
    ['roles', ['administrator']],
    ['scopes', ['admin']],
    ['tenant', 'north'],
    ['disabled', true],
  ] as const) {
    const answer = await send('PATCH', path, headers, { [member]: value });
    assert.equal(answer.status, 400, answer.body);
    assert.equal(answer.json().code, 'field_unpatchable');
    assert.deepEqual(pointersOf(answer), [`/${member}`]);
  }
  const replaced = await send('PUT', path, headers, { email: 'ada@shop.example', name: 'Ada L.' });
  assert.equal(replaced.status, 200, replaced.body);
  assert.deepEqual([replaced.json().name, replaced.json().scopes], ['Ada L.', ['read', 'write']]);
});

test('makes accounts whose address is unique in its one spelling', async () => {
  const made = await send('POST', '/users', asAdministrator, { email: ' Cara@Shop.Example ', name: 'Cara' });
  assert.equal(made.status, 201, made.body);
  const { id, email, emailVerified, roles, scopes, disabled } = made.json();
  assert.match(String(id), /^usr_[0-9a-hjkmnp-tv-z]{26}$/);
  assert.equal(made.headers.location, `${base}/users/${id}`);
  assert.deepEqual([email, emailVerified, disabled], ['cara@shop.example', false, false]);
  assert.deepEqual([roles, scopes], [[], ['read', 'write']]);
  const taken = await send('POST', '/users', asAdministrator, { email: 'CARA@shop.example' });
  assert.equal(taken.status, 409);
  for (const bad of ['no address', 'a@b@c', 'cara@', 'cara\r\n@shop.example']) {
    const answer = await send('POST', '/users', asAdministrator, { email: bad });
    assert.equal(answer.status, 422, bad);
    assert.deepEqual(pointersOf(answer), ['/email']);
  }
  assert.equal((await send('POST', '/users', asAdministrator, {})).status, 400);
  assert.deepEqual(await typesOf(String(id)), ['account.registered']);
});

test('an address that changes is no longer verified, unless the same request says so', async () => {
  const made = await send('POST', '/users', asAdministrator, {
    email: 'dora@shop.example',
    emailVerified: true,
  });
  const path = `/users/${made.json().id}`;
  const patch = async (json: unknown) => (await send('PATCH', path, asAdministrator, json)).json();
  assert.equal((await patch({ name: 'Dora' })).emailVerified, true);
  const moved = await patch({ email: 'Dora.Two@Shop.example' });
  assert.deepEqual([moved.email, moved.emailVerified], ['dora.two@shop.example', false]);
  assert.equal((await patch({ email: 'dora3@shop.example', emailVerified: true })).emailVerified, true);
  const refused = await send('PATCH', path, asAdministrator, { email: 'nowhere' });
  assert.equal(refused.status, 422);
  assert.equal((await send('PATCH', path, asAdministrator, { email: 'ada@shop.example' })).status, 409);
});

test('a disabled account has no good credential, and gets its keys back but not its sessions', async () => {
  const eve = await register(client, 'eve@shop.example', password);
  const { key } = await makeKey(client, bearer(eve.token));
  await changeUser(client, eve.userId, { disabled: true });
  assert.deepEqual([await statusOf(bearer(eve.token)), await statusOf({ 'X-API-Key': key })], [401, 401]);
  const refused = await client.ask('POST', `${base}/auth/login`, {
    json: { email: 'eve@shop.example', password },
  });
  assert.equal(refused.status, 401);
  await changeUser(client, eve.userId, { disabled: false });
  assert.deepEqual([await statusOf(bearer(eve.token)), await statusOf({ 'X-API-Key': key })], [401, 200]);
  await login(client, 'eve@shop.example', password);
  const types = await typesOf(eve.userId);
  assert.ok(types.includes('account.disabled') && types.includes('account.enabled'));
});

test('a role counts at once, and is told in the audit trail', async () => {
  const fay = await register(client, 'fay@shop.example', password);
  assert.equal((await send('GET', '/users', bearer(fay.token))).status, 403);
  await changeUser(client, fay.userId, { roles: ['administrator'] });
  assert.equal((await send('GET', '/users', bearer(fay.token))).status, 200);
  await changeUser(client, fay.userId, { roles: [] });
  assert.equal((await send('GET', '/users', bearer(fay.token))).status, 403);
  const audit = await send('GET', `/audit?subject=${fay.userId}&type=account.roles_changed`, asAdministrator);
  const details = (audit.json().items as readonly { detail: { roles: unknown } }[]).map(
    ({ detail }) => detail.roles,
  );
  assert.deepEqual(details, [['administrator'], []]);
});

test('a password that an administrator sets counts at once and ends every session', async () => {
  const made = await send('POST', '/users', asAdministrator, { email: 'gus@shop.example' });
  const id = String(made.json().id);
  const set = (json: unknown) => send('POST', `/users/${id}/password`, asAdministrator, json);
  assert.equal((await set({ password })).status, 204);
  const gus = await login(client, 'gus@shop.example', password);
  assert.equal((await set({ password: 'another horse battery' })).status, 204);
  assert.equal(await statusOf(bearer(gus.token)), 401);
  const old = await client.ask('POST', `${base}/auth/login`, {
    json: { email: 'gus@shop.example', password },
  });
  assert.equal(old.status, 401);
  await login(client, 'gus@shop.example', 'another horse battery');
  for (const bad of ['short', 'x'.repeat(1025)]) {
    const answer = await set({ password: bad });
    assert.equal(answer.status, 422);
    assert.deepEqual(pointersOf(answer), ['/password']);
  }
  assert.equal((await set({})).status, 400);
  const missing = await send('POST', '/users/usr_none/password', asAdministrator, { password });
  assert.equal(missing.status, 404);
});

test('an account that is deleted leaves nothing that is good, however much it had', async () => {
  const hal = await register(client, 'hal@shop.example', password);
  const keys = await Promise.all(Array.from({ length: 60 }, () => makeKey(client, bearer(hal.token))));
  const deleted = await send('DELETE', `/users/${hal.userId}`, bearer(hal.token));
  assert.equal(deleted.status, 204, deleted.body);
  assert.equal(await statusOf(bearer(hal.token)), 401);
  for (const { key } of keys) assert.equal(await statusOf({ 'X-API-Key': key }), 401);
  for (const { id } of keys) {
    assert.equal((await send('GET', `/keys/${id}`, asAdministrator)).status, 404);
    assert.deepEqual(await typesOf(id), ['key.created', 'key.revoked']);
  }
  const refused = await client.ask('POST', `${base}/auth/login`, {
    json: { email: 'hal@shop.example', password },
  });
  assert.equal(refused.status, 401);
  assert.equal((await send('GET', `/users/${hal.userId}`, asAdministrator)).status, 404);
  const again = await register(client, 'hal@shop.example', password);
  assert.notEqual(again.userId, hal.userId);
  assert.ok((await typesOf(hal.userId)).includes('account.deleted'));
});

test('a key deletes no account, not even its own and not even later', async () => {
  const gus = await register(client, 'keyed@shop.example', password);
  const { key } = await makeKey(client, bearer(gus.token));
  const refused = await send('DELETE', `/users/${gus.userId}`, { 'X-API-Key': key });
  assert.equal(refused.status, 403);
  assert.equal(refused.json().error, 'log in to delete your account; a key cannot');
  const later = { 'X-API-Key': key, Prefer: 'respond-async' };
  const accepted = await send('DELETE', `/users/${gus.userId}`, later);
  assert.equal(accepted.status, 202);
  const operation = String(accepted.headers.location).slice(base.length);
  for (let looks = 0; looks < 100; looks += 1) {
    const ended = await send('GET', operation, asAdministrator);
    if (ended.status === 303) break;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  assert.equal(await statusOf(bearer(gus.token)), 200);
});

test('administrators delete in bulk, and what accounts leave goes with them', async () => {
  const [ivy, jon] = [
    await register(client, 'ivy@shop.example', password),
    await register(client, 'jon@shop.example', password),
  ];
  const { id, key } = await makeKey(client, bearer(ivy.token));
  const ids = [ivy.userId, jon.userId, 'usr_none'];
  const bulk = await send('POST', '/users/bulk-delete', asAdministrator, { ids });
  assert.deepEqual(bulk.json(), { deleted: 2 });
  for (const { token } of [ivy, jon]) assert.equal(await statusOf(bearer(token)), 401);
  assert.equal(await statusOf({ 'X-API-Key': key }), 401);
  assert.equal((await send('GET', `/keys/${id}`, asAdministrator)).status, 404);
});

test('accounts and keys append no events', async () => {
  await makeKey(client, bearer(ada.token));
  const events = await send('GET', '/events?limit=1000', asAdministrator);
  assert.deepEqual(events.json().items, []);
});
