/** The schema as PostgreSQL keeps it, against a golden dump: a change of it must be meant. Its sibling is test/store/schema.sql. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { tables } from '../../contract/fixture.ts';
import { makeSchema, stepsTo, testDatabase } from './database.ts';
import { columnsOf, countersOf, dumpSchema } from './dump.ts';

const golden = new URL('./schema.sql', import.meta.url);
const database = await testDatabase();
const { rows } = await database.client.query('SHOW server_version_num');
const major = Math.floor(Number(rows[0]?.server_version_num) / 10_000);

test('makes exactly the schema of test/postgres/schema/schema.sql (COMITY_UPDATE_GOLDEN=1 writes it anew)', {
  skip: major !== 18 && `PostgreSQL ${major} prints its catalogue in another way than 18`,
}, async () => {
  await makeSchema(database, 'golden');
  const dump = await dumpSchema(database.client, 'golden');
  if (process.env.COMITY_UPDATE_GOLDEN === '1') writeFileSync(golden, dump);
  assert.equal(dump, readFileSync(golden, 'utf8'));
});

test('has the tables and columns that the embedded store has', async () => {
  await makeSchema(database, 'beside');
  const sibling = readFileSync(new URL('../../store/schema.sql', import.meta.url), 'utf8');
  const own = await columnsOf(database.client, 'beside');
  for (const [, name = '', body = ''] of sibling.matchAll(/^CREATE TABLE "?(\w+)"? \(\n([^;]*)\n\);$/gm)) {
    const columns = body.split('\n').map((line) => line.trim().split(' ')[0]);
    assert.deepEqual(own.get(name), columns, name);
  }
  assert.ok(['things', 'categories', 'events'].every((name) => own.has(name)));
});

test('numbers the tables alike and makes the same schema when it migrates as when it starts', async () => {
  await makeSchema(database, 'started');
  await stepsTo(database, 'migrated', tables);
  const dump = async (schema: string) =>
    (await dumpSchema(database.client, schema)).replaceAll(schema, 'comity');
  assert.equal(await dump('migrated'), await dump('started'));
  assert.deepEqual(
    await countersOf(database.client, 'migrated'),
    await countersOf(database.client, 'started'),
  );
});

test('adds what events of earlier versions lack, and keeps them', async () => {
  const { client } = database;
  await makeSchema(database, 'earlier');
  await client.query(`DROP INDEX earlier."events.index[""collection"",""document"",""rev""]"`);
  await client.query(
    `DELETE FROM earlier.comity_indexes WHERE name = 'events.index["collection","document","rev"]'`,
  );
  await client.query('ALTER TABLE earlier.events DROP COLUMN document, DROP COLUMN former');
  await client.query(
    `INSERT INTO earlier.events (id, rev, created_at, updated_at, type, collection, doc) VALUES ('e', 1, 1, 1, 't', 'c', '{}')`,
  );
  assert.deepEqual(await stepsTo(database, 'earlier', tables), [
    'columns of history',
    'index events.index["collection","document","rev"]',
  ]);
  assert.deepEqual(await stepsTo(database, 'earlier', tables), []);
  const { rows: kept } = await client.query('SELECT id, document, former FROM earlier.events');
  assert.deepEqual(kept, [{ id: 'e', document: null, former: null }]);
});
