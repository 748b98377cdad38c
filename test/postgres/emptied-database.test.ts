/** The databases that tests get: one that was given back is as good as new, or is not given again. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import pg from 'pg';
import { openPostgresStore } from '../../src/store/postgres/postgres-store.ts';
import type { Table } from '../../src/store/store.ts';
import { commitAll, event, notes, put, suiteTables, things } from '../contract/fixture.ts';
import { databaseWith, type TestDatabase } from '../harness/postgres-database.ts';

/** A declaration of this file alone: what is given back here is taken by no other file. */
const tables: readonly Table[] = [...suiteTables, { ...notes, name: 'emptied_notes' }];

async function ask(url: string, sql: string): Promise<readonly (readonly unknown[])[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query<unknown[]>({ text: sql, rowMode: 'array' })).rows;
  } finally {
    await client.end();
  }
}

/** Every row of every table of the schema, and the room that each table takes. */
async function contentOf({ url }: TestDatabase): Promise<Readonly<Record<string, unknown>>> {
  const names = await ask(url, `SELECT tablename FROM pg_tables WHERE schemaname = 'comity' ORDER BY 1`);
  const content: Record<string, unknown> = {};
  for (const [name] of names) {
    const rows = await ask(url, `SELECT t::text FROM comity."${name}" t ORDER BY 1`);
    content[String(name)] = rows.flat().map(String);
  }
  return content;
}

async function write({ url }: TestDatabase): Promise<number> {
  const store = await openPostgresStore({ url, tables });
  const rev = await commitAll(store, put(things, 'a', { sku: '1' }), put(notes, 'n', {}), event('e'));
  await store.tally([{ key: 'key', add: 3, expiresAt: Date.now() + 60_000 }]);
  await store.close();
  return rev;
}

test('a database that was given back holds what a new one holds, and serves', async (context) => {
  const unused = await databaseWith(tables);
  context.after(() => unused.dispose());
  const first = await databaseWith(tables);
  const rev = await write(first);
  assert.notDeepEqual(await contentOf(first), await contentOf(unused));
  await first.dispose();
  const second = await databaseWith(tables);
  context.after(() => second.dispose());
  assert.equal(second.url, first.url);
  assert.deepEqual(await contentOf(second), await contentOf(unused));
  assert.ok((await write(second)) > rev);
});

test('no database is given to two at once, however often the first gives it back', async (context) => {
  const first = await databaseWith(tables);
  await first.dispose();
  await first.dispose();
  const taken = [await databaseWith(tables), await databaseWith(tables)];
  context.after(() => Promise.all(taken.map((database) => database.dispose())));
  assert.notEqual(taken[0]?.url, taken[1]?.url);
});

test('sessions that a test left are ended, with the transaction that they hold', async (context) => {
  const first = await databaseWith(tables);
  const left = new pg.Client({ connectionString: first.url });
  left.on('error', () => undefined);
  await left.connect();
  await left.query(`BEGIN; INSERT INTO comity.comity_writers VALUES ('left', 1, 1, 1, 1, 1)`);
  const ended = new Promise((resolve) => left.once('end', resolve));
  await first.dispose();
  const second = await databaseWith(tables);
  context.after(() => second.dispose());
  await ended;
  assert.equal(second.url, first.url);
  assert.deepEqual(await ask(second.url, 'SELECT writer FROM comity.comity_writers'), []);
});

for (const [what, sql] of [
  ['a table', 'CREATE TABLE public.more (id text)'],
  ['an index', 'CREATE INDEX more ON comity.things (owner, rev)'],
  ['a column', 'ALTER TABLE comity.notes ADD COLUMN more text'],
  [
    'a function',
    'CREATE OR REPLACE FUNCTION comity.comity_costly(value text) RETURNS text LANGUAGE sql AS $$ SELECT value $$',
  ],
  [
    'a trigger',
    'CREATE TRIGGER more BEFORE UPDATE ON comity.notes FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()',
  ],
  ['a right', 'GRANT SELECT ON comity.notes TO public'],
  ['a migration', `INSERT INTO comity.comity_migrations VALUES (99, 'later', 1, 'next')`],
] as const) {
  test(`a database with ${what} more or other than it had is not given again`, async (context) => {
    const first = await databaseWith(tables);
    await ask(first.url, sql);
    await first.dispose();
    const second = await databaseWith(tables);
    context.after(() => second.dispose());
    assert.notEqual(second.url, first.url);
    await assert.rejects(ask(first.url, 'SELECT 1'), { code: '3D000' });
  });
}
