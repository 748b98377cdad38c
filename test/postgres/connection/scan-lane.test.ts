import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import pg from 'pg';
import { addressOf } from '../../../src/store/postgres/connection/address.ts';
import { type Connection, ConnectionLost } from '../../../src/store/postgres/connection/connection.ts';
import { ScanLane } from '../../../src/store/postgres/connection/lanes.ts';
import { StoreUnavailable } from '../../../src/store/store.ts';
import type { Ending } from '../../harness/listening.ts';
import { emptyDatabase, type TestDatabase } from '../../harness/postgres-database.ts';
import { open, plain, sql } from './open.ts';
import { Wire } from './wire.ts';

let server: TestDatabase;
before(async () => {
  server = await emptyDatabase();
});
after(() => server.dispose());

function openLane(
  context: Ending,
  bounds: {
    readonly url?: string;
    readonly connections?: number;
    readonly queueMax?: number;
    readonly timeoutMs?: number;
  } = {},
): ScanLane {
  const { url = server.url, connections = 2, queueMax = 2, timeoutMs = 10_000 } = bounds;
  const connecting = { address: addressOf(url), connectTimeoutMs: 10_000, timeoutMs };
  const lane = new ScanLane(connecting, connections, queueMax);
  context.after(() => lane.close());
  return lane;
}

/** A read that lasts until `letGo`: it waits for a lock of another session. */
async function hold(
  context: Ending,
  key: number,
): Promise<{ read: ReturnType<typeof sql>; letGo: () => Promise<void> }> {
  const { connection } = open(context, server.url);
  await connection.send([plain(`SELECT pg_advisory_lock(${key})`)]);
  return {
    read: sql(`SELECT ${key} FROM pg_advisory_xact_lock($1::int)`, key),
    letGo: async () => {
      await connection.send([plain(`SELECT pg_advisory_unlock(${key})`)]);
    },
  };
}

async function untilWaiting(observer: Connection, sessions: number): Promise<void> {
  const look = sql(
    `SELECT count(*) FROM pg_stat_activity
     WHERE wait_event = 'advisory' AND application_name = 'comity scan' AND datname = current_database()`,
  );
  for (;;) {
    const [reply] = await observer.send([look]);
    if (reply?.rows[0]?.[0] === sessions) return;
  }
}

test('as many reads run at once as there are connections, as many wait as may, and one more is refused', async (t) => {
  const lane = openLane(t);
  const observer = open(t, server.url).connection;
  const { read, letGo } = await hold(t, 1);
  let answered = 0;
  // Two parties, since one alone leaves a connection to others.
  const running = [lane.read(read, 'one'), lane.read(read, 'two')];
  const waiting = [3, 4].map(async (n) => {
    const rows = await lane.read(sql('SELECT $1::int', n), 'three');
    answered += 1;
    return rows;
  });
  await assert.rejects(lane.read(sql('SELECT 5'), 'three'), (error) => {
    assert.ok(error instanceof StoreUnavailable);
    assert.match(error.message, /2 long reads wait for a connection: the queue is full/);
    return true;
  });
  await untilWaiting(observer, 2);
  assert.equal(answered, 0);
  await letGo();
  assert.deepEqual(await Promise.all(running), [[[1]], [[1]]]);
  assert.deepEqual(await Promise.all(waiting), [[[3]], [[4]]]);
});

test('reads that wait are run in the order in which they came', async (t) => {
  const lane = openLane(t, { connections: 1, queueMax: 10 });
  const order: number[] = [];
  const reads = [1, 2, 3, 4, 5].map(async (n) => {
    await lane.read(sql('SELECT $1::int', n));
    order.push(n);
  });
  await Promise.all(reads);
  assert.deepEqual(order, [1, 2, 3, 4, 5]);
});

test('a read whose time is over is ended by the server, and its connection goes on', async (t) => {
  const lane = openLane(t, { connections: 1, timeoutMs: 1000 });
  const pid = await lane.read(sql('SELECT pg_backend_pid()'));
  await assert.rejects(lane.read(sql('SELECT 1 FROM pg_sleep($1::float8)', 60)), (error) => {
    assert.ok(error instanceof StoreUnavailable);
    assert.match(error.message, /took longer than 1000 ms/);
    return true;
  });
  assert.deepEqual(await lane.read(sql('SELECT pg_backend_pid()')), pid);
});

