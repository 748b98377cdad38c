/** Moving a whole store: embedded to PostgreSQL and back, with everything that clients hold on to. */
import assert from 'node:assert/strict';
import { readdirSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import pg from 'pg';
import { always } from '../../../../src/model/filter.ts';
import { readFile } from '../../../../src/store/backup-file/read-file.ts';
import { addressOf } from '../../../../src/store/postgres/connection/address.ts';
import { findStore, startBackup } from '../../../../src/store/postgres/postgres-backup.ts';
import { openSchema } from '../../../../src/store/postgres/schema/open-schema.ts';
import { startRestore } from '../../../../src/store/sqlite/sqlite-backup.ts';
import { openSqliteStore } from '../../../../src/store/sqlite/sqlite-store.ts';
import { type Store, StoreUnavailable } from '../../../../src/store/store.ts';
import {
  categories,
  commitAll,
  event,
  put,
  remove,
  rowAt,
  tables,
  things,
} from '../../../contract/fixture.ts';
import {
  backupOf,
  contentOf,
  freshFolder,
  freshPlace,
  holdLocks,
  indexesOf,
  isWaiting,
  restoreInto,
  rowCounts,
  sameContent,
} from './fixture.ts';

/** Texts that array literals, COPY, LIKE, JSON or a language's order treat in a way of their own. */
const awkward: readonly string[] = [
  'NULL',
  'null',
  '\\N',
  '{}',
  '{"a",NULL}',
  'a"b\\c',
  '\\',
  '\\\\u0000 is only text',
  "it's; DROP TABLE x; --",
  'tab\there, line\nthere, \r and \b\f',
  ' spaces ',
  'é e\u0301 ß İ ı',
  '😀👩‍👩‍👧\u{10ffff}',
  '\uffff\ue000',
  '\u2028\u2029\ufeff',
  '%_$1',
];

async function fillAwkwardly(store: Store): Promise<void> {
  for (const [at, text] of awkward.entries()) {
    const made = { owner: text, search: text, createdAt: at, updatedAt: 1_700_000_000_000 + at };
    const body = {
      name: text,
      sku: `s${at}`,
      price: [0.1 + 0.2, -0, 1e21, 5e-324, 2 ** 53][at % 5],
      extra: [text],
    };
    await commitAll(store, put(things, `awkward ${text}`, body, undefined, made), {
      ...event(`evt ${text}`),
      owner: text,
    });
  }
  await commitAll(store, put(things, 'empty', { name: '' }, undefined, { owner: '', search: '' }));
  await commitAll(store, put(things, 'none', {}, undefined, { owner: null, search: null }));
  await commitAll(store, put(things, 'long', { name: 'x', extra: '😀"\\'.repeat(300_000) }));
  const gone = await commitAll(store, put(things, 'gone', { sku: 'again' }));
  await commitAll(store, put(things, 'gone', { sku: 'again' }, gone, { deletedAt: 1_700_000_000_001 }));
  await commitAll(store, put(things, 'now', { sku: 'again' }));
  await commitAll(
    store,
    put(categories, 'c', { name: 'A' }),
    put(categories, 'd', { name: 'B', parentId: 'c' }),
  );
  await commitAll(store, put(things, 'in c', { categoryId: 'c' }));
  // The last revision is of a row that is no more: the counter alone remembers it.
  const brief = await commitAll(store, put(things, 'brief', {}), event('evt_brief'));
  await commitAll(store, remove(things, 'brief', brief));
}

async function fillManyRows(store: Store, rows: number): Promise<void> {
  const commits: Promise<unknown>[] = [];
  for (let at = 0; at < rows; at += 1) {
    const body = { name: `${at % 97} é`, price: (at * 7919) % 1000, sku: `many ${at}`, live: at % 2 === 0 };
    commits.push(store.commit({ changes: [put(things, `m${at}`, body)], events: [event(`evt_m${at}`)] }));
    if (commits.length === 500) await Promise.all(commits.splice(0));
  }
  await Promise.all(commits);
}

test('moves every byte of 20,000 awkward rows to PostgreSQL and back', async (context) => {
  const place = await freshPlace(context);
  const file = await backupOf(async (store) => {
    await fillAwkwardly(store);
    await fillManyRows(store, 20_000);
  });
  const told: (readonly [string, number, number])[] = [];
  const restored = await restoreInto(place, file, { onProgress: (...progress) => told.push(progress) });
  assert.deepEqual(restored, {
    rows: 2 * 20_000 + 2 * awkward.length + 9,
    tables: 3,
    rev: contentOf(file).rev,
  });
  assert.deepEqual(told.filter(([what]) => what === 'rows').at(-1), ['rows', restored.rows, restored.rows]);
  const [last, made, of] = told.at(-1) ?? [];
  assert.ok(last === 'indexes' && made === of && Number(of) > 5);

  const again = join(freshFolder(), 'again.db');
  const progress: (readonly [number, number])[] = [];
  await startBackup(place, again, (done, total) => progress.push([done, total])).done;
  assert.deepEqual(progress.at(-1), [restored.rows, restored.rows]);
  assert.ok(progress.length > 10 && progress.every(([done], at) => done >= (progress[at - 1]?.[0] ?? 0)));
  sameContent(again, file);
  assert.equal(statSync(again).mode & 0o777, 0o600);

  const folder = join(freshFolder(), 'data');
  await startRestore(folder, again, () => undefined).done;
  const store = await openSqliteStore({ folder, tables });
  context.after(() => store.close());
  assert.equal(await store.count('things', always), 20_000 + awkward.length + 5);
  assert.equal((await rowAt(store, things, `awkward ${awkward[12]}`))?.owner, awkward[12]);
  const before = readFile(file);
  assert.equal(
    await store.version('things'),
    before.tables.find(({ name }) => name === 'things')?.rev.toString(36),
  );
  // A revision is never given again, not even that of a row that is no more.
  assert.ok((await commitAll(store, put(things, 'next', {}))) > before.rev);
  before.close();
});

test('leaves the schema as a start makes it, whichever came first', async (context) => {
  const place = await freshPlace(context);
  const options = { ...place, tables, observe: () => undefined };
  await openSchema(addressOf(place.url), { ...options, schema: 'plain' });
  const plain = JSON.stringify(await indexesOf({ ...place, schema: 'plain' })).replaceAll('plain', 'moved');
  await restoreInto(place, await backupOf(fillAwkwardly));
  assert.deepEqual(await indexesOf(place), JSON.parse(plain));
  assert.ok((await openSchema(addressOf(place.url), options)).numbers.has('things'));
  await restoreInto({ ...place, schema: 'plain' }, await backupOf(fillAwkwardly));
  assert.deepEqual(await rowCounts({ ...place, schema: 'plain' }), await rowCounts(place));
});

test('copies a unit whole or not at all while others write', async (context) => {
  const place = await freshPlace(context);
  await restoreInto(place, await backupOf((store) => fillManyRows(store, 3000)));
  const writer = new pg.Client({ connectionString: place.url });
  await writer.connect();
  let writing = true;
  const writes = (async () => {
    for (let at = 0; writing; at += 1) {
      const row = [`w${at}`, '{}'];
      await writer.query('BEGIN; UPDATE moved.comity_counters SET rev = rev + 1 WHERE n = 0');
      await writer.query(`INSERT INTO moved.things (id, rev, created_at, updated_at, doc)
        SELECT '${row[0]}', rev, 1, 1, '{}' FROM moved.comity_counters WHERE n = 0`);
      await writer.query(`INSERT INTO moved.events (id, rev, created_at, updated_at, type, collection, doc)
        SELECT '${row[0]}', rev, 1, 1, 't', 'things', '{}' FROM moved.comity_counters WHERE n = 0`);
      await writer.query('COMMIT');
    }
  })();
  const files = ['a.db', 'b.db', 'c.db'].map((name) => join(freshFolder(), name));
  for (const file of files) await startBackup(place, file, () => undefined).done;
  writing = false;
  await writes;
  await writer.end();
  let newest = 0;
  for (const file of files) {
    const content = contentOf(file) as {
      rev: number;
      things: { rows: unknown[][] };
      events: { rows: unknown[][] };
    };
    assert.deepEqual(
      content.things.rows.map(([id]) => String(id).replace(/^m/, 'evt_m')).sort(),
      content.events.rows.map(([id]) => id).sort(),
    );
    assert.equal(Math.max(...content.things.rows.map(([, rev]) => Number(rev))), content.rev);
    assert.ok(content.rev > newest);
    newest = content.rev;
  }
});

test('copies documents of a megabyte, few of them at a time', async (context) => {
  const place = await freshPlace(context);
  const file = await backupOf(async (store) => {
    for (let at = 0; at < 12; at += 1)
      await commitAll(store, put(things, `big ${at}`, { extra: 'é'.repeat(500_000) }));
    await fillManyRows(store, 100);
  });
  await restoreInto(place, file);
  const again = join(freshFolder(), 'again.db');
  let reports = 0;
  const { done } = startBackup(place, again, () => {
    reports += 1;
  });
  await done;
  sameContent(again, file);
  // Of things alone four megabytes a batch: three of them, where rows alone would have made one.
  assert.ok(reports >= 4);
});

test('copies an empty store, and tables that are no longer declared', async (context) => {
  const place = await freshPlace(context);
  await restoreInto(place, await backupOf(fillAwkwardly));
  const fewer = [categories];
  await openSchema(addressOf(place.url), { ...place, tables: fewer, observe: () => undefined });
  const file = join(freshFolder(), 'all.db');
  await startBackup(place, file, () => undefined).done;
  assert.ok(Object.hasOwn(contentOf(file), 'things'));
  await openSchema(addressOf(place.url), { ...place, schema: 'bare', tables, observe: () => undefined });
  const empty = join(freshFolder(), 'empty.db');
  await startBackup({ ...place, schema: 'bare' }, empty, () => undefined).done;
  assert.equal(contentOf(empty).rev, 0);
  assert.deepEqual(await restoreInto({ ...place, schema: 'bare' }, empty), { rows: 0, tables: 0, rev: 0 });
});

test('leaves nothing of a backup that fails, is stopped or loses its connection', async (context) => {
  const place = await freshPlace(context);
  await restoreInto(place, await backupOf((store) => fillManyRows(store, 5000)));
  const to = join(freshFolder(), 'copy.db');
  const left = (): readonly string[] => readdirSync(dirname(to));

  await assert.rejects(
    startBackup(place, join(to, 'no', 'folder.db'), () => undefined).done,
    StoreUnavailable,
  );
  await assert.rejects(
    startBackup({ ...place, schema: 'nowhere' }, to, () => undefined).done,
    StoreUnavailable,
  );
  assert.deepEqual(left(), []);

  const stopped = startBackup(place, to, () => void stopped.stop());
  await assert.rejects(stopped.done, /it was stopped/);
  assert.deepEqual(left(), []);

  // Held up before its first row, so that it is cut in the middle and not after its end.
  await holdLocks(context, place, 'LOCK TABLE moved.things');
  const { done } = startBackup(place, to, () => undefined);
  done.catch(() => undefined);
  while (!(await isWaiting(place.look, 'comity backup'))) await nextTurn();
  await place.look.query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'comity backup'`,
  );
  await assert.rejects(done, StoreUnavailable);
  assert.deepEqual(left(), []);
});

test('says so where there is no store, or a newer one', async (context) => {
  const place = await freshPlace(context);
  await assert.rejects(findStore(place), /^NoStore: there is no store in the schema "moved" of [^@]*$/);
  await openSchema(addressOf(place.url), { ...place, tables, observe: () => undefined });
  await findStore(place);
  await place.look.query('UPDATE moved.comity_migrations SET number = 999 WHERE number = 1');
  await assert.rejects(findStore(place), { name: 'SchemaTooNew' });
});
