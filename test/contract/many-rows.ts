/** Reads of many rows by id. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Bench } from './engine.ts';
import { categories, commitAll, put } from './fixture.ts';

export function manyRowsTests({ store }: Bench): void {
  const readMany = async (ids: readonly string[], bytesMax = 1_000_000) =>
    (await store().readMany(categories.name, ids, bytesMax))?.rows;

  test('reads the rows that exist of many ids, each once, as a read of one finds it', async () => {
    await commitAll(store(), put(categories, 'm1', {}), put(categories, 'm2', {}));
    const rev = await commitAll(store(), put(categories, 'm3', {}));
    await commitAll(store(), put(categories, 'm3', {}, rev, { deletedAt: 1 }));
    const rows = await readMany(['m3', 'absent', 'm1', 'nul\0', 'm1']);
    assert.deepEqual([...(rows?.keys() ?? [])].sort(), ['m1', 'm3']);
    for (const [id, row] of rows ?? []) assert.deepEqual(row, await store().read(categories.name, id));
    assert.equal((await readMany([]))?.size, 0);
  });

  test('reads more rows than one statement names', async () => {
    const ids = Array.from({ length: 600 }, (_, index) => `many ${index}`);
    await commitAll(store(), ...ids.map((id) => put(categories, id, {})));
    assert.equal((await readMany(ids))?.size, ids.length);
  });

  test('reads many rows together with the version that their table has with them', async () => {
    for (const name of ['one', 'two']) {
      await commitAll(store(), put(categories, `versioned ${name}`, { name }));
      for (const ids of [[`versioned ${name}`], ['absent'], []]) {
        const found = await store().readMany(categories.name, ids, 1000);
        assert.equal(found?.version, await store().version(categories.name));
      }
    }
  });

  test('returns no rows if they have more octets than the caller takes, and all at the bound itself', async () => {
    const ids = Array.from({ length: 300 }, (_, index) => `heavy ${String(index).padStart(3, '0')}`);
    await commitAll(store(), ...ids.map((id) => put(categories, id, { name: `é ${id}` })));
    const rows = await readMany(ids);
    let octets = 0;
    for (const { doc } of rows?.values() ?? []) octets += Buffer.byteLength(doc);
    assert.equal((await readMany(ids, octets))?.size, ids.length);
    assert.equal(await readMany(ids, octets - 1), undefined);
    assert.equal(await readMany(ids.slice(0, 1), 10), undefined);
  });
}
