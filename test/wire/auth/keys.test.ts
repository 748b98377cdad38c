/**
 * `/keys` (§5.2): made, shown once, limited, rotated, revoked, each by its owner alone; and what keys are good for that others may hold:
 * those that stand in public pages, and those that were made with a key.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  asAdministrator,
  base,
  bearer,
  changeUser,
  makeKey,
  register,
  serveAccounts,
} from '../../harness/account-client.ts';
import { adminKey } from '../../harness/exchange.ts';
import type { Expectation } from '../../harness/expected-answer.ts';
import { startServer } from '../../harness/running-server.ts';
import { temporaryFolder } from '../../harness/temporary-folder.ts';
import { until } from '../../harness/until.ts';
import { valuesOf } from '../../harness/values-of.ts';

const dayMs = 86_400_000;
const password = 'correct horse battery';

const { client } = await serveAccounts({
  env: { COMITY_KEY_OVERLAP_SECONDS_MAX: '3600' },
  bounds: { keyUseSeconds: 1 },
});
const ada = await register(client, 'ada@shop.example', password);
const bob = await register(client, 'bob@shop.example', password);
const owner = bearer(ada.token);

type Headers = Readonly<Record<string, string>>;

const apiKey = (key: string) => ({ 'X-API-Key': key });
const inDays = (days: number) => new Date(Date.now() + days * dayMs).toISOString();

const send = (method: string, path: string, headers: Headers, expect: Expectation, json?: unknown) =>
  client.ask(method, path, { headers, json, expect });
const get = (path: string, headers: Headers, expect: Expectation) => send('GET', path, headers, expect);
const post = (path: string, json: unknown, headers: Headers, expect: Expectation) =>
  send('POST', path, headers, expect, json);
const make = (json: object, headers: Headers, expect: Expectation) =>
  post('keys', { name: 'x', kind: 'secret', ...json }, headers, expect);
const patch = (id: string, json: object, headers: Headers, expect: Expectation) =>
  send('PATCH', `keys/${id}`, headers, expect, json);
const rotate = async (id: string, json: unknown = {}, headers: Headers = owner) =>
  String((await post(`keys/${id}/rotate`, json, headers, 200)).json().key);
const me = (key: string, expect: Expectation) => get('auth/me', apiKey(key), expect);
const statusOf = async (key: string) => (await client.ask('GET', 'auth/me', { headers: apiKey(key) })).status;
const fault = (status: number, pointer: string): Expectation => ({ status, pointers: [pointer] });

test('makes a key for whoever asks and shows it once', async () => {
  const made = await make({}, owner, { status: 201, fields: { 'cache-control': 'no-store' } });
  const { key, ...representation } = made.json();
  assert.match(key, /^sk_[A-Za-z0-9_-]{43}$/);
  assert.match(representation.id, /^key_[0-9a-hjkmnp-tv-z]{26}$/);
  assert.equal(made.headers.location, `${base}/keys/${representation.id}`);
  assert.equal(representation.prefix, key.slice(0, 7));
  assert.deepEqual(representation.scopes, ['read', 'write']);
  await get(String(made.headers.location), owner, { status: 200, json: representation });
  await me(key, { status: 200, members: { id: ada.userId } });
});

test('never says a key again in a list, QUERY or patch, and says it for the same Idempotency-Key alone', async () => {
  const headers = { ...owner, 'Idempotency-Key': '"once"', Prefer: 'respond-async' };
  const one = (await make({ name: 'twice' }, headers, 201)).json();
  await make({ name: 'twice' }, headers, { status: 201, json: one });
  const silent = { status: 200, lacks: [one.key] };
  await get('keys?name=twice', owner, silent);
  await send('QUERY', 'keys', owner, silent, { q: 'twice' });
  await patch(one.id, { name: 'renamed' }, owner, silent);
});

test('takes a form as well, and shows the key instead of leading a browser away from it', async () => {
  const accept = 'text/html, application/json;q=0.9';
  const answer = await client.ask('POST', 'keys', {
    headers: { ...owner, 'Content-Type': 'application/x-www-form-urlencoded', Accept: accept },
    body: 'name=form&kind=publishable',
    expect: 201,
  });
  assert.match(String(answer.json().key), /^pk_/);
});

test('refuses scopes that the maker lacks, and any but read for a publishable key', async () => {
  await make({ scopes: ['read', 'admin'] }, owner, fault(422, '/scopes'));
  for (const scopes of [['write'], ['read', 'write'], ['admin']]) {
    await make({ kind: 'publishable', scopes }, asAdministrator, fault(422, '/scopes'));
  }
  await make({ scopes: ['everything'] }, owner, 422);
});

test('refuses an end that does not lie ahead, and stores one as UTC', async () => {
  for (const expiresAt of [inDays(-1), '2020-01-01T00:00:00Z']) {
    await make({ expiresAt }, owner, fault(422, '/expiresAt'));
  }
  const expected = { status: 201, members: { expiresAt: '2200-01-01T00:00:00.000Z' } };
  await make({ expiresAt: '2199-12-31T23:00:00-01:00' }, owner, expected);
});

test('refuses members that the server makes, and content without what a key needs', async () => {
  await make({ name: undefined }, owner, 400);
  await make({ kind: undefined }, owner, 400);
  await make({ kind: 'golden' }, owner, 422);
  await make({ prefix: 'sk_AAAA' }, owner, fault(422, '/prefix'));
  await make({}, {}, 401);
});

test('lets a publishable key read and nothing else', async () => {
  const { key } = await makeKey(client, owner, { kind: 'publishable' });
  await get('notes', apiKey(key), 200);
  await post('notes', { text: 'no' }, apiKey(key), 403);
  await make({}, apiKey(key), 403);
  const administrators = await makeKey(client, asAdministrator, { kind: 'publishable' });
  await post('notes', { text: 'no' }, apiKey(administrators.key), 403);
});

test('a revoked key is dead with the answer, alone or in bulk', async () => {
  const first = await makeKey(client, owner);
  const others = [await makeKey(client, owner), await makeKey(client, owner)];
  for (const { key } of [first, ...others]) await me(key, 200);
  await send('DELETE', `keys/${first.id}`, owner, 204);
  const fields = { 'www-authenticate': /./ };
  await me(first.key, { status: 401, error: 'invalid API key', fields });
  const ids = valuesOf(others, 'id');
  await post('keys/bulk-delete', { ids }, owner, { status: 200, json: { deleted: 2 } });
  for (const { key } of others) await me(key, 401);
});

test('rotation kills the old text at once, or after the overlap that was asked for', async () => {
  const { id, key: first } = await makeKey(client, owner);
  const fields = { 'cache-control': 'no-store' };
  const rotated = await send('POST', `keys/${id}/rotate`, owner, { status: 200, fields, members: { id } });
  const second = String(rotated.json().key);
  assert.notEqual(second, first);
  assert.equal(rotated.json().prefix, second.slice(0, 7));
  await me(first, 401);
  await me(second, 200);
  const third = await rotate(id, { overlapSeconds: 3600 });
  const fourth = await rotate(id, { overlapSeconds: 3600 });
  for (const key of [second, third, fourth]) await me(key, 200);
  const fifth = await rotate(id, { overlapSeconds: 0 });
  for (const key of [second, third, fourth]) await me(key, 401);
  await me(fifth, 200);
  for (const overlapSeconds of [3601, -1]) {
    await post(`keys/${id}/rotate`, { overlapSeconds }, owner, fault(422, '/overlapSeconds'));
  }
  await send('DELETE', `keys/${id}`, owner, 204);
  await me(fifth, 401);
});

test('an overlap ends by itself', async () => {
  const { id, key } = await makeKey(client, owner);
  await rotate(id, { overlapSeconds: 1 });
  await me(key, 200);
  await until(async () => (await statusOf(key)) === 401, 'the old text ends');
});

test('an end that is set or moved counts for every text of the key', async () => {
  const { id, key } = await makeKey(client, owner, { expiresAt: inDays(1) });
  const next = await rotate(id, { overlapSeconds: 3600 });
  const soon = new Date(Date.now() + 1000).toISOString();
  await patch(id, { expiresAt: soon }, owner, 200);
  for (const text of [key, next]) {
    await until(async () => (await statusOf(text)) === 401, 'it ends');
    assert.ok(Date.now() >= Date.parse(soon));
  }
  const refusal = { status: 422, error: 'the key has expired; set expiresAt first' };
  await post(`keys/${id}/rotate`, {}, owner, refusal);
  await patch(id, { expiresAt: null }, owner, 200);
  for (const text of [key, next]) await me(text, 200);
});

test('of many rotations with overlap only the newest texts stay good', async () => {
  const { id, key } = await makeKey(client, owner);
  const texts = [key];
  for (let count = 0; count < 12; count += 1) texts.push(await rotate(id, { overlapSeconds: 3600 }));
  const statuses = await Promise.all(texts.map(statusOf));
  assert.equal(statuses.filter((status) => status === 200).length, 10);
  assert.equal(statuses.at(-1), 200);
  assert.equal(statuses[0], 401);
});

test('two rotations at once leave one key that is good', async () => {
  const { id } = await makeKey(client, owner);
  const texts = await Promise.all(Array.from({ length: 6 }, () => rotate(id)));
  const statuses = await Promise.all(texts.map(statusOf));
  assert.equal(statuses.filter((status) => status === 200).length, 1);
});

test('a key that is revoked while it is rotated is dead, whichever came first', async () => {
  for (let round = 0; round < 40; round += 1) {
    const { id, key } = await makeKey(client, owner);
    const json = { overlapSeconds: 60 };
    const [rotated] = await Promise.all([
      client.ask('POST', `keys/${id}/rotate`, { headers: owner, json }),
      send('DELETE', `keys/${id}`, owner, 204),
    ]);
    assert.ok([200, 404, 503].includes(rotated.status), String(rotated.status));
    await me(key, 401);
    if (rotated.status === 200) await me(String(rotated.json().key), 401);
  }
});

test('a revocation that is answered later revokes all the same', async () => {
  const { id, key } = await makeKey(client, owner);
  await send('DELETE', `keys/${id}`, { ...owner, Prefer: 'respond-async' }, 202);
  await until(async () => (await statusOf(key)) === 401, 'it is revoked');
});

test('keeps keys from everyone but their owner and administrators', async () => {
  const { id } = await makeKey(client, owner);
  const stranger = bearer(bob.token);
  for (const [method, path, json] of [
    ['GET', `keys/${id}`, undefined],
    ['PATCH', `keys/${id}`, { name: 'mine' }],
    ['DELETE', `keys/${id}`, undefined],
    ['POST', `keys/${id}/rotate`, {}],
  ] as const) {
    const { body } = await send(method, path.replace(id, 'key_none'), stranger, 404, json);
    await send(method, path, stranger, { status: 404, body }, json);
    await send(method, path, {}, 401, json);
  }
  await get('keys?limit=1000', stranger, { status: 200, lacks: [id] });
  await post('keys/bulk-delete', { ids: [id] }, stranger, { status: 200, json: { deleted: 0 } });
  await get('keys?limit=1000', asAdministrator, { status: 200, contains: [id] });
  await rotate(id, {}, asAdministrator);
});

test('lets the owner change name and end of a key, and nothing else', async () => {
  const { id } = await makeKey(client, owner);
  const changes = { name: 'renamed', expiresAt: inDays(3) };
  await patch(id, changes, owner, { status: 200, members: changes });
  await patch(id, { expiresAt: null }, owner, { status: 200, members: { expiresAt: undefined } });
  await patch(id, { expiresAt: inDays(-1) }, owner, fault(422, '/expiresAt'));
  for (const [member, value] of [
    ['kind', 'publishable'],
    ['scopes', ['read']],
    ['prefix', 'sk_AAAA'],
    ['lastUsedAt', inDays(0)],
    ['id', 'key_other'],
  ] as const) {
    await patch(id, { [member]: value }, owner, fault(400, `/${member}`));
  }
  const fields = { allow: 'GET, HEAD, PATCH, DELETE, OPTIONS' };
  await send('PUT', `keys/${id}`, owner, { status: 405, fields }, { name: 'x', kind: 'secret' });
});

test('a key gives no key more than it has itself, by making, rotating or prolonging one', async () => {
  const expiresAt = inDays(1);
  const small = await makeKey(client, owner, { expiresAt });
  const reader = await makeKey(client, owner, { scopes: ['read'] });
  const writer = await makeKey(client, owner, { scopes: ['write'] });
  const large = await makeKey(client, owner);
  const headers = apiKey(small.key);
  await make({ name: 'child' }, headers, { status: 201, members: { expiresAt } });
  await make({ expiresAt: inDays(2) }, headers, fault(422, '/expiresAt'));
  await make({ scopes: ['admin'] }, headers, fault(422, '/scopes'));
  await make({ scopes: ['read'] }, apiKey(writer.key), fault(422, '/scopes'));
  await post(`keys/${large.id}/rotate`, {}, headers, 403);
  // It may not write.
  await post(`keys/${reader.id}/rotate`, {}, apiKey(reader.key), 403);
  for (const { id } of [small, large]) {
    await patch(id, { expiresAt: inDays(9) }, headers, fault(422, '/expiresAt'));
  }
  // It ends with the key that asked.
  await patch(small.id, { expiresAt: null }, headers, { status: 200, members: { expiresAt } });
  const later = { ...headers, Prefer: 'respond-async' };
  await patch(small.id, { expiresAt: inDays(9) }, later, fault(422, '/expiresAt'));
  await post(`keys/${small.id}/rotate`, {}, headers, { status: 200, members: { expiresAt } });
});

test('limits a key to the scopes that its account has at the moment', async () => {
  const carol = await register(client, 'carol@shop.example', password);
  const { key } = await makeKey(client, bearer(carol.token));
  await post('notes', { text: 'one' }, apiKey(key), 201);
  await changeUser(client, carol.userId, { scopes: ['read'] });
  await post('notes', { text: 'two' }, apiKey(key), 403);
  await changeUser(client, carol.userId, { scopes: ['read', 'write'] });
  await post('notes', { text: 'three' }, apiKey(key), 201);
});

test('a key made with the administrator key is a principal of its own', async () => {
  const one = await makeKey(client, asAdministrator);
  const other = await makeKey(client, asAdministrator);
  const members = { id: one.id, kind: 'key', scopes: ['read', 'write'] };
  await me(one.key, { status: 200, members });
  const note = await post('notes', { text: 'of a key' }, apiKey(one.key), 201);
  const child = await makeKey(client, apiKey(one.key));
  for (const path of [String(note.headers.location), `keys/${child.id}`]) {
    await get(path, apiKey(one.key), 200);
    await get(path, apiKey(other.key), 404);
  }
  await get('users', apiKey(one.key), 403);
  const all = await makeKey(client, asAdministrator, { scopes: ['read', 'write', 'admin'] });
  await get('users', apiKey(all.key), 200);
});

test('tells when a key was last used, without touching when it was changed', async () => {
  const { id, key } = await makeKey(client, owner);
  const read = async () => (await get(`keys/${id}`, owner, 200)).json();
  const before = await read();
  assert.equal(before.lastUsedAt, undefined);
  const usedAt = Date.now();
  await me(key, 200);
  let shown = before;
  await until(async () => {
    shown = await read();
    return shown.lastUsedAt !== undefined;
  }, 'the use is shown');
  assert.ok(Math.abs(Date.parse(String(shown.lastUsedAt)) - usedAt) < 2000);
  assert.equal(shown.updatedAt, before.updatedAt);
});

test('keeps the uses that wait when the program is stopped', async () => {
  const folder = temporaryFolder();
  const first = await startServer({ folder });
  const { id, key } = (await first.send('POST', 'keys', { json: { name: 'used', kind: 'secret' } })).json();
  await first.send('GET', 'notes', { headers: apiKey(key), anonymous: true, expect: 200 });
  await first.stop();
  const second = await startServer({ folder });
  const answer = await second.send('GET', `keys/${id}`, { expect: 200 });
  assert.ok(typeof answer.json().lastUsedAt === 'string');
  await second.stop();
});

test('tells administrators of every key that was made, changed, rotated and revoked, and no secret', async () => {
  const headers = bearer(bob.token);
  const { id, key } = await makeKey(client, headers);
  await patch(id, { name: 'renamed' }, headers, 200);
  const rotated = await rotate(id, { overlapSeconds: 60 }, headers);
  await send('DELETE', `keys/${id}`, headers, 204);
  const lacks = [key, rotated].map((secret) => secret.slice(3));
  const audit = await client.ask('GET', `audit?subject=${id}`, {
    as: adminKey,
    expect: { status: 200, lacks },
  });
  const { items } = audit.json();
  assert.deepEqual(valuesOf(items, 'type'), ['key.created', 'key.changed', 'key.rotated', 'key.revoked']);
  for (const { actor, address } of items) assert.deepEqual([actor.id, address], [bob.userId, '127.0.0.1']);
});

test('a publishable key, which anyone can find in a page, sees nothing of its owner’s', async () => {
  const cy = await register(client, 'cy@shop.example', password);
  await changeUser(client, cy.userId, { roles: ['editor'], tenant: 'north' });
  const note = await post('notes', { text: 'private' }, bearer(cy.token), 201);
  const { id, key } = await makeKey(client, bearer(cy.token), { kind: 'publishable' });
  const members = { id, kind: 'key', roles: [], scopes: ['read'], tenant: null, email: undefined };
  await me(key, { status: 200, members });
  await get(String(note.headers.location), apiKey(key), 404);
  for (const path of ['notes', 'keys']) await get(path, apiKey(key), { status: 200, members: { items: [] } });
  await get(`users/${cy.userId}`, apiKey(key), 404);
  await get('products', apiKey(key), 200);
  await changeUser(client, cy.userId, { disabled: true });
  await me(key, 401);
});

test('revoking a key ends the keys that were made with it, and those made with them', async () => {
  const headers = bearer(bob.token);
  const first = await makeKey(client, headers);
  const second = await makeKey(client, apiKey(first.key));
  const third = await makeKey(client, apiKey(second.key), { kind: 'publishable' });
  const beside = await makeKey(client, headers);
  await get(`keys/${second.id}`, headers, { status: 200, members: { madeBy: first.id } });
  for (const { key } of [first, second, third]) await me(key, 200);
  await send('DELETE', `keys/${first.id}`, headers, 204);
  for (const { key } of [first, second, third]) await me(key, 401);
  await me(beside.key, 200);
});

test('keys are made one with the other eight times at most', async () => {
  let { key } = await makeKey(client, bearer(bob.token));
  for (let made = 1; made < 8; made += 1) ({ key } = await makeKey(client, apiKey(key)));
  await make({ name: 'one too many' }, apiKey(key), 422);
  await me(key, 200);
});
