/** `migrateSchema` among others: one at a time, killed and begun again, beside readers and writers, and never through a pooler. */
import assert from 'node:assert/strict';
import { connect, createServer } from 'node:net';
import { test } from 'node:test';
import pg from 'pg';
import { addressOf } from '../../../../src/store/postgres/connection/address.ts';
import {
  DatabaseFailed,
  SchemaBusy,
  SchemaTooNew,
  UnfitServer,
} from '../../../../src/store/postgres/postgres-failure.ts';
import {
  migrateSchema,
  previewMigration,
  watchBuilds,
} from '../../../../src/store/postgres/schema/migrate.ts';
import { openSchema } from '../../../../src/store/postgres/schema/open-schema.ts';
import { channelOf } from '../../../../src/store/postgres/schema/schema-layout.ts';
import { schemaNumber } from '../../../../src/store/postgres/schema/schema-plan.ts';
import { lockSchema, openSession } from '../../../../src/store/postgres/schema/session.ts';
import type { Table } from '../../../../src/store/store.ts';
import { categories, things } from '../../../contract/fixture.ts';
import { type Listening, listen } from '../../../harness/listening.ts';
import { until } from '../../../harness/until.ts';
import {
  makeSchema,
  migrateOptions,
  openOptions,
  testDatabase,
  withCategories,
} from '../../../postgres/schema/database.ts';

const database = await testDatabase();
const { address, client, url } = database;

/** The declaration before it grew: no index, no unique field, no search. */
const lean: readonly Table[] = [
  { ...things, indexes: [], unique: [], references: [], searched: false },
  { ...categories, indexes: [], unique: [], references: [] },
];

async function connected(): Promise<pg.Client> {
  const other = new pg.Client({ connectionString: url });
  await other.connect();
  return other;
}

test('ends where it should when it is stopped before each step in turn', async () => {
  await makeSchema(database, 'stopped', lean);
  const options = migrateOptions('stopped');
  const { length } = await previewMigration(address, options);
  assert.equal(length, 10);
  for (let left = length; left > 0; left -= 1) {
    let begun = 0;
    const onStep = (): void => {
      begun += 1;
      if (begun === 2) throw new Error('stopped');
    };
    const run = migrateSchema(address, { ...options, onStep });
    if (left > 1) await assert.rejects(run, /stopped/);
    else assert.equal((await run).length, 1);
    assert.equal((await previewMigration(address, options)).length, left - 1);
  }
  await openSchema(address, openOptions('stopped'));
});

test('lets one of three migrations do each step while the others wait, and tells them that they do', async () => {
  await makeSchema(database, 'crowded', lean);
  let waiting = 0;
  const onWaiting = (): void => {
    waiting += 1;
  };
  // Held until all three wait, since one may otherwise be over before another begins.
  const holder = await openSession(address, 'test', 5000);
  await lockSchema(holder, 'crowded', 0, () => assert.fail('nobody else has it'));
  const running = [1, 2, 3].map(() => migrateSchema(address, migrateOptions('crowded', { onWaiting })));
  await until(() => waiting === 3, 'all three wait');
  await holder.end();
  const runs = await Promise.all(running);
  assert.deepEqual(runs.map((steps) => steps.length).sort(), [0, 0, 10]);
});

test('gives up on another migration that does not end', async () => {
  const holder = await openSession(address, 'test', 5000);
  await lockSchema(holder, 'taken', 0, () => assert.fail('nobody else has it'));
  await assert.rejects(migrateSchema(address, migrateOptions('taken', { waitMs: 200 })), (error) => {
    assert.ok(error instanceof SchemaBusy, String(error));
    return true;
  });
  // A lock of another schema is nobody's concern here.
  assert.equal((await migrateSchema(address, migrateOptions('free'))).length, 4 + schemaNumber);
  await holder.end();
});

test('stands back from a table that a long transaction holds, so that others read it meanwhile', async () => {
  await makeSchema(database, 'held');
  const holder = await connected();
  await holder.query('BEGIN; SELECT FROM held.categories');
  const options = migrateOptions('held', { tables: withCategories({ searched: true }) });
  let over = false;
  const migration = migrateSchema(address, options).finally(() => {
    over = true;
  });
  // Attempts come one after the other; each reader that queues behind one gets through when it stands back.
  await client.query('SET statement_timeout = 1000');
  await attemptsSeen(2);
  for (let read = 0; read < 5; read += 1) await client.query('SELECT FROM held.categories');
  await client.query('SET statement_timeout = 0');
  assert.equal(over, false);
  await holder.query('COMMIT');
  assert.equal((await migration).length, 1);
  await holder.end();
});

