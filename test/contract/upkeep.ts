/** Purge, backup, ping and close. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Field, Scalar } from '../../src/model/field.ts';
import { always, byId, type Filter, type Sort } from '../../src/model/filter.ts';
import { type Store, StoreUnavailable } from '../../src/store/store.ts';
import type { Bench } from './engine.ts';
import { categories, commitAll, event, fields, idsOf, put, rowAt, things, unit } from './fixture.ts';

export function upkeepTests(bench: Bench): void {
  purgeTests(bench);
  backupTests(bench);
  reportTests(bench);
  wayTests(bench);
  lifeTests(bench);
}

/** Rows and events that are old enough go, and nothing else. */
function purgeTests({ fresh }: Bench): void {
  test('purges rows last updated before a time, at most as many as asked, deleted ones too', async () => {
    const { store } = await fresh();
    for (let index = 0; index < 20; index += 1) {
      const deletedAt = index === 3 ? 1 : null;
      await commitAll(
        store,
        put(things, `p ${index}`, {}, undefined, { updatedAt: 1000 + index, deletedAt }),
      );
    }
    const version = await store.version('things');
    assert.equal(await store.purge('things', 1000, 100), 0);
    assert.equal(await store.version('things'), version);
    assert.equal(await store.purge('things', 1010, 4), 4);
    assert.notEqual(await store.version('things'), version);
    assert.equal(await store.purge('things', 1010, 100), 6);
    assert.equal((await idsOf(store, always)).length, 10);
    assert.equal(await rowAt(store, things, 'p 3'), undefined);
    assert.deepEqual(await store.tail({ rev: 0, id: '' }, always, 10), []);
  });

  test('purges events like rows, and goes on with new ones', async () => {
    const { store } = await fresh();
    for (let index = 0; index < 1200; index += 1) void store.commit(unit(event(`evt_${index}`)));
    const rev = await commitAll(store, { ...event('evt_new'), createdAt: 1_800_000_000_000 });
    const known = (await store.head()).rev;
    assert.equal(await store.purgedTo(), 0);
    assert.equal(await store.purge('things', 1_750_000_000_000, 10_000), 0);
    assert.equal(await store.purge('events', 1_750_000_000_000, 10_000), 1200);
    assert.equal(await store.purgedTo(), known - 1, 'the greatest revision of a purged event');
    assert.deepEqual(await store.head(), { rev, id: 'evt_new' });
    assert.ok((await commitAll(store, event('evt_0'))) > rev);
  });
}

/** Copies of a store in use; an engine without backups has none. */
function backupTests({ fresh }: Bench): void {
  test('backs up a consistent copy while units are committed', async (context) => {
    const opened = await fresh();
    const { store, openBackup } = opened;
    if (openBackup === undefined) return context.skip('the engine has no backups');
    for (let index = 0; index < 500; index += 1)
      void store.commit(unit(put(things, `b ${index}`, { name: 'x'.repeat(2000) }), event(`evt_${index}`)));
    await commitAll(store, put(things, 'before', {}));
    const path = opened.freePath();
    let writing = true;
    const writer = (async () => {
      for (let index = 0; writing; index += 1)
        await commitAll(store, put(things, `w ${index}`, {}), event(`evt_w_${index}`));
    })();
    const progress: (readonly [number, number])[] = [];
    await store.backup(path, (done, total) => progress.push([done, total]));
    writing = false;
    await writer;
    const [done, total] = progress.at(-1) ?? [0, 1];
    assert.ok(done === total && total > 100);
    const copy = await openBackup(path);
    const ids = await idsOf(copy, always);
    assert.ok(ids.includes('before') && ids.length >= 501);
    for (const id of ids) assert.ok((await rowAt(copy, things, id)) !== undefined);
    // A unit is in the copy whole or not at all: every row but one was committed with an event.
    assert.equal((await copy.tail({ rev: 0, id: '' }, always, 100_000)).length, ids.length - 1);
    await copy.ping();
    await copy.close();
  });

  test('rejects a backup to where nothing can be written, and serves on', async () => {
    const opened = await fresh();
    if (opened.openBackup === undefined) return;
    await assert.rejects(
      opened.store.backup(`${opened.freePath()}/no/such/folder`, () => undefined),
      StoreUnavailable,
    );
    await commitAll(opened.store, put(things, 'on', {}));
  });
}

