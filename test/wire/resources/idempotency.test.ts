/**
 * Idempotency-Key (draft-ietf-httpapi-idempotency-key-header-07): a repeated POST or PATCH is answered with
 * the first result. Keys of different principals, and the lifetime of a key, are in principals.test.ts.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Answer } from '../../harness/exchange.ts';
import { type RunningServer, serverOfFile, startServer } from '../../harness/running-server.ts';
import { spawnServer } from '../../harness/server-process.ts';
import { temporaryFolder } from '../../harness/temporary-folder.ts';
import { eventually } from '../../harness/until.ts';

let keys = 0;
const products = '/api/v1/products';

const program = await serverOfFile();
const categoryId = String(
  (await program.send('POST', '/api/v1/categories', { json: { name: 'C' } })).json().id,
);

const newKey = () => `"key-${++keys}"`;
const body = (fields: Record<string, unknown> = {}) => ({ name: 'P', price: 1, categoryId, ...fields });
const post = (
  key: string | readonly string[],
  json: unknown = body(),
  headers: Record<string, string> = {},
) => program.send('POST', products, { json, headers: { ...headers, 'Idempotency-Key': key } });

async function count(name: string): Promise<number> {
  const answer = await program.send('GET', `${products}?name=${name}&limit=1000`);
  return (answer.json().items as unknown[]).length;
}

function sameAnswer(one: Answer, other: Answer): void {
  assert.equal(other.status, one.status);
  assert.equal(other.body, one.body);
  for (const name of ['location', 'etag', 'last-modified', 'content-type']) {
    assert.equal(other.headers[name], one.headers[name], name);
  }
}

test('a repeated POST gets the first answer again and makes nothing', async () => {
  const key = newKey();
  const first = await post(key, body({ name: 'Replayed' }));
  assert.equal(first.status, 201);
  sameAnswer(first, await post(key, body({ name: 'Replayed' })));
  assert.equal(await count('Replayed'), 1);
});

test('the first answer stays the answer after the resource has changed or gone', async () => {
  const key = newKey();
  const first = await post(key);
  const path = String(first.headers.location);
  await program.send('PATCH', path, { json: { price: 99 } });
  sameAnswer(first, await post(key));
  await program.send('DELETE', path);
  sameAnswer(first, await post(key));
});

test('a replay emits no event', async () => {
  const key = newKey();
  const first = await post(key);
  await post(key);
  const id = first.json().id;
  const events = await program.send('GET', `/api/v1/events?data.object.id=${id}`);
  assert.equal((events.json().items as unknown[]).length, 1);
});

test('a repeated PATCH is applied once', async () => {
  const made = await program.send('POST', products, { json: body({ tags: [] }) });
  const path = String(made.headers.location);
  const key = newKey();
  const patch = () =>
    program.send('PATCH', path, {
      headers: { 'Content-Type': 'application/json-patch+json', 'Idempotency-Key': key },
      body: '[{"op":"add","path":"/tags/-","value":"once"}]',
    });
  const first = await patch();
  assert.equal(first.status, 200);
  sameAnswer(first, await patch());
  assert.deepEqual((await program.send('GET', path)).json().tags, ['once']);
});

test('a repeated bulk-delete gives the first count', async () => {
  const { headers } = await program.send('POST', products, { json: body() });
  const id = String(headers.location).slice(products.length + 1);
  const key = newKey();
  const remove = () =>
    program.send('POST', `${products}/bulk-delete`, {
      json: { ids: [id] },
      headers: { 'Idempotency-Key': key },
    });
  assert.deepEqual((await remove()).json(), { deleted: 1 });
  assert.deepEqual((await remove()).json(), { deleted: 1 });
});

test('the same key with other content, another target or another method is 422', async () => {
  const key = newKey();
  const first = await post(key);
  const other = await post(key, body({ price: 2 }));
  assert.equal(other.status, 422);
  assert.equal(other.json().code, 'idempotency_key_reused');
  const headers = { 'Idempotency-Key': key };
  assert.equal((await program.send('POST', '/api/v1/notes', { json: body(), headers })).status, 422);
  const path = String(first.headers.location);
  assert.equal((await program.send('PATCH', path, { json: { price: 3 }, headers })).status, 422);
  sameAnswer(first, await post(key));
});

test('two at once make one resource: the other is told 409 with Retry-After, or gets the same answer', async () => {
  const key = newKey();
  const answers = await Promise.all(Array.from({ length: 30 }, () => post(key, body({ name: 'Twins' }))));
  const made = answers.filter(({ status }) => status === 201);
  const running = answers.filter(({ status }) => status === 409);
  assert.equal(made.length + running.length, 30);
  assert.ok(made.length >= 1);
  for (const answer of made) sameAnswer(made[0] as Answer, answer);
  for (const answer of running) {
    assert.equal(answer.json().code, 'idempotency_key_in_use');
    assert.match(String(answer.headers['retry-after']), /^\d+$/);
  }
  assert.equal(await count('Twins'), 1);
  sameAnswer(made[0] as Answer, await post(key, body({ name: 'Twins' })));
});

test('a key is free again after a refusal of the request itself', async () => {
  const key = newKey();
  assert.equal((await post(key, body({ price: 'x' }))).status, 422);
  assert.equal((await post(key, {})).status, 400);
  assert.equal((await post(key, body({ price: 5 }))).status, 201);
  const patchKey = newKey();
  const path = String((await program.send('POST', products, { json: body() })).headers.location);
  const headers = { 'Idempotency-Key': patchKey };
  const stale = { ...headers, 'If-Match': '"0"' };
  assert.equal((await program.send('PATCH', path, { json: { price: 2 }, headers: stale })).status, 412);
  assert.equal((await program.send('PATCH', path, { json: { price: 3 }, headers })).status, 200);
});

test('a refusal by the store is a result, and is replayed', async () => {
  const key = newKey();
  await program.send('POST', products, { json: body({ sku: 'IDEM-1' }) });
  const first = await post(key, body({ sku: 'IDEM-1' }));
  assert.equal(first.status, 409);
  assert.equal(first.json().code, 'unique_taken');
  const again = await post(key, body({ sku: 'IDEM-1' }));
  assert.equal(again.status, 409);
  assert.equal(again.body, first.body);
});

test('a request without a credential claims no key', async () => {
  const key = newKey();
  const anonymous = await program.send('POST', products, {
    json: body(),
    headers: { 'Idempotency-Key': key },
    anonymous: true,
  });
  assert.equal(anonymous.status, 401);
  assert.equal((await post(key, body({ price: 7 }))).status, 201);
});

test('a key in quotes and the same key without them are one key', async () => {
  const first = await post('"spelled-1"');
  sameAnswer(first, await post('spelled-1'));
});

for (const [what, key] of [
  ['empty', ''],
  ['empty in quotes', '""'],
  ['not closed', '"abc'],
  ['a list', 'a, b'],
  ['with a space', 'a b'],
  ['too long', 'k'.repeat(256)],
  ['not ASCII', '"ä"'],
] as const) {
  test(`a key that is ${what} is 400`, async () => {
    const answer = await post(key);
    assert.equal(answer.status, 400);
    assert.equal(answer.json().code, 'field_invalid');
    assert.match(String(answer.json().error), /Idempotency-Key/);
  });
}

test('a key of 255 characters is taken, and two fields are refused', async () => {
  assert.equal((await post('k'.repeat(255))).status, 201);
  assert.equal((await post(['"one"', '"two"'])).status, 400);
});

test('a repeated PUT is applied once, and a repeated DELETE gets 204 and not 404', async () => {
  const path = String((await program.send('POST', products, { json: body() })).headers.location);
  const [putKey, deleteKey] = [newKey(), newKey()];
  const put = (price: number, key = putKey) =>
    program.send('PUT', path, { json: body({ price }), headers: { 'Idempotency-Key': key } });
  const remove = () => program.send('DELETE', path, { headers: { 'Idempotency-Key': deleteKey } });
  const first = await put(2);
  assert.equal(first.status, 200);
  assert.equal((await put(3, newKey())).status, 200);
  sameAnswer(first, await put(2));
  assert.equal((await put(4)).status, 422);
  assert.equal((await program.send('GET', path)).json().price, 3, 'the later change stays');
  const gone = await remove();
  assert.equal(gone.status, 204);
  sameAnswer(gone, await remove());
  assert.equal((await program.send('DELETE', path)).status, 404);
});

test('GET passes the field over, and a malformed one is 400 for PUT and DELETE', async () => {
  const headers = { 'Idempotency-Key': 'not well, formed' };
  const path = String((await program.send('POST', products, { json: body() })).headers.location);
  assert.equal((await program.send('PUT', path, { json: body({ price: 2 }), headers })).status, 400);
  assert.equal((await program.send('DELETE', path, { headers })).status, 400);
  assert.equal((await program.send('GET', path, { headers })).status, 200);
});

test('a browser form is sent on again with 303 to the same resource', async () => {
  const key = newKey();
  const send = () =>
    program.send('POST', products, {
      headers: {
        'Content-Type': 'application/x-www-form-urlencoded',
        Accept: 'text/html',
        'Idempotency-Key': key,
      },
      body: `name=Form&price=2&categoryId=${categoryId}`,
    });
  const first = await send();
  assert.equal(first.status, 303);
  sameAnswer(first, await send());
});

test('a request that found no place in the line of its row leaves its key free for another try', async (t) => {
  const hasty = await startServer({
    env: { COMITY_RATE_LIMIT_WRITES: '0' },
    bounds: { changesWaitingMax: 0 },
  });
  t.after(() => hasty.stop());
  const made = await hasty.send('POST', '/api/v1/categories', { json: { name: 'Contended' } });
  const path = String(made.headers.location);
  const patch = (key: string) =>
    hasty.send('PATCH', path, { json: { name: key }, headers: { 'Idempotency-Key': key } });
  // On a busy machine a request may be answered before the next one comes.
  const lost = await eventually(async () => {
    const keys = Array.from({ length: 30 }, newKey);
    const answers = await Promise.all(keys.map(async (key) => ({ key, ...(await patch(key)) })));
    const refused = answers.filter(({ status }) => status === 503);
    return refused.length > 0 ? refused : undefined;
  }, 'a request loses a race');
  for (const { key, headers } of lost) {
    assert.equal(headers['retry-after'], '1');
    assert.equal((await patch(key)).status, 200);
  }
});

test('keys of requests that were under way at a kill are free once the process is known to be dead', async (t) => {
  const folder = temporaryFolder();
  const env = { COMITY_RATE_LIMIT_WRITES: '0' };
  const first = await spawnServer({ folder, env });
  const made = await first.send('POST', '/api/v1/categories', { json: { name: 'Contended' } });
  const path = String(made.headers.location);
  const patch = (at: RunningServer, key: string) =>
    at.send('PATCH', path, { json: { name: key }, headers: { 'Idempotency-Key': `"${key}"` } });
  const answered = Promise.withResolvers<void>();
  const underWay: string[] = [];
  // Each sends its next change when it has the answer to the one before, so that at the kill each has one under way.
  const sendOn = async (client: number): Promise<never> => {
    for (let turn = 0; ; turn += 1) {
      underWay[client] = `killed-${client}-${turn}`;
      await patch(first, underWay[client]);
      answered.resolve();
    }
  };
  const clients = Array.from({ length: 100 }, (_, client) => assert.rejects(sendOn(client)));
  // Those behind the first wait for the row, and have claimed their keys.
  await answered.promise;
  await first.kill();
  await Promise.all(clients);
  const second = await startServer({ folder, env });
  t.after(() => second.stop());
  // A store of one process knows at once; where others might hold the key, it is known after some signs of life that did not come.
  const isShared = process.env.COMITY_TEST_STORE === 'postgres';
  for (const key of underWay) {
    let answer = await patch(second, key);
    while (isShared && answer.status === 409) answer = await patch(second, key);
    assert.equal(answer.status, 200, answer.body);
  }
});

test('results are replayed after a kill and a restart', async (t) => {
  const folder = temporaryFolder();
  const first = await spawnServer({ folder });
  const options = { json: { name: 'Once' }, headers: { 'Idempotency-Key': '"across-restarts"' } };
  const made = await first.send('POST', '/api/v1/categories', options);
  assert.equal(made.status, 201);
  await first.kill();
  const second = await startServer({ folder });
  t.after(() => second.stop());
  sameAnswer(made, await second.send('POST', '/api/v1/categories', options));
  const list = await second.send('GET', '/api/v1/categories');
  assert.equal((list.json().items as unknown[]).length, 1);
});