/** Resolves when an ALTER TABLE was seen to wait, and to wait no more, so many times. */
async function attemptsSeen(count: number): Promise<void> {
  const watcher = await connected();
  let was = false;
  for (let seen = 0; seen < count; ) {
    const { rows } = await watcher.query(
      `SELECT count(*)::int AS waiting FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'ALTER TABLE%'`,
    );
    const is = rows[0]?.waiting > 0;
    if (was && !is) seen += 1;
    was = is;
  }
  await watcher.end();
}

test('says which table could not be had, and leaves nothing of the step', async () => {
  await makeSchema(database, 'stuck');
  const holder = await connected();
  await holder.query('BEGIN; SELECT FROM stuck.categories');
  const options = migrateOptions('stuck', { tables: withCategories({ searched: true }), lockWaitMs: 0 });
  await assert.rejects(migrateSchema(address, options), (error) => {
    assert.ok(error instanceof SchemaBusy, String(error));
    assert.match(error.message, /^search text of categories could not lock its table within 0 ms/);
    return true;
  });
  await holder.query('COMMIT');
  await holder.end();
  assert.equal((await previewMigration(address, options)).length, 1);
});

test('waits for what is under way on the table before it builds an index, whatever timeouts the user carries', async () => {
  await makeSchema(database, 'patient', withCategories({ unique: [] }));
  const name = new URL(url).pathname.slice(1);
  await client.query(
    `ALTER DATABASE ${name} SET statement_timeout = 100; ALTER DATABASE ${name} SET lock_timeout = 100`,
  );
  const holder = await connected();
  await holder.query('BEGIN');
  await holder.query(
    `INSERT INTO patient.categories (id, rev, created_at, updated_at, doc) VALUES ('w', 1, 1, 1, '{}')`,
  );
  const migration = migrateSchema(address, migrateOptions('patient'));
  await waitsFor('CREATE UNIQUE INDEX%', 300);
  await holder.query('COMMIT');
  assert.deepEqual(
    (await migration).map(({ what }) => what),
    ['index categories.unique["name"]'],
  );
  await holder.end();
  await client.query(`ALTER DATABASE ${name} RESET ALL`);
});

/** Resolves when a statement like it has waited so long for others. */
async function waitsFor(statement: string, ms: number): Promise<void> {
  for (;;) {
    const { rows } = await client.query(
      `SELECT FROM pg_stat_activity WHERE query LIKE $1 AND wait_event_type = 'Lock' AND now() - query_start > $2 * interval '1 ms'`,
      [statement, ms],
    );
    if (rows.length > 0) return;
  }
}

test('keeps readers and writers going through every step, with no statement over a second', async () => {
  await makeSchema(database, 'busy', lean);
  await client.query(`INSERT INTO busy.things (id, rev, created_at, updated_at, doc)
    SELECT 't' || g, g, g, g, json_build_object('id', 't' || g, 'name', 'name ' || g % 100, 'sku', 's' || g, 'price', g % 977)::text
    FROM generate_series(1, 20000) AS g`);
  let over = false;
  const writer = workFor(async (other, round) => {
    await other.query('BEGIN');
    await other.query('UPDATE busy.comity_counters SET rev = rev + 1 WHERE n = 0');
    const doc = JSON.stringify({ id: `w${round}`, name: 'written', sku: `w${round}`, price: round });
    const sql = 'INSERT INTO busy.things (id, rev, created_at, updated_at, doc) VALUES ($1, $2, 1, 1, $3)';
    await other.query(sql, [`w${round}`, round, doc]);
    await other.query('UPDATE busy.things SET updated_at = $2 WHERE id = $1', [
      `t${(round % 20_000) + 1}`,
      round,
    ]);
    await other.query('COMMIT');
  });
  const reader = workFor(async (other, round) => {
    const one = 'SELECT id, rev, doc FROM busy.things WHERE id = $1';
    assert.equal(
      (await other.query({ name: 'one', text: one, values: [`t${(round % 20_000) + 1}`] })).rows.length,
      1,
    );
    const page = 'SELECT doc FROM busy.things WHERE deleted_at IS NULL ORDER BY id LIMIT 20';
    assert.equal((await other.query({ name: 'page', text: page })).rows.length, 20);
  });
  const steps = await migrateSchema(address, migrateOptions('busy'));
  over = true;
  assert.equal(steps.length, 10);
  const [written, read] = [await writer, await reader];
  assert.ok(written > 10 && read > 10, `${written} writes and ${read} reads`);
  const { rows } = await client.query(`SELECT count(*)::int AS count FROM busy.things WHERE id LIKE 'w%'`);
  assert.equal(rows[0]?.count, written);
  await openSchema(address, openOptions('busy'));

  async function workFor(work: (other: pg.Client, round: number) => Promise<void>): Promise<number> {
    const other = await connected();
    await other.query('SET statement_timeout = 1000');
    let round = 0;
    for (; !over; round += 1) await work(other, round);
    await other.end();
    return round;
  }
});

