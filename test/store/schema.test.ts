/** The schema as SQLite keeps it, against a golden dump: a change of it must be meant. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { always } from '../../src/model/filter.ts';
import { commitAll, event } from '../contract/fixture.ts';
import { folderFor } from './folder.ts';

const golden = new URL('./schema.sql', import.meta.url);

test('makes exactly the schema of test/store/schema.sql (COMITY_UPDATE_GOLDEN=1 writes it anew)', async (context) => {
  const folder = folderFor(context);
  await (await folder.open()).close();
  const database = new DatabaseSync(join(folder.path, 'comity.db'), { readOnly: true });
  const rows = database
    .prepare('SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY tbl_name, type DESC, name')
    .all();
  const version = database.prepare('PRAGMA user_version').get()?.user_version;
  database.close();
  const dump = `-- user_version ${version}\n${rows.map((row) => `${row.sql};\n`).join('')}`;
  if (process.env.COMITY_UPDATE_GOLDEN === '1') writeFileSync(golden, dump);
  assert.equal(dump, readFileSync(golden, 'utf8'));
});

test('adds what events of earlier versions lack, and keeps them', async (context) => {
  const folder = folderFor(context);
  const earlier = await folder.open();
  await commitAll(earlier, event('evt_old'));
  await earlier.close();
  const database = new DatabaseSync(join(folder.path, 'comity.db'));
  database.exec(`DROP INDEX "events.index[""collection"",""document"",""rev""]";
    ALTER TABLE events DROP COLUMN document; ALTER TABLE events DROP COLUMN former`);
  database.close();
  const store = await folder.open();
  await commitAll(store, { ...event('evt_new'), document: 'd', former: '{}' });
  const found = await store.tail({ rev: 0, id: '' }, always, 10);
  assert.deepEqual(
    found.map(({ id, document, former }) => [id, document, former]),
    [
      ['evt_old', null, null],
      ['evt_new', 'd', '{}'],
    ],
  );
});
