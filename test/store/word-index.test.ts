/** The index of words in SQLite: built beside requests, continued after an end at any moment, and without deleted text. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { createSearchIndex, indexedText, type SearchIndex } from '../../src/model/search/search-index.ts';
import { type Store, StoreUnavailable, type Table } from '../../src/store/store.ts';
import { byId, commitAll, idsOn, notes, put, remove } from '../contract/fixture.ts';
import { roundsOf } from '../harness/rounds.ts';
import { until } from '../harness/until.ts';
import { folderFor } from './folder.ts';

const byName = createSearchIndex(['name'], undefined);
const inEnglish = createSearchIndex(['name'], 'english');
const rows = 3000;

function searched(words: SearchIndex | undefined): Table {
  return words === undefined ? { ...notes, searched: true } : { ...notes, searched: true, words };
}

async function fill(store: Store, table: Table, count = rows): Promise<void> {
  for (let from = 0; from < count; from += 500) {
    const changes = Array.from({ length: 500 }, (_, at) => {
      const name = `lamps number${from + at}`;
      const search = table.words === undefined ? name : indexedText(table.words, { name });
      return put(table, `n${String(from + at).padStart(5, '0')}`, { name }, undefined, { search });
    });
    await commitAll(store, ...changes);
  }
}

function search(store: Store, { mark }: SearchIndex, term: string): Promise<readonly string[]> {
  const filter = { op: 'search', terms: [term], mark } as const;
  const plan = store.plan({ table: 'notes', filter, sort: byId, limit: 10_000 });
  return Promise.resolve(plan.page({ from: 'start' })).then(idsOn);
}

/** Waits until the index is complete, and requires every refusal before that to be the right one. */
async function searchOnceBuilt(store: Store, words: SearchIndex, term: string): Promise<readonly string[]> {
  let found: readonly string[] | undefined;
  await until(async () => {
    try {
      found = await search(store, words, term);
      return true;
    } catch (error) {
      assert.ok(error instanceof StoreUnavailable, String(error));
      assert.match(error.message, /search index of notes is being built/);
      return false;
    }
  });
  return found ?? [];
}

test('a declaration that gains search finds the rows from before, and takes writes meanwhile', async (context) => {
  const folder = folderFor(context);
  const first = await folder.open({ tables: [searched(undefined)] });
  await fill(first, searched(undefined));
  await first.close();
  const second = await folder.open({ tables: [searched(byName)] });
  const early = await search(second, byName, ' lamps ').catch((error: unknown) => error);
  assert.ok(early instanceof StoreUnavailable || (Array.isArray(early) && early.length === rows));
  const name = 'lamps new';
  await commitAll(
    second,
    put(searched(byName), 'z', { name }, undefined, { search: indexedText(byName, { name }) }),
  );
  assert.equal((await searchOnceBuilt(second, byName, ' lamps ')).length, rows + 1);
  assert.deepEqual(await search(second, byName, ' number7 '), ['n00007']);
});

test('another language and other fields are built anew, and no longer declared search is dropped', async (context) => {
  const folder = folderFor(context);
  const first = await folder.open({ tables: [searched(byName)] });
  await fill(first, searched(byName));
  assert.equal((await search(first, byName, ' lamps ')).length, rows);
  await first.close();
  const second = await folder.open({ tables: [searched(inEnglish)] });
  assert.equal((await searchOnceBuilt(second, inEnglish, ' =lamp ')).length, rows);
  await second.close();
  const third = await folder.open({ tables: [{ ...notes, searched: true }] });
  await third.close();
  const database = new DatabaseSync(join(folder.path, 'comity.db'));
  const left = database.prepare(`SELECT name FROM sqlite_schema WHERE name LIKE 'comity_search%'`).all();
  database.close();
  assert.deepEqual(left, []);
});

test('a building that ends after any number of rows continues at the next start', async (context) => {
  const folder = folderFor(context);
  const first = await folder.open({ tables: [searched(undefined)] });
  await fill(first, searched(undefined));
  await first.close();
  for (let start = 0; start < 3; start += 1) {
    // Closes at once: the writer has made a part of the texts.
    await (await folder.open({ tables: [searched(byName)] })).close();
  }
  const last = await folder.open({ tables: [searched(byName)] });
  assert.equal((await searchOnceBuilt(last, byName, ' lamps ')).length, rows);
});

const kills = roundsOf(2, 10);
const child = new URL('./word-index-child.ts', import.meta.url).pathname;