test('calls the processes that listen when the schema has changed, and not when it has not', async () => {
  const listener = await connected();
  await listener.query(`LISTEN ${channelOf('called')}`);
  const heard: (string | undefined)[] = [];
  listener.on('notification', ({ payload }) => heard.push(payload));
  await migrateSchema(address, migrateOptions('called'));
  await migrateSchema(address, migrateOptions('called'));
  await listener.query('SELECT 1');
  assert.deepEqual(heard, ['schema']);
  await listener.end();
});

test('reports how far an index has come, over a connection of its own that it closes', async () => {
  await makeSchema(database, 'watched');
  await client.query(`CREATE FUNCTION watched.slowly(value text) RETURNS text IMMUTABLE LANGUAGE plpgsql AS
    'BEGIN PERFORM pg_sleep(0.001); RETURN value; END'`);
  await client.query(`INSERT INTO watched.categories (id, rev, created_at, updated_at, doc)
    SELECT 'c' || g, 1, 1, 1, json_build_object('name', repeat('x', 1000) || g)::text FROM generate_series(1, 20000) AS g`);
  const builder = await openSession(address, 'builder', 5000);
  const { promise: seen, resolve } = Promise.withResolvers<readonly [number, number]>();
  const stop = await watchBuilds(address, builder.processNumber, {
    connectTimeoutMs: 5000,
    onProgress: (done, total) => resolve([done, total]),
  });
  const built = builder.rows('CREATE INDEX CONCURRENTLY slow ON watched.categories (watched.slowly(id))');
  const [done, total] = await seen;
  assert.ok(done >= 0 && done <= total && total > 1000, `${done} of ${total}`);
  await stop();
  const refused = assert.rejects(built, (error) => error instanceof DatabaseFailed);
  await client.query('SELECT pg_cancel_backend($1)', [builder.processNumber]);
  await refused;
  await builder.end();
  const { rows } = await client.query(
    `SELECT FROM pg_stat_activity WHERE application_name = 'comity migrate watch' AND datname = current_database()`,
  );
  assert.deepEqual(rows, []);
});

test('refuses a schema that a newer program migrated', async () => {
  await makeSchema(database, 'newer');
  await client.query(`INSERT INTO newer.comity_migrations VALUES ($1, 'later', 1, 'next')`, [
    schemaNumber + 1,
  ]);
  for (const run of [previewMigration, migrateSchema]) {
    await assert.rejects(run(address, migrateOptions('newer')), (error) => error instanceof SchemaTooNew);
  }
});

test('refuses to go through a pooler, and shows the plan through one all the same', async () => {
  const pooler = await poolerBefore(url);
  const through = new URL(url);
  through.port = String(pooler.port);
  const behind = addressOf(through.href);
  assert.equal((await previewMigration(behind, migrateOptions('pooled'))).length, 4 + schemaNumber);
  await assert.rejects(migrateSchema(behind, migrateOptions('pooled')), (error) => {
    assert.ok(error instanceof UnfitServer, String(error));
    assert.equal(error.unfitness, 'pooler');
    return true;
  });
  await openSchema(behind, openOptions('pooled'));
  await pooler.close();
});

/** Hands every byte on but the number of the server's process (`K`), in whose place a pooler puts one of its own. */
async function poolerBefore(target: string): Promise<Listening> {
  const { hostname, port } = new URL(target);
  const server = createServer((near) => {
    const far = connect(Number(port), hostname);
    far.on('error', () => far.destroy());
    near.on('close', () => far.destroy());
    near.pipe(far);
    far.on('data', (chunk: Buffer) => {
      const key = chunk.indexOf('K\0\0\0', 0, 'latin1');
      if (key >= 0) chunk.writeUInt32BE(1_234_567, key + 5);
      near.write(chunk);
    });
    far.on('close', () => near.destroy());
  });
  return listen(server);
}