test('the bound of a statement lasts no longer than its transaction', async (t) => {
  const lane = openLane(t, { connections: 1, timeoutMs: 1234 });
  const within = await lane.read(sql("SELECT current_setting('statement_timeout')"));
  assert.deepEqual(within, [['1234ms']]);
  const after = await lane.read(
    sql("SELECT reset_val, setting FROM pg_settings WHERE name = 'statement_timeout'"),
  );
  assert.deepEqual(after, [['0', '1234']]);
});

test('a read that waits too long for a connection is refused', async (t) => {
  const wire = await Wire.before(server.url, t);
  const lane = openLane(t, { url: wire.url, connections: 1, timeoutMs: 1000 });
  await lane.read(sql('SELECT 1'));
  wire.hold();
  const running = lane.read(sql('SELECT 2'));
  for (const waiting of [lane.read(sql('SELECT 3')), lane.read(sql('SELECT 4'))]) {
    await assert.rejects(waiting, (error) => {
      assert.ok(error instanceof StoreUnavailable);
      assert.match(error.message, /no connection was free for a long read within 1000 ms/);
      return true;
    });
  }
  wire.release();
  assert.deepEqual(await running, [[2]]);
});

test('a read may not write', async (t) => {
  const lane = openLane(t);
  await assert.rejects(lane.read(sql('CREATE TABLE forbidden (n int)')), StoreUnavailable);
});

test('a faulty statement is told as the server told it, and the next is answered', async (t) => {
  const lane = openLane(t, { connections: 1 });
  await assert.rejects(
    lane.read(sql('SELECT 1 / $1::int', 0)),
    (error) => error instanceof pg.DatabaseError && error.code === '22012',
  );
  assert.deepEqual(await lane.read(sql('SELECT 1')), [[1]]);
});

test('a read over a table that has changed shape notices nothing', async (t) => {
  const lane = openLane(t, { connections: 1 });
  const { connection } = open(t, server.url);
  await connection.send([plain('CREATE TABLE scanned (a int); INSERT INTO scanned VALUES (1)')]);
  assert.deepEqual(await lane.read(sql('SELECT * FROM scanned')), [[1]]);
  await connection.send([plain('ALTER TABLE scanned ADD b int DEFAULT 2')]);
  assert.deepEqual(await lane.read(sql('SELECT * FROM scanned')), [[1, 2]]);
  assert.deepEqual(await lane.read(sql('SELECT * FROM scanned')), [[1, 2]]);
});

test('a server that has fallen silent is given up soon after the time of the read', async (t) => {
  const wire = await Wire.before(server.url, t);
  const lane = openLane(t, { url: wire.url, connections: 1, timeoutMs: 1000 });
  await lane.read(sql('SELECT 1'));
  wire.lossy = true;
  await assert.rejects(lane.read(sql('SELECT 1')), ConnectionLost);
});

test('reads that wait fail at once when no connection can be had', async (t) => {
  const wire = await Wire.before(server.url, t);
  const lane = openLane(t, { url: wire.url, connections: 1 });
  await lane.read(sql('SELECT 1'));
  wire.hold();
  const reads = [lane.read(sql('SELECT 1')), lane.read(sql('SELECT 2')), lane.read(sql('SELECT 3'))];
  const outcomes = Promise.allSettled(reads);
  await wire.untilAsked(6);
  wire.refusing = true;
  wire.cut();
  for (const outcome of await outcomes) {
    assert.equal(outcome.status, 'rejected');
    assert.ok(outcome.reason instanceof ConnectionLost);
  }
});

test('closing ends the reads that run and refuses those that wait', async (t) => {
  const lane = openLane(t, { connections: 1 });
  const observer = open(t, server.url).connection;
  const { read, letGo } = await hold(t, 2);
  const running = assert.rejects(lane.read(read), /the store is closed/);
  const waiting = assert.rejects(lane.read(sql('SELECT 1')), /the store is closed/);
  await untilWaiting(observer, 1);
  const closed = lane.close();
  await waiting;
  await assert.rejects(lane.read(sql('SELECT 1')), /the store is closed/);
  await running;
  await closed;
  await letGo();
});
