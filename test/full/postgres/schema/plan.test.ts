/** The plan for each way in which a schema can differ from what is declared: shown, carried out, and then empty. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { UnfitRows } from '../../../../src/store/declared-indexes.ts';
import { migrateSchema, previewMigration } from '../../../../src/store/postgres/schema/migrate.ts';
import { openSchema } from '../../../../src/store/postgres/schema/open-schema.ts';
import type { Table } from '../../../../src/store/store.ts';
import { categories, fields, tables } from '../../../contract/fixture.ts';
import {
  insertCategory,
  invalidIndexes,
  makeSchema,
  migrateOptions,
  openOptions,
  testDatabase,
  withCategories,
} from '../../../postgres/schema/database.ts';

const database = await testDatabase();
const { address, client } = database;

const more: Table = { ...categories, name: 'more', references: [] };
const retitled = { ...fields.name, path: ['title'] };

/** Shows the plan, carries it out, and looks again; a row that stood there still stands. */
async function planned(
  schema: string,
  declared: readonly Table[],
  expected: readonly string[],
): Promise<void> {
  const options = migrateOptions(schema, { tables: declared });
  const preview = await previewMigration(address, options);
  assert.deepEqual(
    preview.map(({ what }) => what),
    expected,
  );
  const carriedOut = await migrateSchema(address, options);
  assert.deepEqual(
    carriedOut.map(({ what }) => what),
    expected,
  );
  assert.deepEqual(await previewMigration(address, options), []);
  await openSchema(address, openOptions(schema, { tables: declared }));
  assert.deepEqual(await invalidIndexes(database), []);
}

async function made(schema: string, declared: readonly Table[] = tables): Promise<void> {
  await makeSchema(database, schema, declared);
  if (declared.includes(categories))
    await insertCategory(database, schema, 'c1', { name: 'one', title: 'first' });
}

async function rowsOf(schema: string): Promise<number> {
  return (await client.query(`SELECT FROM ${schema}.categories`)).rows.length;
}

async function isThere(name: string): Promise<boolean> {
  return (await client.query('SELECT to_regclass($1) AS found', [name])).rows[0]?.found !== null;
}

test('makes everything where there is nothing', () =>
  planned('nothing', tables, [
    'schema nothing',
    'migration 0001-system-tables',
    'migration 0002-raises',
    'migration 0003-fold',
    'table things',
    'table categories',
    'table events',
  ]));

test('does nothing where nothing differs', async () => {
  await made('same');
  await planned('same', tables, []);
});

test('makes a table that was declared since, with its indexes, and numbers it after the others', async () => {
  await made('added');
  await planned('added', [...tables, more], ['table more']);
  const { numbers } = await openSchema(address, openOptions('added'));
  assert.equal(numbers.get('more'), 4);
});

test('makes a table again under its number when it was dropped by hand', async () => {
  await made('dropped');
  await client.query('DROP TABLE dropped.things');
  await planned('dropped', tables, ['table things']);
  assert.equal((await openSchema(address, openOptions('dropped'))).numbers.get('things'), 1);
});

test('adds the search text of a table that became searched', async () => {
  await made('searched');
  await planned('searched', withCategories({ searched: true }), ['search text of categories']);
  assert.equal(await rowsOf('searched'), 1);
});

test('keeps the search text of a table that is searched no more', async () => {
  await made('unsearched', withCategories({ searched: true }));
  await planned('unsearched', tables, []);
});

test('makes an index that was declared since', async () => {
  await made('indexed');
  await planned('indexed', withCategories({ indexes: [[fields.id], [fields.name]] }), [
    'index categories.index["name"]',
  ]);
});

test('makes an index again that was dropped by hand', async () => {
  await made('unindexed');
  await client.query(`DROP INDEX unindexed."categories.unique[""name""]"`);
  await planned('unindexed', tables, ['index categories.unique["name"]']);
});

test('drops an index that is declared no more, and none that others made', async () => {
  await made('leaner');
  await client.query('CREATE INDEX by_hand ON leaner.categories (updated_at)');
  await planned('leaner', withCategories({ unique: [], indexes: [] }), [
    'index categories.index["id"] dropped',
    'index categories.unique["name"] dropped',
  ]);
  assert.ok(await isThere('leaner.by_hand'));
});

test('replaces an index of another form only when the new one is whole', async () => {
  await made('reformed');
  await planned('reformed', withCategories({ unique: [[retitled]] }), [
    'index categories.unique["name"]',
    'index categories.unique["name"] replaced by its new form',
    'index categories.unique["name"]~last dropped',
  ]);
  const { rows } = await client.query(
    `SELECT indexdef FROM pg_indexes WHERE schemaname = 'reformed' AND indexname = 'categories.unique["name"]'`,
  );
  assert.match(String(rows[0]?.indexdef), /title/);
  await assert.rejects(insertCategory(database, 'reformed', 'c2', { title: 'first' }), { code: '23505' });
  await insertCategory(database, 'reformed', 'c3', { name: 'one', title: 'second' });
});

