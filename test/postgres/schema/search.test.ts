/** `comity migrate` with search: texts of rows from before are made beside writers, and the index of words comes last. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Client } from 'pg';
import { createSearchIndex, indexedText } from '../../../src/model/search/search-index.ts';
import { withoutFrequent } from '../../../src/store/postgres/compile/filter.ts';
import { addressOf } from '../../../src/store/postgres/connection/address.ts';
import { createReadLane } from '../../../src/store/postgres/connection/lanes.ts';
import { SchemaOutdated } from '../../../src/store/postgres/postgres-failure.ts';
import { openPostgresStore } from '../../../src/store/postgres/postgres-store.ts';
import { migrateSchema, previewMigration } from '../../../src/store/postgres/schema/migrate.ts';
import { layoutsOf } from '../../../src/store/postgres/schema/schema-layout.ts';
import { startSearchSweep } from '../../../src/store/postgres/search-sweep.ts';
import { type Store, StoreUnavailable, type Table } from '../../../src/store/store.ts';
import { byId, categories, commitAll, idsOn, put } from '../../contract/fixture.ts';
import { until } from '../../harness/until.ts';
import { Wire } from '../connection/wire.ts';
import { makeSchema, migrateOptions, testDatabase } from './database.ts';

const database = await testDatabase();
const { address, url } = database;

const words = createSearchIndex(['name'], 'english');
const before: Table = { ...categories, unique: [], searched: true };
const after: Table = { ...before, words };
const rows = 1000;

async function filled(schema: string): Promise<void> {
  await makeSchema(database, schema, [before]);
  const store = await openPostgresStore({ url, schema, tables: [before] });
  const changes = Array.from({ length: rows }, (_, at) =>
    put(before, `n${String(at).padStart(4, '0')}`, { name: `Lamps ${at}` }, undefined, {
      search: `lamps ${at}\n`,
    }),
  );
  await commitAll(store, ...changes);
  await store.close();
}

function search(store: Store, term: string): Promise<readonly string[]> {
  return searchAll(store, [term]);
}

async function searchAll(store: Store, terms: readonly string[], limit = 10_000): Promise<readonly string[]> {
  const filter = { op: 'search', terms, mark: words.mark } as const;
  return idsOn(await store.plan({ table: 'categories', filter, sort: byId, limit }).page({ from: 'start' }));
}

test('a start with search that was not migrated names what is missing, and the migration makes every text', async () => {
  await filled('grown');
  await assert.rejects(openPostgresStore({ url, schema: 'grown', tables: [after] }), (error) => {
    assert.ok(error instanceof SchemaOutdated);
    assert.match(error.message, /search texts of categories/);
    return true;
  });
  const steps = await migrateSchema(address, migrateOptions('grown', { tables: [after] }));
  assert.deepEqual(
    steps.map(({ what }) => what),
    ['index categories.unsearched', 'search texts of categories', 'index categories.search'],
  );
  const store = await openPostgresStore({ url, schema: 'grown', tables: [after] });
  assert.equal((await search(store, ' =lamp ')).length, rows);
  assert.deepEqual(await search(store, ' 17 '), ['n0017']);
  await store.close();
});

test('a migration that is stopped before each step continues, also within the texts, and other languages are made anew', async () => {
  await filled('stopped');
  const options = migrateOptions('stopped', { tables: [after] });
  // The texts are a step until the index after them exists.
  for (const [at, left] of [3, 2, 2].entries()) {
    assert.equal((await previewMigration(address, options)).length, left);
    let begun = 0;
    const onStep = (): void => {
      begun += 1;
      if (begun === 2 && at < 2) throw new Error('stopped');
    };
    const run = migrateSchema(address, { ...options, onStep });
    if (at < 2) await assert.rejects(run, /stopped/);
    else await run;
    if (at > 0) continue;
    // As a killed process would leave them.
    const text = indexedText(words, { name: 'Lamps' });
    await database.client.query(`UPDATE stopped.categories SET search = $1 WHERE id < 'n0500'`, [text]);
  }
  const store = await openPostgresStore({ url, schema: 'stopped', tables: [after] });
  assert.equal((await search(store, ' =lamp ')).length, rows);
  await store.close();
  const german = createSearchIndex(['name'], 'german');
  const changed = migrateOptions('stopped', { tables: [{ ...after, words: german }] });
  const steps = await migrateSchema(address, changed);
  assert.ok(steps.some(({ what }) => what === 'index categories.search replaced by its new form'));
  const { rows: texts } = await database.client.query(
    'SELECT count(*)::int AS made FROM stopped.categories WHERE starts_with(search, $1)',
    [german.mark],
  );
  assert.equal(texts[0].made, rows);
});

test('texts are made beside a process that writes, which waits for no more than a batch and loses no change', async () => {
  await filled('busy');
  const old = await openPostgresStore({ url, schema: 'busy', tables: [before] });
  let writes = 0;
  let isOver = false;
  const writing = (async () => {
    while (!isOver) {
      const id = `n${String((writes * 37) % rows).padStart(4, '0')}`;
      const row = await old.read('categories', id);
      const name = `Changed ${writes}`;
      await commitAll(old, put(before, id, { name }, row?.rev, { search: `${name.toLowerCase()}\n` }));
      writes += 1;
    }
  })();
  await migrateSchema(address, migrateOptions('busy', { tables: [after] }));
  isOver = true;
  await writing;
  assert.ok(writes > 0);
  const { rows: kept } = await database.client.query(
    `SELECT count(*)::int AS changed FROM busy.categories WHERE doc LIKE '%Changed%'`,
  );
  assert.equal(kept[0].changed, Math.min(writes, rows));
  await old.close();
});

test('rows that a process of the earlier declaration writes after the migration are found soon', async () => {
  await filled('rolling');
  const old = await openPostgresStore({ url, schema: 'rolling', tables: [before] });
  await migrateSchema(address, migrateOptions('rolling', { tables: [after] }));
  const store = await openPostgresStore({ url, schema: 'rolling', tables: [after], searchSweepMs: 50 });
  const version = await store.version('categories');
  await commitAll(old, put(before, 'late', { name: 'Quartz' }, undefined, { search: 'quartz\n' }));
  await until(async () =>
    (await search(store, ' =quartz ').catch((): readonly string[] => [])).includes('late'),
  );
  await until(async () => (await store.version('categories')) !== version);
  await old.close();
  await store.close();
});

for (const server of ['answers', 'has fallen silent'] as const) {
  test(`a store closes while a row whose text is to be made is locked, where the server ${server}`, async (t) => {
    const schema = `locked ${server}`;
    await filled(schema);
    const old = await openPostgresStore({ url, schema, tables: [before] });
    await migrateSchema(address, migrateOptions(schema, { tables: [after] }));
    await commitAll(old, put(before, 'late', { name: 'Quartz' }, undefined, { search: 'quartz\n' }));
    await old.close();
    const holder = new Client({ connectionString: url });
    await holder.connect();
    await holder.query(`BEGIN; SELECT FROM "${schema}".categories WHERE id = 'late' FOR UPDATE`);
    const connectTimeoutMs = 1000;
    const read = createReadLane({ address, timeoutMs: 5000, connectTimeoutMs, onLost: ignore }, 1);
    const wire = await Wire.before(url, t);
    const layouts = layoutsOf([after], schema);
    const options = { schema, connectTimeoutMs, layouts, read, everyMs: 20, observe: ignore };
    const sweep = startSearchSweep({ ...options, address: addressOf(wire.url) });
    await wire.untilAsked(3);
    wire.lossy = server !== 'answers';
    await sweep.stop();
    await holder.end();
    await read.close();
  });
}

test('of two declarations alive at once only the recorded one makes texts, and a search is right or unavailable', async () => {
  const german: Table = { ...before, words: createSearchIndex(['name'], 'german') };
  await filled('two');
  await migrateSchema(address, migrateOptions('two', { tables: [german] }));
  const options = { url, schema: 'two', searchSweepMs: 20 };
  const old = await openPostgresStore({ ...options, tables: [german] });
  const germanSearch = async () => {
    const filter = { op: 'search', terms: [' 17 '], mark: german.words?.mark ?? '' } as const;
    const plan = old.plan({ table: 'categories', filter, sort: byId, limit: 10 });
    const { version, ...page } = await plan.page({ from: 'start' });
    const groupBy = { table: 'categories', filter, groupBy: [], measures: [{ of: 'rows' }] } as const;
    const bounds = { groupsMax: 10, bytesMax: 1000 };
    return {
      page: idsOn({ version, ...page }),
      count: await old.count('categories', filter),
      ...(await old.aggregate({ ...groupBy, ...bounds })),
    };
  };
  assert.partialDeepStrictEqual(await germanSearch(), {
    page: ['n0017'],
    count: 1,
    groups: [{ values: [1] }],
  });
  await migrateSchema(address, migrateOptions('two', { tables: [after] }));
  const store = await openPostgresStore({ ...options, tables: [after] });
  const written = async (): Promise<number> => {
    const {
      rows: [row],
    } = await database.client.query('SELECT count(DISTINCT xmin::text)::int AS written FROM two.categories');
    return row.written;
  };
  const settled = await written();
  let answers = 0;
  for (let at = 0; at < 20; at += 1) {
    const name = `Quartz ${at}`;
    const texts = german.words && indexedText(german.words, { name });
    await commitAll(old, put(german, `late ${at}`, { name }, undefined, { search: texts ?? '' }));
    await assert.rejects(germanSearch(), /search texts of categories are being made/);
    const found = await search(store, ' =quartz ').catch((error: unknown) => {
      assert.ok(error instanceof StoreUnavailable);
    });
    if (found === undefined) continue;
    assert.equal(found.length, at + 1);
    answers += 1;
  }
  await until(
    async () => (await search(store, ' =quartz ').catch((): readonly string[] => [])).length === 20,
  );
  // Each row that the other wrote was made again once, alone or with others, and no row of before was touched.
  assert.ok((await written()) <= settled + 20, `${answers} answers`);
  await old.close();
  await store.close();
});

test('the words that most documents have are known once the server has analysed them, and searches with them find the same', async (t) => {
  await makeSchema(database, 'common', [after]);
  const store = await openPostgresStore({ url, schema: 'common', tables: [after], searchSweepMs: 50 });
  const names = Array.from({ length: rows }, (_, at) => {
    const half = at < rows / 2 ? 'early' : 'late';
    return `Lamps ${at % 2 === 0 ? 'even' : 'odd'} ${half} ${at % 50}`;
  });
  const change = (name: string, at: number) =>
    put(after, `n${String(at).padStart(4, '0')}`, { name }, undefined, {
      search: indexedText(words, { name }),
    });
  await commitAll(store, ...names.map(change));
  const read = createReadLane({ address, timeoutMs: 5000, connectTimeoutMs: 5000, onLost: ignore }, 1);
  const layouts = layoutsOf([after], 'common');
  const options = { address, schema: 'common', connectTimeoutMs: 5000, layouts, read, everyMs: 20 };
  const sweep = startSearchSweep({ ...options, observe: ignore });
  t.after(async () => {
    await sweep.stop();
    await read.close();
    await store.close();
  });
  assert.equal(sweep.frequentWords('categories').size, 0);
  await database.client.query('ANALYZE common.categories');
  await until(() => sweep.frequentWords('categories').has('even'));
  const frequent = sweep.frequentWords('categories');
  assert.deepEqual(
    ['lamps', 'even', 'odd', '7'].map((word) => frequent.has(word)),
    [true, true, true, false],
  );
  for (const [term, found] of [
    [' lamps ', rows],
    [' even ', rows / 2],
    [' 7 ', rows / 50],
  ] as const)
    assert.equal((await search(store, term)).length, found);
  assert.equal(withoutFrequent("'lamps' & '7' & 'even' & 'ev':*", frequent), "'7' & 'ev':*");
  assert.equal(withoutFrequent("'lamps' & 'even'", frequent), '');
  assert.equal((await searchAll(store, [' lamps ', ' 7 '])).length, rows / 50);
  assert.equal((await searchAll(store, [' odd ', ' 8 '])).length, 0);
  // The first rows fill the page, or have none of it.
  assert.deepEqual(await searchAll(store, [' lamps ', ' even '], 2), ['n0000', 'n0002']);
  assert.deepEqual(await searchAll(store, [' lamps ', ' late '], 2), ['n0500', 'n0501']);
});

function ignore(): void {
  // What comes first fails the test by itself.
}
