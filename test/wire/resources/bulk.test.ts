/**
 * POST {collection}/bulk (§4.19): one unit or one by one, with the rules of a POST for each item, and imports by
 * administrators. The shop over real sockets, on the store of the run.
 */
import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { answered } from '../../harness/expected-answer.ts';
import { serverOfFile } from '../../harness/running-server.ts';
import { valuesOf } from '../../harness/values-of.ts';

const program = await serverOfFile();
const api = '/api/v1';
let categoryId = '';

before(async () => {
  const answer = await program.send('POST', `${api}/categories`, { json: { name: 'C' } });
  categoryId = String(answer.json().id);
});

type Result = {
  readonly status: number;
  readonly id?: string;
  readonly code?: string;
  readonly errors?: readonly { readonly pointer: string }[];
};

const bulk = (json: unknown, headers: Record<string, string> = {}, path = 'products') =>
  program.send('POST', `${api}/${path}/bulk`, { json, headers });
const product = (name: string, more: object = {}) => ({ name, price: 1, categoryId, ...more });
const results = (answer: { json(): Record<string, unknown> }) => answer.json().items as Result[];

async function named(name: string): Promise<Record<string, unknown>[]> {
  const answer = await program.send('GET', `${api}/products?name=${encodeURIComponent(name)}&limit=1000`);
  return answer.json().items as Record<string, unknown>[];
}

describe('an atomic bulk request', () => {
  test('creates every item with its event and answers status and id in their order', async () => {
    const answer = await answered(bulk({ items: [product('one'), product('two', { stock: 3 })] }), 200);
    const [one, two] = results(answer);
    assert.deepEqual([one?.status, two?.status], [201, 201]);
    const read = await program.send('GET', `${api}/products/${two?.id}`);
    assert.equal(read.json().stock, 3);
    const created = await program.send('GET', `${api}/events?type=products.created&limit=1000`);
    const ids = (created.json().items as { data: { object: { id: string } } }[]).map(
      ({ data }) => data.object.id,
    );
    assert.ok(ids.includes(String(one?.id)) && ids.includes(String(two?.id)));
  });

  test('creates nothing if one item is invalid, and names each fault with its item', async () => {
    const items = [product('none'), { name: 'none', categoryId }, product('none', { price: 'x' }), 7];
    const answer = await bulk({ items });
    assert.equal(answer.status, 400, 'the code of the first item at fault');
    assert.equal(answer.json().code, 'field_missing');
    const pointers = (answer.json().errors as { pointer: string }[]).map(({ pointer }) => pointer);
    assert.deepEqual(pointers, ['/items/1/price', '/items/2/price', '/items/3']);
    assert.deepEqual(await named('none'), []);
  });

  test('creates nothing if one value is taken or one reference dangles, and names the item', async () => {
    await bulk({ items: [product('holder', { sku: 'taken' })] });
    const taken = await answered(bulk({ items: [product('none'), product('none', { sku: 'taken' })] }), 409);
    assert.deepEqual(taken.json().errors, [{ pointer: '/items/1/sku', message: 'already in use' }]);
    const twice = await bulk({ items: [product('none', { sku: 'new' }), product('none', { sku: 'new' })] });
    assert.equal(twice.status, 409);
    assert.match(twice.body, /\/items\/1\/sku/);
    const dangling = await bulk({ items: [product('none'), product('none', { categoryId: 'x' })] });
    assert.equal(dangling.status, 422);
    assert.match(dangling.body, /\/items\/1\/categoryId/);
    assert.deepEqual(await named('none'), []);
  });

  test('takes effect once under an Idempotency-Key, also asynchronously', async () => {
    const items = [product('keyed'), product('keyed')];
    const key = { 'Idempotency-Key': '"bulk-1"' };
    const first = await bulk({ items }, key);
    const again = await bulk({ items }, key);
    assert.equal(again.body, first.body);
    assert.equal((await named('keyed')).length, 2);
    const accepted = await answered(bulk({ items: [product('later')] }, { Prefer: 'respond-async' }), 202);
    const operation = String(accepted.headers.location);
    for (;;) {
      const state = await program.send('GET', operation);
      if (state.status === 303) break;
      assert.equal(state.json().status, 'pending');
    }
    assert.equal((await named('later')).length, 1);
  });
});