test('goes on with a replacement that was killed when the new index was whole', async () => {
  await made('resumed');
  const declared = withCategories({ unique: [[retitled]] });
  const options = migrateOptions('resumed', { tables: declared });
  const stop = new Error('killed');
  const onStep = (step: { readonly what: string }): void => {
    if (step.what.includes('replaced by its new form')) throw stop;
  };
  await assert.rejects(migrateSchema(address, { ...options, onStep }), stop);
  await planned('resumed', declared, [
    'index categories.unique["name"] replaced by its new form',
    'index categories.unique["name"]~last dropped',
  ]);
});

test('tidies up a replacement that was killed before the old index went, or that is wanted no more', async () => {
  for (const [schema, endsAt, wanted] of [
    ['untidy', '~last dropped', withCategories({ unique: [[retitled]] })],
    ['unwanted', 'replaced by its new form', tables],
  ] as const) {
    await made(schema);
    const onStep = (step: { readonly what: string }): void => {
      if (step.what.includes(endsAt)) throw new Error('killed');
    };
    const options = migrateOptions(schema, { tables: withCategories({ unique: [[retitled]] }) });
    await assert.rejects(migrateSchema(address, { ...options, onStep }), /killed/);
    const left = schema === 'untidy' ? '~last' : '~next';
    await planned(schema, wanted, [`index categories.unique["name"]${left} dropped`]);
  }
});

test('drops what an interrupted build left, and builds it', async () => {
  await made('interrupted');
  // As a server that was killed leaves it: the index is there, and not valid.
  await client.query(`DROP INDEX interrupted."categories.unique[""name""]"`);
  await insertCategory(database, 'interrupted', 'c2', { name: 'one' });
  const build = `CREATE UNIQUE INDEX CONCURRENTLY "categories.unique[""name""]" ON interrupted.categories ((doc::json ->> 'name'))`;
  await assert.rejects(client.query(build), { code: '23505' });
  await client.query(`DELETE FROM interrupted.categories WHERE id = 'c2'`);
  assert.deepEqual(await invalidIndexes(database), ['categories.unique["name"]']);
  await planned('interrupted', tables, [
    'index categories.unique["name"] dropped',
    'index categories.unique["name"]',
  ]);
});

test('names the field and two rows that stand against a unique index, and leaves nothing of it', async () => {
  await made('twins', withCategories({ unique: [] }));
  for (const id of ['c1', 'c2', 'c3']) await insertCategory(database, 'twins', id, { name: 'Twin' });
  const dump = () => client.query('SELECT * FROM twins.comity_indexes ORDER BY name');
  const before = (await dump()).rows;
  await assert.rejects(migrateSchema(address, migrateOptions('twins')), (error) => {
    assert.ok(error instanceof UnfitRows, String(error));
    assert.equal(
      error.message,
      'categories: name must be unique, and 3 documents have a value that another has: 3 have "Twin", such as c1 and c3; give each a value of its own, with a server of the earlier declaration or by a migration',
    );
    return true;
  });
  assert.deepEqual(await invalidIndexes(database), []);
  assert.ok(!(await isThere(`twins."categories.unique[""name""]"`)));
  assert.deepEqual((await dump()).rows, before);
  await client.query(`DELETE FROM twins.categories WHERE id <> 'c2'`);
  await planned('twins', tables, ['index categories.unique["name"]']);
});

test('tells of a value that is too long for an index, and leaves nothing of it', async () => {
  await made('wide', withCategories({ indexes: [] }));
  const name = Array.from({ length: 2000 }, (_, at) =>
    String.fromCodePoint(0x4e00 + ((at * 7919) % 20_000)),
  ).join('');
  await client.query(`DROP INDEX wide."categories.index[""parentId""]"`);
  await insertCategory(database, 'wide', 'c9', { name: 'short', parentId: name });
  await assert.rejects(migrateSchema(address, migrateOptions('wide')), (error) => {
    assert.ok(error instanceof UnfitRows, String(error));
    assert.match(error.message, /^cannot make index categories\.index\["parentId"\]: index row size/);
    return true;
  });
  assert.deepEqual(await invalidIndexes(database), []);
});

test('keeps a table that is declared no more, with its rows and indexes', async () => {
  await made('kept', [...tables, more]);
  await client.query(
    `INSERT INTO kept.more (id, rev, created_at, updated_at, doc) VALUES ('m', 1, 1, 1, '{}')`,
  );
  await planned('kept', tables, []);
  assert.equal((await client.query('SELECT FROM kept.more')).rows.length, 1);
  assert.ok(await isThere(`kept."more.unique[""name""]"`));
});

test('writes down each index with its fields as the client calls them', async () => {
  await made('noted');
  const { rows } = await client.query(
    `SELECT name, fields FROM noted.comity_indexes WHERE table_name = 'things' ORDER BY name COLLATE "C"`,
  );
  assert.deepEqual(rows.at(0), {
    name: 'things.index["categoryId","price"]',
    fields: ['categoryId', 'price'],
  });
  assert.deepEqual(rows.at(-1), { name: 'things.unique["sku"]', fields: ['sku'] });
});
