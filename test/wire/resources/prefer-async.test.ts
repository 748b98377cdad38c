/**
 * Prefer (RFC 7240): return=minimal and return=representation on every unsafe method, respond-async and what becomes of an
 * operation (§4.1, §4.7, §4.12).
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { createOperations } from '../../../src/kernel/operations/operations.ts';
import { operationRequestsTable, operationsTable } from '../../../src/kernel/operations/stored-request.ts';
import { type Ask, noPreferences } from '../../../src/kernel/resource.ts';
import { createIdSource } from '../../../src/model/id.ts';
import { type Authenticated, authenticated, operatorId } from '../../../src/model/principal.ts';

import { openPostgresStore } from '../../../src/store/postgres/postgres-store.ts';
import { openSqliteStore } from '../../../src/store/sqlite/sqlite-store.ts';
import type { Answer, RequestOptions } from '../../harness/exchange.ts';
import { placeOf, type RunningServer, serverOfFile, startServer } from '../../harness/running-server.ts';
import { spawnServer } from '../../harness/server-process.ts';
import { temporaryFolder } from '../../harness/temporary-folder.ts';
import { askOf } from '../../resources/ask.ts';

const products = '/api/v1/products';
const later = { Prefer: 'respond-async' };
/** How long an operation may take before the test gives up: on PostgreSQL that of a killed process waits for the end of its lease, 30 s. */
const patienceMs = process.env.COMITY_TEST_STORE === 'postgres' ? 60_000 : 10_000;

const program = await serverOfFile();
const categoryId = String(
  (await program.send('POST', '/api/v1/categories', { json: { name: 'C' } })).json().id,
);

const body = (fields: Record<string, unknown> = {}) => ({ name: 'P', price: 1, categoryId, ...fields });

async function make(fields: Record<string, unknown> = {}) {
  const answer = await program.send('POST', products, { json: body(fields) });
  return { path: String(answer.headers.location), etag: String(answer.headers.etag) };
}

/** Asks after an operation until it has ended: 303, or 200 with another status than pending. */
async function ended(at: RunningServer, location: string): Promise<Answer> {
  const until = Date.now() + patienceMs;
  for (;;) {
    const answer = await at.send('GET', location);
    if (answer.status === 303) return answer;
    assert.equal(answer.status, 200, answer.body);
    if (answer.json().status !== 'pending') return answer;
    assert.equal(answer.headers['retry-after'], '1', 'a pending operation says when to ask again');
    assert.ok(Date.now() < until, `${location} is still pending`);
    await pause(10);
  }
}

async function accepted(method: string, path: string, options: RequestOptions = {}): Promise<string> {
  const answer = await program.send(method, path, {
    ...options,
    headers: { ...later, ...options.headers },
  });
  assert.equal(answer.status, 202, answer.body);
  assert.match(String(answer.headers.location), /^\/api\/v1\/operations\/op_\w+$/);
  assert.equal(answer.headers['preference-applied'], 'respond-async');
  assert.equal(answer.headers['cache-control'], 'no-store');
  assert.equal(answer.json().status, 'pending');
  assert.equal(answer.headers.location, `/api/v1/operations/${answer.json().id}`);
  return String(answer.headers.location);
}

for (const [preference, status] of [
  ['return=minimal', 201],
  ['return=representation', 201],
] as const) {
  test(`POST with ${preference} says that it was applied, and has Location and ETag either way`, async () => {
    const answer = await program.send('POST', products, { json: body(), headers: { Prefer: preference } });
    assert.equal(answer.status, status);
    assert.equal(answer.headers['preference-applied'], preference);
    assert.ok(answer.headers.location);
    assert.ok(answer.headers.etag);
    assert.equal(answer.body === '', preference === 'return=minimal');
  });
}

