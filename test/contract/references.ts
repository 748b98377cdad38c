/** References: what must exist, what cannot be removed, and in which order that is looked at. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Bench } from './engine.ts';
import { categories, commitAll, put, remove, rowAt, things, unit } from './fixture.ts';

export function referenceTests(bench: Bench): void {
  existenceTests(bench);
  removalTests(bench);
}

/** What a row names must exist. */
function existenceTests({ store }: Bench): void {
  test('refuses a row that names one that does not exist', async () => {
    const commit = await store().commit(unit(put(things, 'a', { categoryId: 'nowhere' })));
    assert.deepEqual(commit, { outcome: 'dangling', change: 0, field: 'categoryId' });
    assert.equal(await rowAt(store(), things, 'a'), undefined);
  });

  test('refuses a row that names a softly deleted one', async () => {
    const rev = await commitAll(store(), put(categories, 'soft', {}));
    await commitAll(store(), put(categories, 'soft', {}, rev, { deletedAt: 1 }));
    const commit = await store().commit(unit(put(things, 'b', { categoryId: 'soft' })));
    assert.deepEqual(commit, { outcome: 'dangling', change: 0, field: 'categoryId' });
  });

  test('sees what earlier changes of the unit and earlier units of the same instant made', async () => {
    await commitAll(store(), put(categories, 'c1', {}), put(things, 'c', { categoryId: 'c1' }));
    const order = await store().commit(
      unit(put(things, 'd', { categoryId: 'c2' }), put(categories, 'c2', {})),
    );
    assert.deepEqual(order, { outcome: 'dangling', change: 0, field: 'categoryId' });
    const both = await Promise.all([
      store().commit(unit(put(categories, 'c3', {}))),
      store().commit(unit(put(things, 'e', { categoryId: 'c3' }))),
    ]);
    assert.deepEqual(
      both.map((commit) => commit.outcome),
      ['committed', 'committed'],
    );
  });
}

/** What others name stays. */
function removalTests({ store }: Bench): void {
  test('refuses to remove a row that undeleted rows name, softly or not, and counts them', async () => {
    const rev = await commitAll(store(), put(categories, 'used', {}));
    const first = await commitAll(store(), put(things, 'u1', { categoryId: 'used' }));
    await commitAll(store(), put(things, 'u2', { categoryId: 'used' }));
    const refusal = { outcome: 'depended-on', change: 0, table: 'things', field: 'categoryId' };
    const soft = put(categories, 'used', {}, rev, { deletedAt: 1 });
    assert.deepEqual(await store().commit(unit(remove(categories, 'used', rev))), { ...refusal, count: 2 });
    assert.deepEqual(await store().commit(unit(soft)), { ...refusal, count: 2 });
    await commitAll(store(), put(things, 'u1', { categoryId: 'used' }, first, { deletedAt: 1 }));
    assert.deepEqual(await store().commit(unit(soft)), { ...refusal, count: 1 });
  });

  test('removes a row once nothing undeleted names it, in the same unit too', async () => {
    const rev = await commitAll(store(), put(categories, 'free', {}));
    const thing = await commitAll(store(), put(things, 'f', { categoryId: 'free' }));
    const wrong = await store().commit(unit(remove(categories, 'free', rev), remove(things, 'f', thing)));
    assert.ok(wrong.outcome === 'depended-on' && wrong.change === 0 && wrong.count === 1);
    await commitAll(store(), remove(things, 'f', thing), remove(categories, 'free', rev));
    assert.equal(await rowAt(store(), categories, 'free'), undefined);
  });

  test('lets a row be changed in place while others name it', async () => {
    const rev = await commitAll(store(), put(categories, 'renamed', { name: 'one' }));
    await commitAll(store(), put(things, 'r', { categoryId: 'renamed' }));
    await commitAll(store(), put(categories, 'renamed', { name: 'two' }, rev));
  });

  test('lets a row name itself, and be removed all the same', async () => {
    const rev = await commitAll(store(), put(categories, 'self', { parentId: 'self' }));
    await commitAll(store(), remove(categories, 'self', rev));
  });

  test('never lets a reference be made while its row is removed', async () => {
    for (let round = 0; round < 20; round += 1) {
      const id = `contended ${round}`;
      const rev = await commitAll(store(), put(categories, id, {}));
      const [, removal] = await Promise.all([
        store().commit(unit(put(things, id, { categoryId: id }))),
        store().commit(unit(remove(categories, id, rev))),
      ]);
      const thing = await rowAt(store(), things, id);
      assert.equal(thing === undefined, removal?.outcome === 'committed');
      assert.equal((await rowAt(store(), categories, id)) === undefined, removal?.outcome === 'committed');
    }
  });
}
