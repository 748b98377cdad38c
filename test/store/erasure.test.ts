/** Deleted text is in no file of the store, and in no backup of it. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import type { Store } from '../../src/store/store.ts';
import { commitAll, put, remove, things } from '../contract/fixture.ts';
import { type Folder, folderFor } from './folder.ts';

const marker = 'erased-5f1c09';

/** Files that hold the text. */
function holding(folder: Folder): readonly string[] {
  return readdirSync(folder.path).filter((name) => readFileSync(join(folder.path, name)).includes(marker));
}

/** Long and short rows with the text, of which none is left. */
async function written(store: Store): Promise<void> {
  const revs = new Map<string, number>();
  for (let at = 0; at < 200; at += 1) {
    const name = `${marker} ${at} ${'z'.repeat(at % 3 === 0 ? 9000 : 100)}`;
    revs.set(`m${at}`, await commitAll(store, put(things, `m${at}`, { name })));
    await commitAll(store, put(things, `k${at}`, { name: `kept ${at}` }));
  }
  for (const [id, rev] of revs) {
    await commitAll(
      store,
      Number(id.slice(1)) % 2 === 0 ? remove(things, id, rev) : put(things, id, { name: 'changed' }, rev),
    );
  }
}

test('deleted and replaced text is gone from every file once the log was truncated, and from a backup at once', async (context) => {
  const folder = folderFor(context);
  const store = await folder.open({ logTruncateSeconds: 1 });
  await written(store);
  const copy = join(folder.path, 'copy.db');
  await store.backup(copy, () => undefined);
  assert.ok(!readFileSync(copy).includes(marker));
  // Truncated by the writer itself, with no write and no close: the file says when.
  while (holding(folder).length > 0) await new Promise((resolve) => setTimeout(resolve, 50));
  await store.close();
  assert.deepEqual(holding(folder), []);
});

test('text that a version without secure_delete left is gone after a start', async (context) => {
  const folder = folderFor(context);
  const store = await folder.open();
  await written(store);
  await store.close();
  const path = join(folder.path, 'comity.db');
  const old = new DatabaseSync(path);
  old.exec('PRAGMA auto_vacuum = NONE; VACUUM; PRAGMA secure_delete = OFF; CREATE TABLE gone (text)');
  const insert = old.prepare('INSERT INTO gone VALUES (?)');
  for (let at = 0; at < 200; at += 1) insert.run(`${marker} ${'z'.repeat(at * 40)}`);
  old.exec('DROP TABLE gone; PRAGMA wal_checkpoint(TRUNCATE)');
  old.close();
  assert.deepEqual(holding(folder), ['comity.db']);
  await (await folder.open()).close();
  assert.deepEqual(holding(folder), []);
});
