/** Restoring into an empty data folder: what a server finds there afterwards, and what is refused. */
import assert from 'node:assert/strict';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { type TestContext, test } from 'node:test';
import { always } from '../../src/model/filter.ts';
import { columnNamesOf } from '../../src/store/backup-file/file-format.ts';
import { readFile } from '../../src/store/backup-file/read-file.ts';
import { startRestore } from '../../src/store/sqlite/sqlite-backup.ts';
import { StoreUnavailable } from '../../src/store/store.ts';
import { commitAll, event, put, rowAt, things } from '../contract/fixture.ts';
import { type Folder, folderFor } from './folder.ts';

/** A backup, and a folder beside it that does not exist yet. */
async function backedUp(
  context: TestContext,
  rows = 300,
): Promise<{ file: string; target: string; folder: Folder; rev: number }> {
  const folder = folderFor(context);
  const store = await folder.open();
  for (let at = 0; at < rows; at += 1) {
    void store.commit({
      changes: [put(things, `t${at}`, { name: 'x'.repeat(500) })],
      events: [event(`evt_${at}`)],
    });
  }
  const rev = await commitAll(store, put(things, 'last', {}));
  const newest = await commitAll(store, put(things, 'last', {}, rev, { deletedAt: 1 }));
  const file = join(folder.path, '..', 'backup.db');
  await store.backup(file, () => undefined);
  await store.close();
  return { file, target: join(folder.path, '..', 'restored'), folder, rev: newest };
}

/** Files in the folder but the one that is the lock. */
function filesIn(folder: string): readonly string[] {
  return readdirSync(folder).filter((name) => !name.startsWith('comity.lock'));
}

test('puts the store into a folder that it makes, readable by its owner alone, and goes on above its revision', async (context) => {
  const { file, target, folder, rev } = await backedUp(context);
  const progress: (readonly [number, number])[] = [];
  const restored = await startRestore(target, file, (done, total) => progress.push([done, total])).done;
  assert.deepEqual(restored, { rows: 601, tables: 3, rev });
  const [done, total] = progress.at(-1) ?? [0, 1];
  assert.ok(done === total && total > 50);
  assert.deepEqual(
    [statSync(target).mode & 0o777, statSync(join(target, 'comity.db')).mode & 0o777],
    [0o700, 0o600],
  );
  assert.deepEqual(filesIn(target), ['comity.db']);
  const store = await folder.open({ folder: target });
  assert.equal(await store.count('things', always), 300);
  assert.equal((await rowAt(store, things, 'last'))?.deletedAt, 1);
  assert.equal((await store.tail({ rev: 0, id: '' }, always, 1000)).length, 300);
  assert.ok((await commitAll(store, put(things, 'more', {}))) > rev);
});

test('leaves nothing beside the file that it restores', async (context) => {
  const { file, target } = await backedUp(context);
  const beside = readdirSync(join(file, '..'));
  await startRestore(target, file, () => undefined).done;
  assert.deepEqual(readdirSync(join(file, '..')), [...beside, 'restored'].sort());
});

test('refuses a folder with a store, and one that is in use, and changes neither', async (context) => {
  const { file, folder } = await backedUp(context);
  const before = readFileSync(join(folder.path, 'comity.db'));
  assert.throws(() => startRestore(folder.path, file, () => undefined), {
    name: 'NotEmpty',
    message: /^the folder .* already holds a store \(comity\.db\)$/,
  });
  assert.ok(before.equals(readFileSync(join(folder.path, 'comity.db'))));
  await folder.open();
  assert.throws(() => startRestore(folder.path, file, () => undefined), { name: 'FolderInUse' });
});

test('refuses a folder in which the log of a lost store stands', async (context) => {
  const { file, target } = await backedUp(context);
  mkdirSync(target);
  writeFileSync(join(target, 'comity.db-wal'), 'x');
  assert.throws(() => startRestore(target, file, () => undefined), { name: 'NotEmpty' });
});

test('takes the place of what an earlier attempt left', async (context) => {
  const { file, target } = await backedUp(context);
  mkdirSync(target);
  writeFileSync(join(target, 'comity.db.partial'), 'half of something');
  await startRestore(target, file, () => undefined).done;
  assert.deepEqual(filesIn(target), ['comity.db']);
});

test('refuses what is no backup before it makes the folder', async (context) => {
  const { file, target } = await backedUp(context);
  const other = join(file, '..', 'other.db');
  new DatabaseSync(other).exec('CREATE TABLE t (a)');
  for (const path of [other, join(file, '..', 'missing.db'), join(file, '..')]) {
    assert.throws(() => startRestore(target, path, () => undefined), { name: 'UnfitBackup' });
  }
  assert.ok(!existsSync(target));
});

test('finds a damaged page in the copy, and leaves the folder without a store', async (context) => {
  const { file, target } = await backedUp(context);
  const damaged = join(file, '..', 'damaged.db');
  copyFileSync(file, damaged);
  // In a page of documents, which neither the schema nor a count reads.
  const bytes = readFileSync(damaged);
  bytes.fill(0xaa, bytes.lastIndexOf('x'.repeat(500)) - 2000, bytes.lastIndexOf('x'.repeat(500)) + 200);
  writeFileSync(damaged, bytes);
  await assert.rejects(
    async () => startRestore(target, damaged, () => undefined).done,
    /damaged\.db is damaged: /,
  );
  assert.ok(!existsSync(target) || filesIn(target).length === 0);
});

test('finds a letter that changed and a row that went, which no page tells of', async (context) => {
  const { file, target } = await backedUp(context);
  const whole = readFileSync(file);
  for (const [sql, fault] of [
    [
      `UPDATE things SET doc = replace(doc, 'xxx', 'xyx') WHERE id = 't7'`,
      /damaged: rows of things were changed/,
    ],
    [`DELETE FROM things WHERE id = 't7'`, /damaged: 300 of 301 rows of things can be read/],
  ] as const) {
    writeFileSync(file, whole);
    const database = new DatabaseSync(file);
    database.exec(sql);
    database.close();
    await assert.rejects(startRestore(target, file, () => undefined).done, fault);
    const read = readFile(file);
    const table = read.tables.find(({ name }) => name === 'things');
    assert.ok(table !== undefined);
    assert.throws(() => [...read.rows(table, columnNamesOf(table))], fault);
    read.close();
    assert.deepEqual(filesIn(target), []);
  }
  writeFileSync(file, whole);
  await startRestore(target, file, () => undefined).done;
});

test('leaves an empty folder when it is stopped, which can be restored into again', async (context) => {
  const { file, target } = await backedUp(context, 6000);
  const first = startRestore(target, file, () => void first.stop());
  await assert.rejects(first.done, StoreUnavailable);
  assert.deepEqual(filesIn(target), []);
  await startRestore(target, file, () => undefined).done;
});
