/** The schema as SQLite keeps it, against a golden dump: a change of it must be meant. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
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
