/** Restoring into PostgreSQL: what is refused, and that whatever ends it early leaves the schema as it was. */
import assert from 'node:assert/strict';
import { copyFileSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { type TestContext, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type pg from 'pg';
import { addressOf } from '../../../../src/store/postgres/connection/address.ts';
import { openSchema } from '../../../../src/store/postgres/schema/open-schema.ts';
import type { Store, Table } from '../../../../src/store/store.ts';
import { categories, commitAll, event, fields, put, tables, things } from '../../../contract/fixture.ts';
import {
  backupOf,
  freshFolder,
  freshPlace,
  holdLocks,
  indexesOf,
  isWaiting,
  type Place,
  restoreInto,
  rowCounts,
} from './fixture.ts';

type Looked = Place & { readonly look: pg.Client };

async function fill(store: Store): Promise<void> {
  for (let at = 0; at < 3000; at += 1)
    void store.commit({
      changes: [put(things, `t${at}`, { name: `n${at}`, sku: `${at % 7 === 0 ? `s${at}` : `x${at}`}` })],
      events: [],
    });
  await commitAll(store, put(categories, 'c', {}), event('evt_last'));
}

/** Takes the lock that every commit takes. */
const lastRevision = 'SELECT FROM moved.comity_counters WHERE n = 0 FOR UPDATE';

const filled = await backupOf(fill);

/** A schema that is made and empty, with what it looks like. */
async function emptyPlace(context: TestContext, declared: readonly Table[] = tables) {
  const place = await freshPlace(context);
  await openSchema(addressOf(place.url), { ...place, tables: declared, observe: () => undefined });
  const before = await indexesOf(place);
  return { place, unchanged: () => staysEmpty(place, before) };
}

async function staysEmpty(place: Looked, indexes: unknown): Promise<void> {
  const counts = Object.values(await rowCounts(place));
  assert.ok(counts.length >= 3 && counts.every((rows) => rows === 0), JSON.stringify(counts));
  assert.deepEqual(await indexesOf(place), indexes);
  const { rows } = await place.look.query('SELECT DISTINCT rev::int FROM moved.comity_counters');
  assert.deepEqual(rows, [{ rev: 0 }]);
  assert.ok(
    (await openSchema(addressOf(place.url), { ...place, tables, observe: () => undefined })).numbers.size >=
      3,
  );
}

test('refuses a schema that holds rows, names the tables, and changes nothing', async (context) => {
  const place = await freshPlace(context);
  await restoreInto(place, filled);
  const before = await rowCounts(place);
  await assert.rejects(restoreInto(place, filled), {
    name: 'NotEmpty',
    message: /^the schema "moved" of [^@]* holds rows already \(things, categories, events\); [^\n]*$/,
  });
  assert.deepEqual(await rowCounts(place), before);
});

test('refuses a file that is missing, none, of another program, newer, or has a log beside it', async (context) => {
  const { place, unchanged } = await emptyPlace(context);
  const folder = freshFolder();
  const at = (name: string): string => join(folder, name);
  const refused = async (name: string, why: RegExp): Promise<void> => {
    await assert.rejects(restoreInto(place, at(name)), { name: 'UnfitBackup', message: why });
  };
  await refused('missing.db', /^cannot read .*missing\.db: ENOENT/);
  writeFileSync(at('empty.db'), '');
  await refused('empty.db', /empty\.db is not a file that "comity backup" wrote$/);
  writeFileSync(at('text.db'), 'SQLite format 4 is what I would like'.repeat(100));
  await refused('text.db', /is not a file that "comity backup" wrote$/);
  await refused('.', /^cannot read .*EISDIR/);
  new DatabaseSync(at('other.db')).exec('CREATE TABLE t (a); PRAGMA user_version = 1');
  await refused('other.db', /is a database of another program$/);
  new DatabaseSync(at('bare.db')).exec('CREATE TABLE t (a); DROP TABLE t');
  await refused('bare.db', /bare\.db holds no store$/);
  copyFileSync(filled, at('newer.db'));
  new DatabaseSync(at('newer.db')).exec('PRAGMA journal_mode = DELETE; PRAGMA user_version = 4711');
  await refused('newer.db', /written by a newer version of Comity \(schema 4711/);
  copyFileSync(filled, at('served.db'));
  writeFileSync(at('served.db-wal'), 'x');
  await refused(
    'served.db',
    /is incomplete without its write-ahead log \(.*served\.db-wal\).*"comity backup" and restore that$/,
  );
  await unchanged();
});

test('refuses a file that is cut short or damaged', async (context) => {
  const { place, unchanged } = await emptyPlace(context);
  const folder = freshFolder();
  const [short, holed, lost] = ['short.db', 'holed.db', 'lost.db'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  copyFileSync(filled, short);
  truncateSync(short, 300_000);
  await assert.rejects(restoreInto(place, short), { name: 'UnfitBackup', message: /short\.db is damaged: / });
  const bytes = readFileSync(filled);
  bytes.fill(0xaa, 100_000, 500_000);
  writeFileSync(holed, bytes);
  await assert.rejects(restoreInto(place, holed), { name: 'UnfitBackup', message: /holed\.db is damaged: / });
  copyFileSync(filled, lost);
  new DatabaseSync(lost).exec('PRAGMA journal_mode = DELETE; UPDATE comity_counters SET rev = 7 WHERE n = 0');
  await assert.rejects(restoreInto(place, lost), {
    name: 'UnfitBackup',
    message: /has a revision above that of the file$/,
  });
  await unchanged();
});

test('refuses rows of tables that are not declared, with their number, before it looks at the database', async () => {
  const nowhere = { url: 'postgres://nobody@127.0.0.1:1/none', schema: 'moved', connectTimeoutMs: 100 };
  await assert.rejects(restoreInto(nowhere, filled, { declared: [categories] }), {
    name: 'UnfitBackup',
    message: /holds rows of tables that the configuration does not declare: "things" \(3000\)$/,
  });
});

test('leaves out an undeclared table without rows, and search text that is no longer wanted', async (context) => {
  const place = await freshPlace(context);
  const file = await backupOf(async (store) => {
    await commitAll(store, put(categories, 'c', { name: 'C' }, undefined, { search: 'c' }));
  });
  await restoreInto(place, file, { declared: [{ ...categories, searched: true }] });
  const { rows } = await place.look.query('SELECT id, search FROM moved.categories');
  assert.deepEqual(rows, [{ id: 'c', search: null }]);
  const unsearched = { ...place, schema: 'unsearched' };
  await restoreInto(unsearched, filled, { declared: [{ ...things, searched: false }, categories] });
  assert.deepEqual(await rowCounts(unsearched), { things: 3000, categories: 1, events: 1 });
});

test('names the row that PostgreSQL cannot hold, and takes text that only looks like it', async (context) => {
  const { place, unchanged } = await emptyPlace(context);
  for (const [made, body] of [
    [{}, { name: 'a\0b' }],
    [{ search: 'a\0b' }, {}],
    [{}, { name: '\\\0' }],
  ] as const) {
    const file = await backupOf(
      async (store) => void (await commitAll(store, put(things, 'nul', body, undefined, made))),
    );
    await assert.rejects(restoreInto(place, file), {
      name: 'UnfitBackup',
      message: /"nul" of things contains U\+0000; change it and back up again$/,
    });
  }
  await unchanged();
  const texts = await backupOf(async (store) => {
    await commitAll(store, put(things, 'text', { name: '\\u0000', extra: ['\\\\u0000', 'u0000'] }));
  });
  assert.equal((await restoreInto(place, texts)).rows, 1);
});

test('names the value that a field declared unique since holds twice', async (context) => {
  const declared = [{ ...things, unique: [[fields.sku], [fields.name]] }, categories];
  const { place, unchanged } = await emptyPlace(context, declared);
  const file = await backupOf(async (store) => {
    await commitAll(store, put(things, 'a', { name: 'same' }), put(things, 'b', { name: 'same' }));
  });
  await assert.rejects(restoreInto(place, file, { declared }), {
    name: 'UnfitBackup',
    message: /does not fit the index things\.unique\["name"\]: .*\(same\)/,
  });
  await unchanged();
});

test('names the row whose value is too long for an index', async (context) => {
  const { place, unchanged } = await emptyPlace(context);
  let noise = '';
  for (let at = 0; noise.length < 20_000; at += 1) noise += Math.sin(at).toString(36);
  for (const name of [noise.slice(0, 5000), noise]) {
    const file = await backupOf(async (store) => {
      await fill(store);
      await commitAll(store, put(things, 'the long one', { name }));
    });
    await assert.rejects(restoreInto(place, file), {
      name: 'UnfitBackup',
      message: /does not fit the index things\..*; the longest value is in row "the long one" of things$/,
    });
  }
  await unchanged();
});

test('refuses a schema that another process migrates or whose lock a writer keeps', async (context) => {
  const { place, unchanged } = await emptyPlace(context);
  const holder = await holdLocks(context, place, lastRevision);
  const waiting = restoreInto(place, filled, { lockTimeoutMs: 1000 });
  waiting.catch(() => undefined);
  while (!(await isWaiting(place.look, 'comity restore'))) await nextTurn();
  await assert.rejects(restoreInto(place, filled), {
    name: 'StoreInUse',
    message: /^another process migrates the schema "moved" of [^@]* or restores into it; wait until it ends$/,
  });
  await assert.rejects(waiting, { name: 'StoreInUse', message: /is in use; stop every server on it$/ });
  await holder.query('ROLLBACK');
  await unchanged();
  assert.equal((await restoreInto(place, filled)).rows, 3002);
});

test('is cancelled at once while rows go in, while an index is made and while it waits', async (context) => {
  const { place, unchanged } = await emptyPlace(context);
  for (const stage of ['rows', 'indexes'] as const) {
    const interrupt = new AbortController();
    const reason = new Error(`interrupted at the ${stage}`);
    const onProgress = (what: string): void => {
      if (what === stage) interrupt.abort(reason);
    };
    await assert.rejects(restoreInto(place, filled, { onProgress, signal: interrupt.signal }), reason);
    await unchanged();
  }
  const holder = await holdLocks(context, place, lastRevision);
  const interrupt = new AbortController();
  const held = restoreInto(place, filled, { signal: interrupt.signal });
  held.catch(() => undefined);
  while (!(await isWaiting(place.look, 'comity restore'))) await nextTurn();
  interrupt.abort(new Error('interrupted'));
  await assert.rejects(held, /^Error: interrupted$/);
  await holder.query('ROLLBACK');
  await unchanged();
});

test('leaves nothing when its connection is cut between the rows and the indexes', async (context) => {
  const { place, unchanged } = await emptyPlace(context);
  let cut: Promise<unknown> | undefined;
  const onProgress = (): void => {
    cut ??= place.look.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'comity restore' AND datname = current_database()`,
    );
  };
  await assert.rejects(restoreInto(place, filled, { onProgress }), { name: 'DatabaseFailed' });
  await cut;
  await unchanged();
});