describe('a bulk request with atomic false', () => {
  test('gives each item an outcome of its own', async () => {
    const items = [product('each'), { price: 2 }, product('each', { sku: 'taken' }), null, product('each')];
    const answer = await answered(bulk({ items, atomic: false }), 200);
    const found = results(answer);
    assert.deepEqual(valuesOf(found, 'status'), [201, 400, 409, 422, 201]);
    assert.equal(found[2]?.code, 'unique_taken');
    assert.equal(found[2]?.errors?.[0]?.pointer, '/sku');
    assert.equal((await named('each')).length, 2);
  });

  test('creates one of a thousand items with the same unique value', async () => {
    const items = Array.from({ length: 1000 }, () => product('thousand', { sku: 'only one' }));
    const found = results(await bulk({ items, atomic: false }));
    assert.equal(found.filter(({ status }) => status === 201).length, 1);
    assert.equal(found.filter(({ status }) => status === 409).length, 999);
    assert.equal((await named('thousand')).length, 1);
  });

  test('is replayed under an Idempotency-Key', async () => {
    const key = { 'Idempotency-Key': '"bulk-2"' };
    const content = { items: [product('replayed'), {}], atomic: false };
    const first = await bulk(content, key);
    assert.equal((await bulk(content, key)).body, first.body);
    assert.equal((await named('replayed')).length, 1);
  });
});

describe('the content of a bulk request', () => {
  const refusals: readonly (readonly [unknown, number, string])[] = [
    [[], 422, ''],
    [{}, 400, '/items'],
    [{ items: {} }, 422, '/items'],
    [{ items: [], extra: 1 }, 422, '/extra'],
    [{ items: [], atomic: 'no' }, 422, '/atomic'],
    [{ items: [], import: 'yes' }, 422, '/import'],
    [{ items: [], import: { existing: 'replace' } }, 422, '/import/existing'],
    [{ items: [], import: { events: 1 } }, 422, '/import/events'],
    [{ items: [{ id: 'x', name: 'x', price: 1 }] }, 400, '/items/0/id'],
    [{ items: Array.from({ length: 1001 }, () => 1) }, 422, '/items'],
  ];
  for (const [content, status, pointer] of refusals) {
    test(`is refused with ${status} at "${pointer}": ${JSON.stringify(content).slice(0, 40)}`, async () => {
      const answer = await answered(bulk(content), status);
      assert.equal((answer.json().errors as { pointer: string }[])[0]?.pointer, pointer);
    });
  }

  test('may be empty of items', async () => {
    assert.equal((await bulk({ items: [] })).body, '{"items":[]}');
  });

  test('may be as long as its own setting, and one octet more is 413', async () => {
    const limit = 4 * 1024 * 1024;
    const text = (length: number) => `{"items":[]${' '.repeat(length - 12)}}`;
    const send = (body: string) =>
      program.send('POST', `${api}/notes/bulk`, { body, headers: { 'Content-Type': 'application/json' } });
    assert.equal((await send(text(limit))).status, 200);
    assert.equal((await send(`${text(limit)} `)).status, 413);
  });

  test('is checked beside the event loop when it is long, alike', async () => {
    const items = Array.from({ length: 1000 }, (_, at) => product(`long ${at}`, { tags: ['x'.repeat(50)] }));
    const answer = await answered(bulk({ items }), 200);
    assert.equal(results(answer).length, 1000);
    const faulty = await answered(bulk({ items: [...items.slice(1), { name: 'x' }] }), 400);
    assert.match(faulty.body, /\/items\/999\/price/);
  });
});