test('PUT and PATCH answer 204 with return=minimal and 200 with return=representation', async () => {
  for (const [method, json] of [
    ['PUT', body({ price: 2 })],
    ['PATCH', { price: 3 }],
  ] as const) {
    const { path } = await make();
    const minimal = await program.send(method, path, { json, headers: { Prefer: 'return=minimal' } });
    assert.equal(minimal.status, 204, method);
    assert.equal(minimal.body, '');
    assert.equal(minimal.headers['content-type'], undefined);
    assert.equal(minimal.headers['content-length'], undefined);
    assert.equal(minimal.headers['preference-applied'], 'return=minimal');
    const whole = await program.send(method, path, { json, headers: { Prefer: 'return=representation' } });
    assert.equal(whole.status, 200, method);
    assert.equal(whole.json().price, json.price);
    assert.equal(whole.headers['preference-applied'], 'return=representation');
    const plain = await program.send(method, path, { json });
    assert.equal(plain.status, 200, method);
    assert.equal(plain.headers['preference-applied'], undefined);
  }
});

test('PUT that creates answers 201, with return=minimal without content', async () => {
  const answer = await program.send('PUT', '/api/v1/articles/minimal', {
    json: { title: 'T' },
    headers: { Prefer: 'return=minimal' },
  });
  assert.equal(answer.status, 201);
  assert.equal(answer.body, '');
  assert.equal(answer.headers.location, '/api/v1/articles/minimal');
  assert.equal(answer.headers['preference-applied'], 'return=minimal');
});

test('DELETE answers 204 unless return=representation asks for what is gone', async () => {
  const first = await make();
  const minimal = await program.send('DELETE', first.path, { headers: { Prefer: 'return=minimal' } });
  assert.equal(minimal.status, 204);
  assert.equal(minimal.headers['preference-applied'], 'return=minimal');
  const second = await make();
  const whole = await program.send('DELETE', second.path, { headers: { Prefer: 'return=representation' } });
  assert.equal(whole.status, 200);
  assert.equal(whole.headers['preference-applied'], 'return=representation');
  assert.equal(`${products}/${whole.json().id}`, second.path);
});

test('unknown preferences are ignored, and of two returns the first counts', async () => {
  const odd = await program.send('POST', products, {
    json: body(),
    headers: { Prefer: 'colour=red; shade=dark, wait=10, return=everything' },
  });
  assert.equal(odd.status, 201);
  assert.equal(odd.headers['preference-applied'], undefined);
  const two = await program.send('POST', products, {
    json: body(),
    headers: { Prefer: ['return=minimal', 'return=representation'] },
  });
  assert.equal(two.headers['preference-applied'], 'return=minimal');
});

test('respond-async POST is accepted, and its operation ends in 303 to what was made', async () => {
  const location = await accepted('POST', products, { json: body({ name: 'Later' }) });
  const answer = await ended(program, location);
  assert.equal(answer.status, 303);
  assert.equal(answer.headers['cache-control'], 'no-store');
  const made = await program.send('GET', String(answer.headers.location));
  assert.equal(made.status, 200);
  assert.equal(made.json().name, 'Later');
});

test('respond-async PUT and PATCH end in 303 to what was changed', async () => {
  for (const [method, json] of [
    ['PUT', body({ price: 20 })],
    ['PATCH', { price: 30 }],
  ] as const) {
    const { path, etag } = await make();
    const location = await accepted(method, path, { json, headers: { 'If-Match': etag } });
    const answer = await ended(program, location);
    assert.equal(answer.status, 303, `${method} ${answer.body}`);
    assert.equal(answer.headers.location, path);
    assert.equal((await program.send('GET', path)).json().price, json.price);
  }
});

test('respond-async DELETE ends in 303 to what was deleted', async () => {
  const { path } = await make({ name: 'Goner' });
  const location = await accepted('DELETE', path);
  const answer = await ended(program, location);
  assert.equal(answer.status, 303);
  assert.equal(answer.headers.location, `${location}/result`);
  const result = await program.send('GET', String(answer.headers.location));
  assert.equal(result.status, 200);
  assert.equal(result.json().name, 'Goner');
  assert.equal((await program.send('GET', path)).status, 404);
});

