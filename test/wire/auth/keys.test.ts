/** `/keys` (§5.2): made, shown once, limited, rotated, revoked; each by its owner alone. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type Answer,
  asAdministrator,
  base,
  bearer,
  changeUser,
  makeKey,
  register,
  serveAccounts,
} from '../../harness/account-client.ts';
import { type RunningServer, startServer } from '../../harness/running-server.ts';
import { temporaryFolder } from '../../harness/temporary-folder.ts';
import { until } from '../../harness/until.ts';

const dayMs = 86_400_000;

const { client } = await serveAccounts({
  env: { COMITY_KEY_OVERLAP_SECONDS_MAX: '3600' },
  bounds: { keyUseSeconds: 1 },
});
const ada = await register(client, 'ada@shop.example', 'correct horse battery');
const bob = await register(client, 'bob@shop.example', 'correct horse battery');

const apiKey = (key: string) => ({ 'X-API-Key': key });
const inDays = (days: number) => new Date(Date.now() + days * dayMs).toISOString();

function post(path: string, json: unknown, headers: Readonly<Record<string, string>>): Promise<Answer> {
  return client.ask('POST', `${base}${path}`, { json, headers });
}

async function me(key: string): Promise<Answer> {
  return client.ask('GET', `${base}/auth/me`, { headers: apiKey(key) });
}

function assertFault(answer: Answer, status: number, pointer: string): void {
  assert.equal(answer.status, status, answer.body);
  const { errors } = answer.json() as { errors: readonly { pointer: string }[] };
  assert.deepEqual(
    errors.map((error) => error.pointer),
    [pointer],
  );
}

test('makes a key for whoever asks and shows it once', async () => {
  const made = await post('/keys', { name: 'import', kind: 'secret' }, bearer(ada.token));
  assert.equal(made.status, 201, made.body);
  assert.equal(made.headers['cache-control'], 'no-store');
  const { key, ...representation } = made.json() as Record<string, string>;
  assert.match(key ?? '', /^sk_[A-Za-z0-9_-]{43}$/);
  assert.match(representation.id ?? '', /^key_[0-9a-hjkmnp-tv-z]{26}$/);
  assert.equal(made.headers.location, `${base}/keys/${representation.id}`);
  assert.equal(representation.prefix, key?.slice(0, 7));
  assert.deepEqual(representation.scopes, ['read', 'write']);
  const read = await client.ask('GET', made.headers.location ?? '', { headers: bearer(ada.token) });
  assert.equal(read.status, 200);
  assert.deepEqual(read.json(), representation);
  const who = await me(key ?? '');
  assert.equal(who.status, 200);
  assert.equal(who.json().id, ada.userId);
});

test('never says a key again in a list, QUERY or patch, and says it for the same Idempotency-Key alone', async () => {
  const headers = { ...bearer(ada.token), 'Idempotency-Key': '"once"', Prefer: 'respond-async' };
  const made = [
    await post('/keys', { name: 'twice', kind: 'secret' }, headers),
    await post('/keys', { name: 'twice', kind: 'secret' }, headers),
  ];
  assert.deepEqual(
    made.map(({ status }) => status),
    [201, 201],
  );
  const [one, two] = made.map((answer) => answer.json() as Record<string, string>);
  assert.deepEqual(one, two);
  const bodies = [
    await client.ask('GET', `${base}/keys?name=twice`, { headers: bearer(ada.token) }),
    await client.ask('QUERY', `${base}/keys`, { headers: bearer(ada.token), json: { q: 'twice' } }),
    await client.ask('PATCH', `${base}/keys/${one?.id}`, {
      headers: bearer(ada.token),
      json: { name: 'renamed' },
    }),
  ];
  for (const { status, body } of bodies) {
    assert.equal(status, 200);
    for (const secret of [one?.key, two?.key]) assert.ok(!body.includes(secret ?? ''));
  }
});

test('takes a form as well, and shows the key instead of leading a browser away from it', async () => {
  const answer = await client.ask('POST', `${base}/keys`, {
    headers: {
      ...bearer(ada.token),
      'Content-Type': 'application/x-www-form-urlencoded',
      Accept: 'text/html, application/json;q=0.9',
    },
    body: 'name=form&kind=publishable',
  });
  assert.equal(answer.status, 201, answer.body);
  assert.match(String(answer.json().key), /^pk_/);
});

test('refuses scopes that the maker lacks, and any but read for a publishable key', async () => {
  const beyond = await post(
    '/keys',
    { name: 'x', kind: 'secret', scopes: ['read', 'admin'] },
    bearer(ada.token),
  );
  assertFault(beyond, 422, '/scopes');
  for (const scopes of [['write'], ['read', 'write'], ['admin']]) {
    const answer = await post('/keys', { name: 'x', kind: 'publishable', scopes }, asAdministrator);
    assertFault(answer, 422, '/scopes');
  }
  const unknown = await post(
    '/keys',
    { name: 'x', kind: 'secret', scopes: ['everything'] },
    bearer(ada.token),
  );
  assert.equal(unknown.status, 422);
});

test('refuses an end that does not lie ahead, and stores one as UTC', async () => {
  for (const expiresAt of [inDays(-1), '2020-01-01T00:00:00Z']) {
    const answer = await post('/keys', { name: 'x', kind: 'secret', expiresAt }, bearer(ada.token));
    assertFault(answer, 422, '/expiresAt');
  }
  const wanted = { name: 'x', kind: 'secret', expiresAt: '2199-12-31T23:00:00-01:00' };
  const answer = await post('/keys', wanted, bearer(ada.token));
  assert.equal(answer.json().expiresAt, '2200-01-01T00:00:00.000Z');
});

test('refuses members that the server makes, and content without what a key needs', async () => {
  const headers = bearer(ada.token);
  assert.equal((await post('/keys', { kind: 'secret' }, headers)).status, 400);
  assert.equal((await post('/keys', { name: 'x' }, headers)).status, 400);
  assert.equal((await post('/keys', { name: 'x', kind: 'golden' }, headers)).status, 422);
  assertFault(await post('/keys', { name: 'x', kind: 'secret', prefix: 'sk_AAAA' }, headers), 422, '/prefix');
  assert.equal((await post('/keys', { name: 'x', kind: 'secret' }, {})).status, 401);
});

test('lets a publishable key read and nothing else', async () => {
  const { key } = await makeKey(client, bearer(ada.token), { kind: 'publishable' });
  assert.equal((await client.ask('GET', `${base}/notes`, { headers: apiKey(key) })).status, 200);
  assert.equal((await post('/notes', { text: 'no' }, apiKey(key))).status, 403);
  assert.equal((await post('/keys', { name: 'more', kind: 'secret' }, apiKey(key))).status, 403);
  const administrators = await makeKey(client, asAdministrator, { kind: 'publishable' });
  assert.equal((await post('/notes', { text: 'no' }, apiKey(administrators.key))).status, 403);
});

test('a revoked key is dead with the answer, alone or in bulk', async () => {
  const headers = bearer(ada.token);
  const keys = [
    await makeKey(client, headers),
    await makeKey(client, headers),
    await makeKey(client, headers),
  ];
  for (const { key } of keys) assert.equal((await me(key)).status, 200);
  const [first, ...others] = keys;
  assert.equal((await client.ask('DELETE', `${base}/keys/${first?.id}`, { headers })).status, 204);
  const refused = await me(first?.key ?? '');
  assert.equal(refused.status, 401);
  assert.equal(refused.json().error, 'invalid API key');
  assert.ok(refused.headers['www-authenticate']);
  const bulk = await post('/keys/bulk-delete', { ids: others.map(({ id }) => id) }, headers);
  assert.deepEqual(bulk.json(), { deleted: 2 });
  for (const { key } of others) assert.equal((await me(key)).status, 401);
});

test('rotation kills the old text at once, or after the overlap that was asked for', async () => {
  const headers = bearer(ada.token);
  const { id, key: first } = await makeKey(client, headers);
  const rotate = (json?: unknown) =>
    client.ask('POST', `${base}/keys/${id}/rotate`, { headers, ...(json === undefined ? {} : { json }) });
  const rotated = await rotate();
  assert.equal(rotated.status, 200, rotated.body);
  assert.equal(rotated.headers['cache-control'], 'no-store');
  const second = String(rotated.json().key);
  assert.notEqual(second, first);
  assert.equal(rotated.json().id, id);
  assert.equal(rotated.json().prefix, second.slice(0, 7));
  assert.deepEqual([(await me(first)).status, (await me(second)).status], [401, 200]);
  const third = String((await rotate({ overlapSeconds: 3600 })).json().key);
  const fourth = String((await rotate({ overlapSeconds: 3600 })).json().key);
  for (const key of [second, third, fourth]) assert.equal((await me(key)).status, 200);
  const fifth = String((await rotate({ overlapSeconds: 0 })).json().key);
  for (const key of [second, third, fourth]) assert.equal((await me(key)).status, 401);
  assert.equal((await me(fifth)).status, 200);
  assertFault(await rotate({ overlapSeconds: 3601 }), 422, '/overlapSeconds');
  assertFault(await rotate({ overlapSeconds: -1 }), 422, '/overlapSeconds');
  await client.ask('DELETE', `${base}/keys/${id}`, { headers });
  assert.equal((await me(fifth)).status, 401);
});

test('an overlap ends by itself', async () => {
  const headers = bearer(ada.token);
  const { id, key } = await makeKey(client, headers);
  assert.equal((await post(`/keys/${id}/rotate`, { overlapSeconds: 1 }, headers)).status, 200);
  assert.equal((await me(key)).status, 200);
  await until(async () => (await me(key)).status === 401, 'the old text ends');
});

test('an end that is set or moved counts for every text of the key', async () => {
  const headers = bearer(ada.token);
  const { id, key } = await makeKey(client, headers, { expiresAt: inDays(1) });
  const next = String((await post(`/keys/${id}/rotate`, { overlapSeconds: 3600 }, headers)).json().key);
  const soon = new Date(Date.now() + 1000).toISOString();
  const patch = { headers, json: { expiresAt: soon } };
  assert.equal((await client.ask('PATCH', `${base}/keys/${id}`, patch)).status, 200);
  for (const text of [key, next]) {
    await until(async () => (await me(text)).status === 401, 'it ends');
    assert.ok(Date.now() >= Date.parse(soon));
  }
  const expired = await post(`/keys/${id}/rotate`, {}, headers);
  assert.deepEqual([expired.status, expired.json().error], [422, 'the key has expired; set expiresAt first']);
  const longer = { headers, json: { expiresAt: null } };
  assert.equal((await client.ask('PATCH', `${base}/keys/${id}`, longer)).status, 200);
  assert.deepEqual([(await me(key)).status, (await me(next)).status], [200, 200]);
});

test('of many rotations with overlap only the newest texts stay good', async () => {
  const headers = bearer(ada.token);
  const { id, key } = await makeKey(client, headers);
  const texts = [key];
  for (let count = 0; count < 12; count += 1) {
    texts.push(String((await post(`/keys/${id}/rotate`, { overlapSeconds: 3600 }, headers)).json().key));
  }
  const statuses = await Promise.all(texts.map(async (text) => (await me(text)).status));
  assert.equal(statuses.filter((status) => status === 200).length, 10);
  assert.equal(statuses.at(-1), 200);
  assert.equal(statuses[0], 401);
});

test('two rotations at once leave one key that is good', async () => {
  const headers = bearer(ada.token);
  const { id } = await makeKey(client, headers);
  const answers = await Promise.all(Array.from({ length: 6 }, () => post(`/keys/${id}/rotate`, {}, headers)));
  const texts = answers.map((answer) => String(answer.json().key));
  assert.deepEqual([...new Set(answers.map(({ status }) => status))], [200]);
  const good = await Promise.all(texts.map(async (text) => (await me(text)).status === 200));
  assert.equal(good.filter(Boolean).length, 1);
});

test('a key that is revoked while it is rotated is dead, whichever came first', async () => {
  const headers = bearer(ada.token);
  const outcomes = new Set<number>();
  for (let round = 0; round < 40; round += 1) {
    const { id, key } = await makeKey(client, headers);
    const rotating = post(`/keys/${id}/rotate`, { overlapSeconds: 60 }, headers);
    const revoking = client.ask('DELETE', `${base}/keys/${id}`, { headers });
    const [rotated, revoked] = await Promise.all([rotating, revoking]);
    assert.equal(revoked.status, 204, revoked.body);
    outcomes.add(rotated.status);
    const texts = rotated.status === 200 ? [key, String(rotated.json().key)] : [key];
    for (const text of texts) assert.equal((await me(text)).status, 401);
  }
  for (const status of outcomes) assert.ok([200, 404, 503].includes(status), String(status));
});

test('a revocation that is answered later revokes all the same', async () => {
  const headers = { ...bearer(ada.token), Prefer: 'respond-async' };
  const { id, key } = await makeKey(client, bearer(ada.token));
  const accepted = await client.ask('DELETE', `${base}/keys/${id}`, { headers });
  assert.equal(accepted.status, 202);
  await until(async () => (await me(key)).status === 401, 'it is revoked');
});

test('keeps keys from everyone but their owner and administrators', async () => {
  const { id } = await makeKey(client, bearer(ada.token));
  const stranger = bearer(bob.token);
  for (const [method, path, json] of [
    ['GET', `/keys/${id}`, undefined],
    ['PATCH', `/keys/${id}`, { name: 'mine' }],
    ['DELETE', `/keys/${id}`, undefined],
    ['POST', `/keys/${id}/rotate`, {}],
  ] as const) {
    const asked = json === undefined ? {} : { json };
    const answer = await client.ask(method, `${base}${path}`, { headers: stranger, ...asked });
    assert.equal(answer.status, 404, `${method} ${path}`);
    const missing = await client.ask(method, `${base}${path.replace(id, 'key_none')}`, {
      headers: stranger,
      ...asked,
    });
    assert.equal(answer.body, missing.body);
    assert.equal((await client.ask(method, `${base}${path}`, asked)).status, 401);
  }
  const listed = await client.ask('GET', `${base}/keys?limit=1000`, { headers: stranger });
  assert.ok(!listed.body.includes(id));
  const bulk = await post('/keys/bulk-delete', { ids: [id] }, stranger);
  assert.deepEqual(bulk.json(), { deleted: 0 });
  const administrators = await client.ask('GET', `${base}/keys?limit=1000`, { headers: asAdministrator });
  assert.ok(administrators.body.includes(id));
  assert.equal((await post(`/keys/${id}/rotate`, {}, asAdministrator)).status, 200);
});

test('lets the owner change name and end of a key, and nothing else', async () => {
  const headers = bearer(ada.token);
  const { id } = await makeKey(client, headers);
  const path = `${base}/keys/${id}`;
  const expiresAt = inDays(3);
  const patched = await client.ask('PATCH', path, { headers, json: { name: 'renamed', expiresAt } });
  assert.equal(patched.status, 200, patched.body);
  assert.deepEqual([patched.json().name, patched.json().expiresAt], ['renamed', expiresAt]);
  const removed = await client.ask('PATCH', path, { headers, json: { expiresAt: null } });
  assert.equal(removed.json().expiresAt, undefined);
  assertFault(
    await client.ask('PATCH', path, { headers, json: { expiresAt: inDays(-1) } }),
    422,
    '/expiresAt',
  );
  for (const [member, value] of [
    ['kind', 'publishable'],
    ['scopes', ['read']],
    ['prefix', 'sk_AAAA'],
    ['lastUsedAt', inDays(0)],
    ['id', 'key_other'],
  ] as const) {
    assertFault(await client.ask('PATCH', path, { headers, json: { [member]: value } }), 400, `/${member}`);
  }
  const put = await client.ask('PUT', path, { headers, json: { name: 'x', kind: 'secret' } });
  assert.equal(put.status, 405);
  assert.equal(put.headers.allow, 'GET, HEAD, PATCH, DELETE, OPTIONS');
});

test('a key gives no key more than it has itself, by making, rotating or prolonging one', async () => {
  const owner = bearer(ada.token);
  const expiresAt = inDays(1);
  const small = await makeKey(client, owner, { expiresAt });
  const reader = await makeKey(client, owner, { scopes: ['read'] });
  const writer = await makeKey(client, owner, { scopes: ['write'] });
  const large = await makeKey(client, owner);
  const headers = apiKey(small.key);
  const inherited = await post('/keys', { name: 'child', kind: 'secret' }, headers);
  assert.equal(inherited.status, 201, inherited.body);
  assert.equal(inherited.json().expiresAt, expiresAt);
  assertFault(
    await post('/keys', { name: 'x', kind: 'secret', expiresAt: inDays(2) }, headers),
    422,
    '/expiresAt',
  );
  assertFault(await post('/keys', { name: 'x', kind: 'secret', scopes: ['admin'] }, headers), 422, '/scopes');
  assertFault(
    await post('/keys', { name: 'x', kind: 'secret', scopes: ['read'] }, apiKey(writer.key)),
    422,
    '/scopes',
  );
  assert.equal((await post(`/keys/${large.id}/rotate`, {}, headers)).status, 403);
  assert.equal(
    (await post(`/keys/${reader.id}/rotate`, {}, apiKey(reader.key))).status,
    403,
    'it may not write',
  );
  for (const { id } of [small, large]) {
    const patch = { headers, json: { expiresAt: inDays(9) } };
    assertFault(await client.ask('PATCH', `${base}/keys/${id}`, patch), 422, '/expiresAt');
  }
  const unlimited = await client.ask('PATCH', `${base}/keys/${small.id}`, {
    headers,
    json: { expiresAt: null },
  });
  assert.equal(unlimited.json().expiresAt, expiresAt, 'it ends with the key that asked');
  const later = { headers: { ...headers, Prefer: 'respond-async' }, json: { expiresAt: inDays(9) } };
  assertFault(await client.ask('PATCH', `${base}/keys/${small.id}`, later), 422, '/expiresAt');
  const itself = await post(`/keys/${small.id}/rotate`, {}, headers);
  assert.equal(itself.status, 200, itself.body);
  assert.equal(itself.json().expiresAt, expiresAt);
});

test('limits a key to the scopes that its account has at the moment', async () => {
  const carol = await register(client, 'carol@shop.example', 'correct horse battery');
  const { key } = await makeKey(client, bearer(carol.token));
  assert.equal((await post('/notes', { text: 'one' }, apiKey(key))).status, 201);
  await changeUser(client, carol.userId, { scopes: ['read'] });
  assert.equal((await post('/notes', { text: 'two' }, apiKey(key))).status, 403);
  await changeUser(client, carol.userId, { scopes: ['read', 'write'] });
  assert.equal((await post('/notes', { text: 'three' }, apiKey(key))).status, 201);
});

test('a key made with the administrator key is a principal of its own', async () => {
  const one = await makeKey(client, asAdministrator);
  const other = await makeKey(client, asAdministrator);
  const who = (await me(one.key)).json();
  assert.deepEqual([who.id, who.kind, who.scopes], [one.id, 'key', ['read', 'write']]);
  const note = await post('/notes', { text: 'of a key' }, apiKey(one.key));
  assert.equal(note.status, 201);
  const location = note.headers.location ?? '';
  assert.equal((await client.ask('GET', location, { headers: apiKey(one.key) })).status, 200);
  assert.equal((await client.ask('GET', location, { headers: apiKey(other.key) })).status, 404);
  assert.equal((await client.ask('GET', `${base}/users`, { headers: apiKey(one.key) })).status, 403);
  const child = await makeKey(client, apiKey(one.key));
  assert.equal(
    (await client.ask('GET', `${base}/keys/${child.id}`, { headers: apiKey(one.key) })).status,
    200,
  );
  assert.equal(
    (await client.ask('GET', `${base}/keys/${child.id}`, { headers: apiKey(other.key) })).status,
    404,
  );
  const all = await makeKey(client, asAdministrator, { scopes: ['read', 'write', 'admin'] });
  assert.equal((await client.ask('GET', `${base}/users`, { headers: apiKey(all.key) })).status, 200);
});

test('tells when a key was last used, without touching when it was changed', async () => {
  const headers = bearer(ada.token);
  const { id, key } = await makeKey(client, headers);
  const read = async () => (await client.ask('GET', `${base}/keys/${id}`, { headers })).json();
  const before = await read();
  assert.equal(before.lastUsedAt, undefined);
  const usedAt = Date.now();
  await me(key);
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
  const readUse = async (running: RunningServer, id: string) => {
    const answer = await running.send('GET', `${base}/keys/${id}`);
    return { status: answer.status, lastUsedAt: answer.json().lastUsedAt };
  };
  const first = await startServer({ folder });
  const made = (await first.send('POST', `${base}/keys`, { json: { name: 'used', kind: 'secret' } })).json();
  const headers = { 'X-API-Key': String(made.key) };
  assert.equal((await first.send('GET', `${base}/notes`, { headers, anonymous: true })).status, 200);
  await first.stop();
  const second = await startServer({ folder });
  const { status, lastUsedAt } = await readUse(second, String(made.id));
  assert.equal(status, 200);
  assert.ok(typeof lastUsedAt === 'string');
  await second.stop();
});

test('tells administrators of every key that was made, changed, rotated and revoked, and no secret', async () => {
  const headers = bearer(bob.token);
  const { id, key } = await makeKey(client, headers);
  await client.ask('PATCH', `${base}/keys/${id}`, { headers, json: { name: 'renamed' } });
  const rotated = String((await post(`/keys/${id}/rotate`, { overlapSeconds: 60 }, headers)).json().key);
  await client.ask('DELETE', `${base}/keys/${id}`, { headers });
  const audit = await client.ask('GET', `${base}/audit?subject=${id}`, { headers: asAdministrator });
  const items = audit.json().items as readonly { type: string; actor: { id: string }; address: string }[];
  assert.deepEqual(
    items.map(({ type }) => type),
    ['key.created', 'key.changed', 'key.rotated', 'key.revoked'],
  );
  for (const { actor, address } of items) assert.deepEqual([actor.id, address], [bob.userId, '127.0.0.1']);
  for (const secret of [key, rotated]) assert.ok(!audit.body.includes(secret.slice(3)));
});