describe('an import', () => {
  const document = (more: object = {}) => ({
    id: 'imported-1',
    name: 'Imported',
    price: 3,
    categoryId,
    createdAt: '2020-01-02T03:04:05.006Z',
    updatedAt: '2021-01-02T03:04:05.006Z',
    owner: 'someone',
    ...more,
  });

  test('keeps ids, times and owners', async () => {
    const answer = await bulk({ items: [document()], import: true });
    assert.deepEqual(results(answer), [{ status: 201, id: 'imported-1' }]);
    const { owner, ...stored } = document();
    const read = await program.send('GET', `${api}/products/imported-1`);
    assert.deepEqual(read.json(), { ...read.json(), ...stored });
    assert.equal(Object.hasOwn(read.json(), 'owner'), false, owner);
  });

  test('refuses, skips or updates what exists, as it says', async () => {
    const changed = document({ price: 4, updatedAt: '2022-01-02T03:04:05.006Z' });
    await answered(bulk({ items: [changed], import: true }), { status: 409, body: /\/items\/0\/id/ });
    const skipped = await bulk({ items: [changed], import: { existing: 'skip' } });
    assert.deepEqual(results(skipped), [{ status: 200, id: 'imported-1', unchanged: true }]);
    const updated = await bulk({ items: [changed], import: { existing: 'update' } });
    assert.deepEqual(results(updated), [{ status: 200, id: 'imported-1' }]);
    const same = await bulk({ items: [changed], import: { existing: 'update' }, atomic: false });
    assert.deepEqual(results(same), [{ status: 200, id: 'imported-1', unchanged: true }]);
    const read = await program.send('GET', `${api}/products/imported-1`);
    assert.equal(read.json().price, 4);
    assert.equal(read.json().updatedAt, '2022-01-02T03:04:05.006Z');
  });

  test('appends no events if it says so', async () => {
    const count = async () =>
      (
        await program.send('GET', `${api}/events?type=products.created&limit=1`, {
          headers: { Prefer: 'count=exact' },
        })
      ).headers['x-total-count'];
    const before = await count();
    await bulk({ items: [document({ id: 'quiet' })], import: { events: false } });
    assert.equal(await count(), before);
    await bulk({ items: [document({ id: 'loud' })], import: true });
    assert.notEqual(await count(), before);
  });

  test('refuses ids and times that no document has, and an id twice', async () => {
    for (const [more, pointer] of [
      [{ id: 'a b' }, '/items/0/id'],
      [{ createdAt: '2020-01-01' }, '/items/0/createdAt'],
      [{ updatedAt: '2019-01-02T03:04:05.006Z' }, '/items/0/updatedAt'],
      [{ owner: 5 }, '/items/0/owner'],
      [{ deletedAt: '2020-01-02T03:04:05.006Z' }, '/items/0/deletedAt'],
    ] as const) {
      const answer = await bulk({ items: [document({ id: 'wrong', ...more })], import: true });
      assert.ok(answer.status === 422 || answer.status === 400, answer.body);
      assert.match(answer.body, new RegExp(pointer));
    }
    const twice = await bulk({ items: [document({ id: 'twice' }), document({ id: 'twice' })], import: true });
    assert.match(twice.body, /\/items\/1\/id.*another item has this id/);
  });

  test('is for administrators', async () => {
    const registered = await program.send('POST', `${api}/auth/register`, {
      json: { email: 'ada@shop.example', password: 'a long password' },
      anonymous: true,
    });
    const headers = { Authorization: `Bearer ${registered.json().token}` };
    const send = (json: unknown) =>
      program.send('POST', `${api}/products/bulk`, { json, headers, anonymous: true });
    assert.equal((await send({ items: [document({ id: 'hers' })], import: true })).status, 403);
    assert.equal((await send({ items: [product('hers')] })).status, 200);
    const anonymous = await program.send('POST', `${api}/products/bulk`, {
      json: { items: [product('none')] },
      anonymous: true,
    });
    assert.equal(anonymous.status, 401);
  });
});