test('respond-async bulk-delete ends in 303 to its count', async () => {
  const { path } = await make();
  const ids = [path.slice(products.length + 1), 'none'];
  const location = await accepted('POST', `${products}/bulk-delete`, { json: { ids } });
  const answer = await ended(program, location);
  assert.equal(answer.headers.location, `${location}/result`);
  assert.deepEqual((await program.send('GET', `${location}/result`)).json(), { deleted: 1 });
});

test('what is wrong with the request itself is refused at once, not accepted', async () => {
  const send = (method: string, path: string, options: RequestOptions) =>
    program.send(method, path, { ...options, headers: { ...later, ...options.headers } });
  const { path } = await make();
  assert.equal((await send('POST', products, { json: {} })).status, 400);
  assert.equal((await send('POST', products, { json: body({ price: 'x' }) })).status, 422);
  assert.equal((await send('POST', products, { json: body(), anonymous: true })).status, 401);
  assert.equal((await send('DELETE', `${products}/none`, {})).status, 404);
  assert.equal(
    (await send('PATCH', path, { json: { price: 2 }, headers: { 'If-Match': '"0"' } })).status,
    412,
  );
});

test('a result that happens to say pending is not taken for a pending operation', async (t) => {
  const config = fileURLToPath(new URL('../fixtures/orders.config.ts', import.meta.url));
  const orders = await startServer({ config });
  t.after(() => orders.stop());
  const { headers } = await orders.send('POST', '/api/v1/orders', { json: { status: 'pending' } });
  const gone = await orders.send('DELETE', String(headers.location), { headers: later });
  const location = String((await ended(orders, String(gone.headers.location))).headers.location);
  const result = await orders.send('GET', location);
  assert.equal(result.json().status, 'pending');
  assert.equal(result.headers['retry-after'], undefined);
});

test('an operation that the store refuses ends as failed, with the error', async () => {
  const location = await accepted('POST', products, { json: body({ categoryId: 'none' }) });
  const answer = await ended(program, location);
  assert.equal(answer.status, 200);
  assert.equal(answer.json().status, 'failed');
  const outcome = answer.json().outcome as Record<string, unknown>;
  assert.equal(outcome.code, 'reference_missing');
  assert.equal(typeof outcome.error, 'string');
  assert.equal(answer.headers['retry-after'], undefined, 'it has ended');
  const result = await program.send('GET', `${location}/result`);
  assert.equal((result.json() as { code?: string }).code, 'reference_missing');
});

test('a failed operation changed nothing and emitted nothing', async () => {
  const taken = await make({ sku: 'ASYNC-1' });
  const location = await accepted('POST', products, { json: body({ sku: 'ASYNC-1', name: 'Ghost' }) });
  assert.equal((await ended(program, location)).json().status, 'failed');
  assert.ok(!(await program.send('GET', `${products}?name=Ghost`)).body.includes('Ghost'));
  const events = await program.send('GET', '/api/v1/events?order=desc&limit=1');
  assert.ok(
    events.body.includes(taken.path.slice(products.length + 1)),
    'the newest event is the one before',
  );
});

test('an unknown operation is 404, and so is its result', async () => {
  assert.equal((await program.send('GET', '/api/v1/operations/op_none')).status, 404);
  assert.equal((await program.send('GET', '/api/v1/operations/op_none/result')).status, 404);
});

test('nobody without a credential sees an operation', async () => {
  const location = await accepted('POST', products, { json: body() });
  await ended(program, location);
  for (const path of [location, `${location}/result`]) {
    assert.equal((await program.send('GET', path, { anonymous: true })).status, 401);
  }
});

