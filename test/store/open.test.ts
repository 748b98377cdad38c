/** Opening a folder: who may, what is refused, and how the schema follows the declaration. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { always } from '../../src/model/filter.ts';
import type { Observation } from '../../src/observe/observation.ts';
import { UnknownDatabase } from '../../src/store/backup-file/file-format.ts';
import { UnfitRows } from '../../src/store/declared-indexes.ts';
import { FolderInUse } from '../../src/store/sqlite/home.ts';
import {
  categories,
  commitAll,
  event,
  fields,
  idsOf,
  nextRow,
  put,
  rowAt,
  tables,
  things,
} from '../contract/fixture.ts';
import { seedTable } from '../harness/seed-table.ts';
import { folderFor } from './folder.ts';

test('makes the folder and its files readable by their owner alone', async (context) => {
  const folder = folderFor(context);
  await commitAll(await folder.open(), event('evt_1'));
  assert.equal(statSync(folder.path).mode & 0o777, 0o700);
  for (const name of ['comity.db', 'comity.db-wal', 'comity.db-shm', 'comity.lock']) {
    assert.equal(statSync(join(folder.path, name)).mode & 0o777, 0o600, name);
  }
});

test('refuses a folder that this process has open, and takes it once that is closed', async (context) => {
  const folder = folderFor(context);
  const store = await folder.open();
  await assert.rejects(
    folder.open(),
    (error: Error) => error instanceof FolderInUse && error.message.includes(folder.path),
  );
  await commitAll(store, put(things, 'still here', {}));
  await store.close();
  assert.notEqual(await rowAt(await folder.open(), things, 'still here'), undefined);
});

test('maps no more of the file than the bound, and nothing with a bound of 0', {
  skip: process.platform !== 'linux',
}, async (context) => {
  const folder = folderFor(context);
  const mappedBytes = async (bytesMax: number) => {
    const store = await folder.open({ mappedBytesMax: bytesMax });
    if (bytesMax === 0) {
      for (let n = 0; n < 4; n += 1)
        await commitAll(store, put(things, `long ${n}`, { text: 'x'.repeat(65_536) }));
    }
    await rowAt(store, things, 'long 1');
    const spans = readFileSync('/proc/self/maps', 'utf8')
      .split('\n')
      .filter((line) => line.endsWith(join(folder.path, 'comity.db')))
      .map((line) => line.split(/[- ]/, 2).map((address) => Number.parseInt(address, 16)))
      .map(([from = 0, to = 0]) => to - from);
    await store.close();
    return Math.max(0, ...spans);
  };
  assert.equal(await mappedBytes(0), 0);
  assert.equal(await mappedBytes(131_072), 131_072);
});

test('keeps other processes out also after this one was refused the folder once more', async (context) => {
  const folder = folderFor(context);
  await folder.open();
  await assert.rejects(folder.open(), FolderInUse);
  const lock = new URL('../../src/store/sqlite/home.ts', import.meta.url).href;
  const script = `import { lockFolder } from '${lock}'; lockFolder(${JSON.stringify(folder.path)});`;
  const other = spawnSync(process.execPath, ['--input-type=module', '--eval', script], { encoding: 'utf8' });
  assert.match(other.stderr, /FolderInUse/);
  assert.notEqual(other.status, 0);
});

test('refuses a folder that another process has open, and takes it once that is killed', async (context) => {
  const folder = folderFor(context);
  const child = spawn(
    process.execPath,
    [new URL('./crash-child.ts', import.meta.url).pathname, folder.path],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  await once(child.stdout, 'data');
  await assert.rejects(folder.open(), FolderInUse);
  child.kill('SIGKILL');
  await once(child, 'exit');
  await (await folder.open()).ping();
});

test('refuses a database written by a newer version, in one line, and leaves it as it is', async (context) => {
  const folder = folderFor(context);
  await (await folder.open()).close();
  const database = new DatabaseSync(join(folder.path, 'comity.db'));
  const version = database.prepare('PRAGMA user_version').get()?.user_version;
  database.exec('PRAGMA user_version = 4711');
  await assert.rejects(folder.open(), (error: Error) => {
    assert.ok(error instanceof UnknownDatabase);
    assert.match(error.message, /^[^\n]*newer version[^\n]*4711[^\n]*$/);
    return true;
  });
  database.exec(`PRAGMA user_version = ${version}`);
  database.close();
  await (await folder.open()).ping();
});

test('opens a store of the version before revisions were raised, and goes on above what it gave', async (context) => {
  const folder = folderFor(context);
  const earlier = await folder.open();
  await commitAll(earlier, event('evt_old'));
  await earlier.close();
  const database = new DatabaseSync(join(folder.path, 'comity.db'));
  database.exec(`UPDATE events SET rev = 7; UPDATE comity_counters SET rev = 7 WHERE rev > 0;
    DROP TABLE comity_raises; PRAGMA user_version = 1`);
  database.close();
  const store = await folder.open();
  assert.deepEqual([await store.isLost(7), await store.isLost(8)], [false, true]);
  assert.ok((await commitAll(store, event('evt_new'))) > 2 ** 50);
});

test("refuses another program's database", async (context) => {
  const folder = folderFor(context);
  mkdirSync(folder.path, { recursive: true });
  const database = new DatabaseSync(join(folder.path, 'comity.db'));
  database.exec('CREATE TABLE theirs (a)');
  database.close();
  await assert.rejects(folder.open(), UnknownDatabase);
});

test('makes, drops and changes indexes as declared, and keeps tables no longer declared', async (context) => {
  const folder = folderFor(context);
  const what: string[] = [];
  const observe = (observation: Observation): void => {
    if (observation.kind === 'store-migrated') what.push(observation.what);
  };
  const bare = { ...things, indexes: [], unique: [], references: [], searched: false };
  const first = await folder.open({ tables: [bare, categories] });
  const sort = [
    { field: fields.price, direction: 'asc' as const },
    { field: fields.id, direction: 'asc' as const },
  ];
  const query = { table: 'things', filter: always, sort, limit: 10 };
  await commitAll(
    first,
    put(bare, 'a', { price: 2 }),
    put(bare, 'b', { price: 1 }),
    put(categories, 'kept', {}),
  );
  assert.equal(first.plan(query).bounded, false);
  await first.close();

  const second = await folder.open({
    tables: [{ ...bare, indexes: [[fields.price]], searched: true }],
    observe,
  });
  assert.deepEqual(what, ['search text of things', 'index things.index["price"]']);
  assert.equal(second.plan(query).bounded, true);
  assert.deepEqual(await idsOf(second, always, sort), ['b', 'a']);
  await commitAll(second, put({ ...bare, searched: true }, 'c', {}, undefined, { search: 'found' }));
  assert.deepEqual(await idsOf(second, { op: 'search', terms: ['ound'] }), ['c']);
  await second.close();

  what.length = 0;
  const third = await folder.open({ tables: [{ ...bare, searched: true }, categories], observe });
  assert.deepEqual(what, ['index things.index["price"] dropped']);
  assert.notEqual(await rowAt(third, categories, 'kept'), undefined);
});

test('refuses to make a field unique whose values are not, names it, and opens without it', async (context) => {
  const folder = folderFor(context);
  const open = { ...things, unique: [], references: [] };
  const store = await folder.open({ tables: [open] });
  await commitAll(store, put(open, 'a', { sku: 'same' }), put(open, 'b', { sku: 'same' }));
  await store.close();
  const unique = [{ ...open, unique: [[fields.sku]] }];
  await assert.rejects(
    folder.open({ tables: unique }),
    (error: Error) =>
      error instanceof UnfitRows &&
      error.message.startsWith('things: sku must be unique, and 2 documents') &&
      error.message.includes('2 have "same", such as a and b;'),
  );
  await (await folder.open({ tables: [open] })).ping();
});

test('refuses declarations that SQLite could not keep apart or in order', async (context) => {
  const folder = folderFor(context);
  const bare = { ...categories, references: [], unique: [], indexes: [] };
  for (const wrong of [
    [bare, { ...bare, name: 'CATEGORIES' }],
    [{ ...bare, name: 'sqlite_x' }],
    [{ ...bare, name: 'Comity_meta' }],
    [{ ...bare, name: '' }],
    [{ ...bare, indexes: [[]] }],
    [{ ...bare, references: [{ field: fields.parentId, table: 'nowhere' }] }],
    [{ ...bare, references: [{ field: fields.price, table: 'categories' }] }],
  ]) {
    await assert.rejects(folder.open({ tables: wrong }), TypeError);
  }
  await (await folder.open({ tables: [{ ...bare, name: 'odd " name; --' }] })).ping();
});

test('seeds rows that the store then has like any others', async (context) => {
  const folder = folderFor(context);
  const rows = Array.from({ length: 25_000 }, (_, index) => {
    const id = `seed ${String(index).padStart(5, '0')}`;
    return { id, row: nextRow(things, id, { price: index % 100, sku: id }) };
  });
  assert.equal(seedTable(folder.path, tables, 'things', rows), 25_000);
  const store = await folder.open();
  assert.equal(await store.count('things', { op: 'eq', field: fields.price, value: 7 }), 250);
  const rev = await commitAll(store, put(things, 'next', {}));
  assert.ok(rev > ((await rowAt(store, things, 'seed 24999'))?.rev ?? rev));
  assert.equal(
    (await store.commit({ changes: [put(things, 'x', { sku: 'seed 00001' })], events: [] })).outcome,
    'taken',
  );
});
