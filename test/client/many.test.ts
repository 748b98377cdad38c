/** The calls on many documents against the running shop: one patch for all, bulk items, and imports. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { serverOfFile } from '../harness/running-server.ts';
import { clientOf } from './client-of.ts';
import { startFaultyProxy } from './faulty-proxy.ts';

const program = await serverOfFile();
const proxy = await startFaultyProxy(() => program.port, { after });
const client = clientOf(proxy.baseUrl);
const { id: categoryId } = await client.categories.create({ name: 'Kitchen' });

test('updateMany counts before it changes what a filter finds', async () => {
  for (const name of ['Cup', 'Mug']) await client.products.create({ name, price: 1, categoryId, stock: 5 });
  const update = { filter: { stock: 5 }, patch: { stock: 0 } };
  const counts = { changed: 2, unchanged: 0, refused: 0 };
  assert.deepEqual(await client.products.updateMany({ ...update, dryRun: true }), counts);
  assert.deepEqual(await client.products.updateMany(update), counts);
  assert.equal((await client.products.list({ filter: { stock: 0 } })).items.length, 2);
});

test('bulk writes items by a mode and a key, each with its result', async () => {
  const item = { name: 'Jug', price: 2, categoryId, sku: 'JUG' };
  const [made] = await client.products.bulk([item], { mode: 'upsert', key: 'sku' });
  const results = await client.products.bulk(
    [
      { ...item, price: 3 },
      { id: 'none', price: 4 },
    ],
    {
      mode: 'merge',
      atomic: false,
    },
  );
  assert.deepEqual(
    [made?.status, results.map(({ status, code }) => [status, code])],
    [
      201,
      [
        [422, 'validation_failed'],
        [404, 'not_found'],
      ],
    ],
  );
});

test('import sends CSV and JSON, and names faults by line and column', async () => {
  const csv = `name,price,categoryId,sku\nPan,7,${categoryId},PAN\nPot,x,${categoryId},POT\n`;
  const options = { type: 'text/csv', mode: 'upsert', key: 'sku' } as const;
  const dry = await client.products.import(csv, { ...options, dryRun: true });
  assert.deepEqual([dry.created, dry.refused, dry.errors[0]?.line, dry.errors[0]?.column], [1, 1, 3, 2]);
  assert.equal((await client.products.list({ filter: { sku: 'PAN' } })).items.length, 0);
  assert.deepEqual(await client.products.import(csv, options), dry);
  const json = new Blob([JSON.stringify([{ sku: 'PAN', price: 8 }])], { type: 'application/json' });
  assert.equal((await client.products.import(json, { mode: 'merge', key: ['sku'] })).updated, 1);
  await assert.rejects(client.products.import(csv), /needs the type of its content/);
});

test('import sends short content with an Idempotency-Key, and long content without one', async () => {
  const row = `Bowl,1,${categoryId}\n`;
  for (const [rows, isKeyed] of [
    [1, true],
    [20_000, false],
  ] as const) {
    const csv = `name,price,categoryId\n${row.repeat(rows)}`;
    assert.equal((await client.products.import(csv, { type: 'text/csv', dryRun: true })).created, rows);
    assert.equal(proxy.passed.at(-1)?.headers['idempotency-key'] !== undefined, isKeyed, String(rows));
  }
});