/** What a store tells of its tables, at a bounded cost. */
function reportTests({ fresh }: Bench): void {
  test('reports the tables that it is asked for, with their rows and indexes', async () => {
    const { store } = await fresh();
    for (let index = 0; index < 20; index += 1) {
      const deletedAt = index < 5 ? 1 : null;
      await commitAll(store, put(things, `r ${index}`, {}, undefined, { deletedAt }));
    }
    const { bytes, schemaVersion, tables } = await store.report(['things']);
    assert.ok(bytes > 0 && schemaVersion >= 1);
    const [table] = tables;
    assert.deepEqual([tables.length, table?.name, table?.rows, table?.isEstimate], [1, 'things', 15, false]);
    const indexes = table?.indexes.map(({ kind, fields, stands }) => `${kind} ${fields} ${stands}`) ?? [];
    assert.ok(indexes.includes('index categoryId,price true') && indexes.includes('unique sku true'));
    assert.deepEqual((await store.report([])).tables, []);
  });

  test('estimates the rows of a table that is not small', async () => {
    const { store } = await fresh();
    const changes = Array.from({ length: 1500 }, (_, index) => put(things, `e ${index}`, {}));
    for (let at = 0; at < 9; at += 1) {
      const own = changes.map((change) => ({ ...change, id: `${at} ${change.id}` }));
      await commitAll(store, ...own);
    }
    const [table] = (await store.report(['things'])).tables;
    assert.equal(table?.isEstimate, true);
    assert.ok((table?.rows ?? 0) > 10_000 && (table?.rows ?? 0) < 20_000, String(table?.rows));
  });
}

/** What a plan says of itself holds: `bounded`, and the index that it names as missing. */
function wayTests({ fresh }: Bench): void {
  const by = (field: Field): Sort[] => [field, fields.id].map((each) => ({ field: each, direction: 'desc' }));
  const eq = (field: Field, value: Scalar): Filter => ({ op: 'eq', field, value });
  const planOf = (store: Store, filter: Filter, sort: readonly Sort[]) =>
    store.plan({ table: 'things', filter, sort, limit: 5 });

  test('tells by which index a plan walks, and which index would serve one that scans', async () => {
    const { store } = await fresh();
    const of = (filter: Filter, sort: readonly Sort[]) => planOf(store, filter, sort).way();
    assert.deepEqual(of(always, byId), { by: 'index', fields: ['id'] });
    assert.deepEqual(of(eq(fields.categoryId, 'c'), by(fields.price)), {
      by: 'index',
      fields: ['categoryId', 'price'],
    });
    assert.deepEqual(of(eq(fields.sku, 's'), by(fields.price)), { by: 'one', fields: ['sku'] });
    assert.deepEqual(of({ op: 'never' }, byId), { by: 'nothing' });
    const inside: Filter = { op: 'has', field: fields.tags, value: 'a' };
    assert.deepEqual(of(inside, byId), { by: 'scan' });
    assert.deepEqual(of({ op: 'not', filter: eq(fields.stock, 1) }, byId), { by: 'scan' });
    const wanted = { by: 'scan', wanted: ['stock', 'due'] };
    assert.deepEqual(of(eq(fields.stock, 1), by(fields.due)), wanted);
  });

  test('serves a scanned list by the index that its plan names', async () => {
    const asks: readonly (readonly [Filter, readonly Sort[]])[] = [
      [eq(fields.stock, 1), by(fields.due)],
      [eq(fields.live, true), by(fields.name)],
      [always, by(fields.stock)],
      [{ op: 'gte', field: fields.due, value: '2026-01-01T00:00:00.000Z' }, by(fields.due)],
    ];
    const wanted: (readonly Field[])[] = [];
    const { store } = await fresh();
    for (const [filter, sort] of asks) {
      const plan = planOf(store, filter, sort);
      const way = plan.way();
      assert.ok(!plan.bounded && way.by === 'scan' && way.wanted !== undefined);
      wanted.push(way.wanted.map((name) => things.fields.find((field) => field.name === name) ?? fields.id));
    }
    const indexed = await fresh([{ ...things, indexes: [...things.indexes, ...wanted] }, categories]);
    for (const [filter, sort] of asks) {
      const plan = planOf(indexed.store, filter, sort);
      assert.deepEqual([plan.bounded, plan.way().by], [true, 'index']);
    }
  });
}

/** When the store answers, and what it refuses. */
function lifeTests({ fresh }: Bench): void {
  test('knows that it has not ended itself, and that a process nobody knows has', async () => {
    const { store } = await fresh();
    // On a shared store its first sign of life is given beside the opening.
    await store.ping();
    assert.equal(await store.hasEnded(store.processId), false);
    assert.equal(await store.hasEnded('somebody'), true);
  });

  test('answers a ping, and refuses everything once closed', async () => {
    const opened = await fresh();
    await opened.store.ping();
    const pending = opened.store.commit(unit(put(things, 'last', {})));
    await opened.store.close();
    await opened.store.close();
    assert.equal((await pending).outcome, 'committed');
    await assert.rejects(opened.store.ping(), StoreUnavailable);
    await assert.rejects(opened.store.commit(unit(put(things, 'late', {}))), StoreUnavailable);
    await assert.rejects(async () => opened.store.read('things', 'last'), StoreUnavailable);
    const store = await opened.reopen();
    assert.notEqual(await rowAt(store, things, 'last'), undefined);
  });

  test('refuses a table that is not declared', async () => {
    const { store } = await fresh();
    await assert.rejects(async () => store.read('nowhere', 'x'), TypeError);
    await assert.rejects(store.commit(unit({ ...put(things, 'x', {}), table: 'nowhere' })), TypeError);
    await commitAll(store, put(things, 'x', {}));
  });
}