test('respond-async means nothing to a safe method', async () => {
  assert.equal((await program.send('GET', products, { headers: later })).status, 200);
  const query = await program.send('QUERY', products, { json: {}, headers: later });
  assert.equal(query.status, 200);
  assert.equal(query.headers['preference-applied'], undefined);
});

test('with an Idempotency-Key the result itself is answered, since a preference may be passed over', async () => {
  const headers = { ...later, 'Idempotency-Key': '"async-and-key"' };
  const answer = await program.send('POST', products, { json: body(), headers });
  assert.equal(answer.status, 201);
  assert.equal(answer.headers['preference-applied'], undefined);
});

test('an accepted operation survives a kill before it was carried out, and happens exactly once', async (t) => {
  const folder = temporaryFolder();
  const first = await spawnServer({ folder });
  const category = await first.send('POST', '/api/v1/categories', { json: { name: 'Survivor' } });
  await first.kill();

  // A process that accepts, commits, and dies before it carries anything out: what a kill leaves at the worst moment.
  const location = await acceptOnly(folder, '/api/v1/categories', { name: 'Accepted' });

  const second = await startServer({ folder });
  t.after(() => second.stop());
  const answer = await ended(second, location);
  assert.equal(answer.status, 303);
  assert.equal((await second.send('GET', String(answer.headers.location))).json().name, 'Accepted');
  await second.stop();
  const third = await startServer({ folder });
  t.after(() => third.stop());
  const list = await third.send('GET', '/api/v1/categories?sort=createdAt');
  const names = (list.json().items as { name: string }[]).map(({ name }) => name);
  assert.deepEqual(names, ['Survivor', 'Accepted']);
  assert.equal((await third.send('GET', location)).headers.location, answer.headers.location);
  assert.equal((await third.send('GET', String(category.headers.location))).status, 200);
});

test('many operations under a kill: each acknowledged one happens exactly once after the restart', async (t) => {
  const folder = temporaryFolder();
  const first = await spawnServer({ folder });
  const acknowledged: string[] = [];
  let enough: () => void = () => undefined;
  const reached = new Promise<void>((resolve) => {
    enough = resolve;
  });
  const writers = Array.from({ length: 60 }, async (_, index) => {
    const json = { name: `Async ${index}` };
    const answer = await first.send('POST', '/api/v1/categories', { json, headers: later });
    acknowledged.push(String(answer.headers.location));
    if (acknowledged.length === 20) enough();
  });
  const settled = Promise.allSettled(writers);
  await reached;
  await first.kill();
  await settled;
  const second = await startServer({ folder });
  t.after(() => second.stop());
  const results = new Set<string>();
  for (const location of acknowledged) {
    const answer = await ended(second, location);
    assert.equal(answer.status, 303, answer.body);
    results.add(String(answer.headers.location));
  }
  assert.equal(results.size, acknowledged.length);
  const list = await second.send('GET', '/api/v1/categories?limit=1000');
  const names = (list.json().items as { name: string }[]).map(({ name }) => name);
  assert.equal(new Set(names).size, names.length, 'nothing was made twice');
});

type Caller = Partial<Pick<Ask, 'known'>> & { readonly principal: Authenticated };

/** What is done between the moment in which a request was accepted and that in which it is carried out. */
type Meanwhile = {
  readonly title: string;
  readonly scheme: 'token' | 'key';
  readonly change: (
    at: RunningServer,
    paths: { readonly user: string; readonly key: string },
  ) => Promise<Answer>;
  /** Of the error; undefined: the request is carried out. */
  readonly code: string | undefined;
};

const patch = (at: RunningServer, path: string, json: unknown) =>
  at.send('PATCH', path, { json, headers: { 'Content-Type': 'application/merge-patch+json' } });