test(`a building survives ${kills} kills at random moments, and finds every row in the end`, async (context) => {
  const folder = folderFor(context);
  const first = await folder.open({ tables: [searched(undefined)] });
  await fill(first, searched(undefined));
  await first.close();
  for (let kill = 0; kill < kills; kill += 1) {
    const tables = JSON.stringify([searched(byName)]);
    const running = spawn(process.execPath, [child, folder.path, tables], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const ended = once(running, 'exit');
    await once(running.stdout, 'data');
    await new Promise((resolve) => setTimeout(resolve, Math.random() * 60));
    running.kill('SIGKILL');
    await ended;
  }
  const last = await folder.open({ tables: [searched(byName)] });
  assert.equal((await searchOnceBuilt(last, byName, ' lamps ')).length, rows);
  await last.close();
  const database = new DatabaseSync(join(folder.path, 'comity.db'));
  database.exec(
    `INSERT INTO "comity_search:notes:words"("comity_search:notes:words") VALUES ('integrity-check')`,
  );
  database.close();
});

test('rows that have their text get an index where there is none, as in a copy from PostgreSQL', async (context) => {
  const folder = folderFor(context);
  const first = await folder.open({ tables: [searched(byName)] });
  await fill(first, searched(byName), 500);
  await first.close();
  const database = new DatabaseSync(join(folder.path, 'comity.db'));
  for (const on of ['insert', 'update', 'delete'])
    database.exec(`DROP TRIGGER "comity_search:notes:words:${on}"`);
  database.exec('DROP TABLE "comity_search:notes:words"');
  database.close();
  const second = await folder.open({ tables: [searched(byName)] });
  assert.equal((await search(second, byName, ' lamps ')).length, 500);
});

test('an index from before its pages were short writes short ones from the next start on', async (context) => {
  const folder = folderFor(context);
  const first = await folder.open({ tables: [searched(byName)] });
  await fill(first, searched(byName), 500);
  await first.close();
  const index = '"comity_search:notes:words"';
  const read = (work: (database: DatabaseSync) => unknown): unknown => {
    const database = new DatabaseSync(join(folder.path, 'comity.db'));
    try {
      return work(database);
    } finally {
      database.close();
    }
  };
  const pageOctets = (): unknown =>
    read(
      (database) =>
        database.prepare(`SELECT v FROM "comity_search:notes:words_config" WHERE k = 'pgsz'`).get()?.v,
    );
  const written = pageOctets();
  read((database) => database.exec(`INSERT INTO ${index}(${index}, rank) VALUES ('pgsz', 4050)`));
  const second = await folder.open({ tables: [searched(byName)] });
  assert.equal((await search(second, byName, ' lamps ')).length, 500);
  const name = 'lamps later';
  const text = indexedText(byName, { name });
  await commitAll(second, put(searched(byName), 'z', { name }, undefined, { search: text }));
  assert.deepEqual(await search(second, byName, ' later '), ['z']);
  await second.close();
  assert.equal(pageOctets(), written);
  assert.notEqual(written, 4050);
  read((database) => database.exec(`INSERT INTO ${index}(${index}) VALUES ('integrity-check')`));
});

test('words of deleted and replaced text are in no file once the log was truncated', async (context) => {
  const folder = folderFor(context);
  const table = searched(byName);
  const store = await folder.open({ tables: [table] });
  const marker = 'erased5f1c09';
  const text = (name: string): { search: string } => ({ search: indexedText(byName, { name }) });
  const revs: number[] = [];
  for (let at = 0; at < 200; at += 1) {
    const name = `${marker}x${at} ${marker}`;
    revs.push(await commitAll(store, put(table, `m${at}`, { name }, undefined, text(name))));
  }
  assert.equal((await search(store, byName, ` ${marker} `)).length, 200);
  for (const [at, rev] of revs.entries()) {
    const change =
      at % 2 === 0 ? remove(table, `m${at}`, rev) : put(table, `m${at}`, { name: 'kept' }, rev, text('kept'));
    await commitAll(store, change);
  }
  await store.close();
  const holding = readdirSync(folder.path).filter((name) =>
    readFileSync(join(folder.path, name)).includes(marker),
  );
  assert.deepEqual(holding, []);
});

test('the index agrees with the rows by the own check of FTS5', async (context) => {
  const folder = folderFor(context);
  const table = searched(inEnglish);
  const store = await folder.open({ tables: [table] });
  await fill(store, table, 500);
  await store.purge('notes', 1_800_000_000_000, 100);
  await store.close();
  const database = new DatabaseSync(join(folder.path, 'comity.db'));
  database.exec(
    `INSERT INTO "comity_search:notes:words"("comity_search:notes:words") VALUES ('integrity-check')`,
  );
  assert.equal(database.prepare('PRAGMA integrity_check').get()?.integrity_check, 'ok');
  database.close();
});
