/** Every bound at its edge, and storage that fails: what is refused, and that the store is whole again afterwards. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inspect } from 'node:util';
import { always, type Filter } from '../../src/model/filter.ts';
import { charactersPerRow, UnitTooLarge } from '../../src/store/group-commit.ts';
import { StoreUnavailable } from '../../src/store/store.ts';
import {
  byId,
  commitAll,
  event,
  fields,
  idsOf,
  nextRow,
  put,
  remove,
  rowAt,
  tables,
  things,
  unit,
} from '../contract/fixture.ts';
import { seedTable } from '../harness/seed-table.ts';
import { eventually } from '../harness/until.ts';
import { folderFor } from './folder.ts';

test('refuses the unit beyond `unitsWaitingMax`, and takes units again once those waiting are made', async (context) => {
  const store = await folderFor(context).open({ unitsWaitingMax: 10, unitsPerTransactionMax: 3 });
  const commits = Array.from({ length: 11 }, (_, index) => store.commit(unit(put(things, `w ${index}`, {}))));
  const results = await Promise.allSettled(commits);
  assert.deepEqual(
    results.map((result) => result.status),
    [...Array.from({ length: 10 }, () => 'fulfilled'), 'rejected'],
  );
  const last = results[10];
  assert.ok(
    last?.status === 'rejected' &&
      last.reason instanceof StoreUnavailable &&
      last.reason.retryAfterSeconds > 0,
  );
  await commitAll(store, put(things, 'w 10', {}));
});

test('refuses the unit whose documents would wait beyond `unitsWaitingBytesMax`, and one that is longer by itself for good', async (context) => {
  const store = await folderFor(context).open({ unitsWaitingBytesMax: 5000 });
  const name = 'x'.repeat(900);
  const write = (id: string, text = name) => store.commit(unit(put(things, id, { name: text })));
  const results = await Promise.allSettled([write('a'), write('b'), write('c')]);
  assert.deepEqual(
    results.map((result) => result.status),
    ['fulfilled', 'fulfilled', 'rejected'],
  );
  const [, , last] = results;
  assert.ok(last?.status === 'rejected' && last.reason instanceof StoreUnavailable);
  assert.equal((await write('c')).outcome, 'committed');
  const edge = 2500 - nextRow(things, 'edge', { name: '' }).doc.length;
  assert.equal((await write('edge', 'x'.repeat(edge))).outcome, 'committed');
  await assert.rejects(write('edgy', 'x'.repeat(edge + 1)), UnitTooLarge);
  assert.equal(store.unitCharactersMax, 2500);
});

test('commits units in batches of at most `unitsPerTransactionMax` units and `charactersPerTransactionMax` characters, which rows count as well', async (context) => {
  const batches: number[] = [];
  const store = await folderFor(context).open({
    unitsPerTransactionMax: 4,
    charactersPerTransactionMax: 3 * charactersPerRow + 1500,
    observe: (observation) => {
      if (observation.kind === 'units-committed') batches.push(observation.units);
    },
  });
  const small = Array.from({ length: 8 }, (_, index) => store.commit(unit(put(things, `s ${index}`, {}))));
  const large = Array.from({ length: 4 }, (_, index) =>
    store.commit(unit(put(things, `l ${index}`, { name: 'x'.repeat(3000) }))),
  );
  const wide = ['v', 'w'].map((name) =>
    store.commit(unit(...[1, 2, 3, 4].map((index) => put(things, `${name} ${index}`, {})))),
  );
  await Promise.all([...small, ...large, ...wide]);
  assert.deepEqual(batches, [4, 4, 2, 2, 1, 1]);
});

test('reads no further page while those that were read wait for their turn', async (context) => {
  const waits = Promise.withResolvers<void>();
  let asked = 0;
  const store = await folderFor(context).open({
    readerThreads: 1,
    nextPage: () => {
      asked += 1;
      return asked === 1 ? waits.promise : undefined;
    },
  });
  await store.count('things', always);
  let read = 0;
  const others = [1, 2].map(async () => {
    await store.count('things', always);
    read += 1;
  });
  // Longer than the reads take.
  await new Promise((resolve) => setTimeout(resolve, 50));
  assert.equal(read, 0);
  waits.resolve();
  await Promise.all(others);
});

test('counts a waiting read with long values as several, so that the queue is bounded in octets', async (context) => {
  const store = await folderFor(context).open({ readerThreads: 1, readerQueueMax: 8 });
  const read = (length: number) => {
    const filter: Filter = { op: 'in', field: fields.name, values: ['x'.repeat(length), 'y'] };
    return Promise.resolve(
      store.plan({ table: 'things', filter, sort: byId, limit: 5 }).page({ from: 'start' }),
    );
  };
  const outcomesOf = async (count: number, length: number) => {
    const results = await Promise.allSettled(Array.from({ length: count }, () => read(length)));
    return results.filter(({ status }) => status === 'fulfilled').length;
  };
  assert.equal(await outcomesOf(10, 10), 9, 'one is read, eight wait');
  // Of 200,000 octets each takes four places, and a list of values stands for itself.
  assert.equal(await outcomesOf(10, 200_000), 3);
  assert.equal(await outcomesOf(2, 5_000_000), 2, 'one of any length may wait');
});

test('refuses the long read beyond `readerQueueMax`, ends one beyond `scanTimeoutMs`, and then reads on', async (context) => {
  const folder = folderFor(context);
  // Text in the searched field: where it is NULL, a fast machine reads all of them within the bound.
  const city = 'x'.repeat(200);
  const rows = Array.from({ length: 60_000 }, (_, index) => ({
    id: `r ${index}`,
    row: nextRow(things, `r ${index}`, { name: `n${index}`, city }),
  }));
  seedTable(folder.path, tables, 'things', rows);
  const store = await folder.open({ readerQueueMax: 2, scanTimeoutMs: 20 });
  const slow: Filter = {
    op: 'or',
    filters: Array.from({ length: 60 }, (_, index) => ({
      op: 'like',
      field: fields.city,
      pattern: `%${index}`,
    })),
  };
  const [first, second, third, fourth] = await Promise.allSettled([
    store.count('things', slow),
    store.plan({ table: 'things', filter: slow, sort: byId, limit: 5 }).page({ from: 'start' }),
    store
      .plan({
        table: 'things',
        filter: slow,
        sort: [{ field: fields.city, direction: 'asc' }, ...byId],
        limit: 5,
      })
      .page({ from: 'start' }),
    store.count('things', slow),
  ]);
  for (const [result, pattern] of [
    [first, /20 ms/],
    [second, /20 ms/],
    [third, /20 ms/],
    [fourth, /wait/],
  ] as const) {
    assert.ok(result?.status === 'rejected' && result.reason instanceof StoreUnavailable, inspect(result));
    assert.match(result.reason.message, pattern);
  }
  const near: Filter = { op: 'eq', field: fields.id, value: 'r 7' };
  // Where the machine is busy, the thread may be late for this one too.
  const counted = await eventually(async () => {
    try {
      return await store.count('things', near);
    } catch (error) {
      if (error instanceof StoreUnavailable) return undefined;
      throw error;
    }
  });
  assert.equal(counted, 1);
});

test('lets nothing else wait while a long read runs', async (context) => {
  const folder = folderFor(context);
  const rows = Array.from({ length: 60_000 }, (_, index) => ({
    id: `r ${index}`,
    row: nextRow(things, `r ${index}`, { name: `n${index}` }),
  }));
  seedTable(folder.path, tables, 'things', rows);
  const store = await folder.open();
  await commitAll(store, put(things, 'writer is up', {}));
  const patterns = Array.from({ length: 20 }, (_, index) => `%7${'%'.repeat(index)}`);
  const filters = patterns.map((pattern): Filter => ({ op: 'like', field: fields.name, pattern }));
  let scanned = false;
  const scan = (async () => {
    const count = await store.count('things', { op: 'and', filters });
    scanned = true;
    return count;
  })();
  await commitAll(store, put(things, 'meanwhile', {}));
  assert.notEqual(await rowAt(store, things, 'meanwhile'), undefined);
  assert.equal(scanned, false);
  assert.equal(await scan, 6000);
});

test('fails units with StoreUnavailable when the disk is full, keeps every acknowledged one, and recovers', async (context) => {
  const folder = folderFor(context);
  const store = await folder.open({ pagesMax: 400 });
  const revs = new Map<string, number>();
  let refused = 0;
  for (let index = 0; refused < 3; index += 1) {
    assert.ok(index < 10_000, 'the bound is never met');
    const id = `full ${index}`;
    try {
      revs.set(id, await commitAll(store, put(things, id, { name: 'x'.repeat(2000) }), event(`evt_${id}`)));
    } catch (error) {
      assert.ok(error instanceof StoreUnavailable, String(error));
      refused += 1;
      assert.equal(await rowAt(store, things, id), undefined);
      assert.equal(await store.read('events', `evt_${id}`), undefined);
    }
  }
  assert.deepEqual([...(await idsOf(store, always))].sort(), [...revs.keys()].sort());
  let highest = Math.max(...revs.values());
  for (const [id, rev] of [...revs].slice(0, revs.size >> 1)) {
    const removal = await commitAll(store, remove(things, id, rev));
    assert.ok(removal > highest);
    highest = removal;
  }
  await commitAll(store, put(things, 'room again', { name: 'x'.repeat(2000) }), event('evt_room'));
  await store.close();
  assert.notEqual(await rowAt(await folder.open(), things, 'room again'), undefined);
});

test('refuses a unit whose values SQLite does not take without failing its neighbours', async (context) => {
  const store = await folderFor(context).open();
  const good = put(things, 'good', {});
  const bad = { ...put(things, 'bad', {}), next: { ...nextRow(things, 'bad', {}), doc: '{"not json' } };
  const results = await Promise.allSettled([
    store.commit(unit(good, event('evt_good'))),
    store.commit(unit(event('evt_bad'), bad)),
    store.commit(unit(put(things, 'after', {}))),
  ]);
  assert.deepEqual(
    results.map((result) => result.status),
    ['fulfilled', 'rejected', 'fulfilled'],
  );
  assert.ok(results[1]?.status === 'rejected' && !(results[1].reason instanceof StoreUnavailable));
  assert.equal(await rowAt(store, things, 'bad'), undefined);
  const tail = await store.tail({ rev: 0, id: '' }, always, 10);
  assert.deepEqual(
    tail.map((entry) => entry.id),
    ['evt_good'],
  );
});