const meanwhiles: readonly Meanwhile[] = [
  {
    title: 'is carried out while the account stands',
    scheme: 'token',
    change: (at, { user }) => patch(at, user, { name: 'Renamed' }),
    code: undefined,
  },
  {
    title: 'ends as 401 when its account is disabled',
    scheme: 'token',
    change: (at, { user }) => patch(at, user, { disabled: true }),
    code: 'invalid_token',
  },
  {
    title: 'ends as 403 when a scope was taken from its account',
    scheme: 'token',
    change: (at, { user }) => patch(at, user, { scopes: ['read'] }),
    code: 'forbidden',
  },
  {
    title: 'ends as 401 when its key is revoked',
    scheme: 'key',
    change: (at, { key }) => at.send('DELETE', key),
    code: 'invalid_api_key',
  },
  {
    title: 'ends as 401 when the account of its key is disabled',
    scheme: 'key',
    change: (at, { user }) => patch(at, user, { disabled: true }),
    code: 'invalid_api_key',
  },
];

for (const { title, scheme, change, code } of meanwhiles) {
  test(`an accepted request ${title}, whichever process does it`, async (t) => {
    const folder = temporaryFolder();
    const first = await startServer({ folder });
    const json = { email: 'author@example.com', password: 'correct horse battery staple' };
    const registered = await first.send('POST', '/api/v1/auth/register', { json, anonymous: true });
    const { token, user } = registered.json() as { token: string; user: { id: string } };
    const made = await first.send('POST', '/api/v1/keys', {
      json: { name: 'writer', kind: 'secret', scopes: ['read', 'write'] },
      anonymous: true,
      headers: { Authorization: `Bearer ${token}` },
    });
    const key = String(made.json().id);
    const changed = await change(first, { user: `/api/v1/users/${user.id}`, key: `/api/v1/keys/${key}` });
    assert.ok(changed.status < 300, changed.body);
    await first.stop();
    const principal = authenticated({ id: user.id, scopes: ['read', 'write'] });
    const known = { principal, scheme, session: null, key: scheme === 'key' ? key : null };
    const whole = { ...known, confirmed: undefined, onEnd: () => () => undefined };
    const location = await acceptOnly(
      folder,
      '/api/v1/articles',
      { title: 'Later' },
      { principal, known: whole },
    );
    const second = await startServer({ folder });
    t.after(() => second.stop());
    const answer = await ended(second, location);
    if (code === undefined) return assert.equal(answer.status, 303, answer.body);
    assert.equal(answer.json().status, 'failed', answer.body);
    const result = await second.send('GET', `${location}/result`);
    assert.equal(result.json().code, code, result.body);
    const articles = await second.send('GET', '/api/v1/articles');
    assert.deepEqual(articles.json().items, []);
  });
}

async function acceptOnly(
  folder: string,
  target: string,
  json: unknown,
  caller: Caller = { principal: authenticated({ id: operatorId, scopes: ['read', 'write', 'admin'] }) },
): Promise<string> {
  const tables = [operationsTable, operationRequestsTable].map((name) => ({
    name,
    fields: [],
    indexes: [],
    unique: [],
    references: [],
    searched: false,
  }));
  const { COMITY_DATABASE_URL: url } = (await placeOf({ folder })).database;
  const store = await (url === undefined
    ? openSqliteStore({ folder, tables })
    : openPostgresStore({ url, tables }));
  const operations = createOperations(
    {
      store,
      path: '/api/v1/operations',
      newId: createIdSource(Date.now, () => Math.floor(Math.random() * 32)),
      clock: Date.now,
      random: () => 0,
      observe: ({ kind }) => assert.notEqual(kind, 'operation-failed'),
    },
    () => new Promise(() => undefined),
  );
  const ask = askOf({
    target,
    fields: ['Content-Type', 'application/json', 'Prefer', 'respond-async'],
    preferences: { ...noPreferences, respondAsync: true },
    ...caller,
  });
  const { location } = await operations.accept(ask, Buffer.from(JSON.stringify(json)));
  // Gives its lease back, as a process does that stops; a killed one would be waited for.
  await operations.drain(0);
  await store.close();
  return location;
}
