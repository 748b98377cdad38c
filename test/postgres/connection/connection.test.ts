import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import pg from 'pg';
import { type Call, ConnectionLost } from '../../../src/store/postgres/connection/connection.ts';

import { StoreUnavailable } from '../../../src/store/store.ts';
import { emptyDatabase, type TestDatabase } from '../../harness/postgres-database.ts';
import { freePort } from '../../wire/free-port.ts';
import { open, pidOf, plain, sql, untilAsleep } from './open.ts';
import { tlsFront } from './tls-front.ts';
import { Wire } from './wire.ts';

let server: TestDatabase;
before(async () => {
  server = await emptyDatabase();
});
after(() => server.dispose());

const isLost = (sent: boolean, message: RegExp) => (error: unknown) => {
  assert.ok(error instanceof ConnectionLost, String(error));
  assert.ok(error instanceof StoreUnavailable);
  assert.equal(error.sent, sent);
  assert.match(error.message, message);
  return true;
};

test('numbers come as numbers, booleans as booleans, everything else as the text that the server wrote', async (t) => {
  const { connection } = open(t, server.url);
  const [reply] = await connection.send([
    sql(
      `SELECT 9007199254740991::int8, 5e-324::float8, '-0'::float8, 7::int4, true, false, null, 'é😀'::text,
       '{"a":1}'::jsonb, '2020-01-02'::date, 1.10::numeric, $1::text[], $2::int8[]`,
      ['a', null, '{"}', 'x,y\\'],
      [1, 2],
    ),
  ]);
  assert.deepEqual(reply?.rows, [
    [
      9007199254740991,
      5e-324,
      -0,
      7,
      true,
      false,
      null,
      'é😀',
      '{"a": 1}',
      '2020-01-02',
      '1.10',
      '{a,NULL,"{\\"}","x,y\\\\"}',
      '{1,2}',
    ],
  ]);
});

test('a reply tells how many rows its command touched', async (t) => {
  const { connection } = open(t, server.url);
  const replies = await connection.send([
    plain('CREATE TABLE touched (n int)'),
    sql('INSERT INTO touched SELECT generate_series(1, $1::int)', 5),
    sql('UPDATE touched SET n = n WHERE n > $1::int', 3),
    sql('SELECT n FROM touched WHERE n > $1::int', 4),
  ]);
  assert.deepEqual(
    replies.map(({ affected }) => affected),
    [0, 5, 2, 1],
  );
});

test('a simple query of several statements is answered by its last', async (t) => {
  const { connection } = open(t, server.url);
  const [reply] = await connection.send([plain('SELECT 1; SELECT 2, 3')]);
  assert.deepEqual(reply, { rows: [[2, 3]], affected: 1 });
});

test('sends everything before the first answer is there', async (t) => {
  const wire = await Wire.before(server.url, t);
  const { connection, made } = open(t, wire.url);
  await made(1);
  wire.hold();
  const alone = Array.from({ length: 20 }, (_, n) => connection.send([sql('SELECT $1::int', n)]));
  const together = connection.send(Array.from({ length: 20 }, (_, n) => sql('SELECT $1::int', n)));
  await wire.untilAsked(40);
  assert.equal(connection.inFlight, 40);
  wire.release();
  const answers = await Promise.all(alone);
  assert.deepEqual(
    answers.map(([reply]) => reply?.rows[0]?.[0]),
    Array.from({ length: 20 }, (_, n) => n),
  );
  assert.deepEqual(
    (await together).map(({ rows }) => rows[0]?.[0]),
    Array.from({ length: 20 }, (_, n) => n),
  );
  assert.equal(connection.inFlight, 0);
});

test('tells the first failure of a transaction, of which nothing stands', async (t) => {
  const { connection } = open(t, server.url);
  await connection.send([plain('CREATE TABLE once (n int PRIMARY KEY)')]);
  const insert = (n: number): Call => sql('INSERT INTO once VALUES ($1::int)', n);
  const flight = connection.send([plain('BEGIN'), insert(1), insert(1), insert(2), plain('COMMIT')]);
  const next = connection.send([sql('SELECT count(*) FROM once')]);
  await assert.rejects(flight, (error) => error instanceof pg.DatabaseError && error.code === '23505');
  assert.deepEqual((await next)[0]?.rows, [[0]]);
});

test('a call that fails leaves those behind it alone', async (t) => {
  const { connection } = open(t, server.url);
  const bad = connection.send([sql('SELECT 1 / $1::int', 0)]);
  const good = connection.send([sql('SELECT $1::int', 1)]);
  await assert.rejects(bad, (error) => error instanceof pg.DatabaseError && error.code === '22012');
  assert.deepEqual((await good)[0]?.rows, [[1]]);
});

test('calls wait for the attempt under way', async (t) => {
  const { connection } = open(t, server.url);
  assert.equal(connection.connected, false);
  assert.deepEqual((await connection.send([sql('SELECT 1')]))[0]?.rows, [[1]]);
  assert.equal(connection.connected, true);
});

test('a call that waited for a connection in vain is refused in time, as not sent', async (t) => {
  const wire = await Wire.before(server.url, t);
  wire.lossy = true;
  const { connection } = open(t, wire.url, { timeoutMs: 50, connectTimeoutMs: 500 });
  await assert.rejects(connection.send([sql('SELECT 1')]), isLost(false, /no connection to .* in time/));
  assert.equal(connection.inFlight, 0);
});

test('a server that falls silent is given up in time, and a new connection is made', async (t) => {
  const wire = await Wire.before(server.url, t);
  const { connection, made, lost } = open(t, wire.url, { timeoutMs: 1000 });
  await made(1);
  wire.lossy = true;
  const slow = connection.send([sql('SELECT 1')], 60_000);
  await assert.rejects(connection.send([sql('SELECT 1')]), isLost(true, /was lost: no reply in time/));
  await assert.rejects(slow, isLost(true, /was lost: no reply in time/));
  await lost(1);
  wire.lossy = false;
  await made(2);
  assert.deepEqual((await connection.send([sql('SELECT 1')]))[0]?.rows, [[1]]);
});

test('a call with a longer time of its own is not ended by the usual one', async (t) => {
  const { connection, made } = open(t, server.url, { timeoutMs: 1000 });
  await made(1);
  const [reply] = await connection.send([sql('SELECT 1 FROM pg_sleep($1::float8)', 1.5)], 60_000);
  assert.deepEqual(reply?.rows, [[1]]);
});

test('an answer that came while this process was busy is taken, however late', async (t) => {
  const { connection, made } = open(t, server.url, { timeoutMs: 1000 });
  await made(1);
  const answer = connection.send([sql('SELECT 1')]);
  // The write leaves at the end of this turn; then the process looks at nothing for longer than the time of the call.
  await new Promise<void>((resolve) => {
    setImmediate(() => {
      const until = performance.now() + 1500;
      while (performance.now() < until);
      resolve();
    });
  });
  assert.deepEqual((await answer)[0]?.rows, [[1]]);
});

test('a connection cut in the middle of an answer fails what was on its way, as perhaps carried out', async (t) => {
  const wire = await Wire.before(server.url, t);
  const { connection, made } = open(t, wire.url);
  await made(1);
  await connection.send([plain('CREATE TABLE cut_off (n int)')]);
  wire.cutAfter(30);
  const calls = Array.from({ length: 3 }, () =>
    connection.send([sql("INSERT INTO cut_off VALUES (1) RETURNING repeat('x', 100)")]),
  );
  for (const call of calls) await assert.rejects(call, isLost(true, /was lost: /));
  await made(2);
  assert.deepEqual((await connection.send([sql('SELECT count(*) > 0 FROM cut_off')]))[0]?.rows, [[true]]);
});

test('a failure that was told before the connection broke stays the answer', async (t) => {
  const wire = await Wire.before(server.url, t);
  const { connection, made } = open(t, wire.url);
  await made(1);
  const pid = await pidOf(connection);
  const flight = connection.send([sql('SELECT 1 / $1::int', 0), sql('SELECT 1 FROM pg_sleep(60)')]);
  const other = open(t, server.url).connection;
  await untilAsleep(other, pid);
  wire.cut();
  await assert.rejects(flight, (error) => error instanceof pg.DatabaseError && error.code === '22012');
});

test('a session that the server ends is lost, idle or not, and made anew', async (t) => {
  const { connection, made, lost } = open(t, server.url);
  const other = open(t, server.url).connection;
  await made(1);
  const first = await pidOf(connection);
  await other.send([sql('SELECT pg_terminate_backend($1::int)', first)]);
  await lost(1);
  await made(2);
  const second = await pidOf(connection);
  assert.notEqual(first, second);
  const working = connection.send([sql('SELECT 1 FROM pg_sleep(60)')]);
  await untilAsleep(other, second);
  const waits = assert.rejects(working, isLost(true, /was lost: /));
  await other.send([sql('SELECT pg_terminate_backend($1::int)', second)]);
  await waits;
});

test('while there is no connection calls are refused at once, saying where and why, without the password', async (t) => {
  const port = await freePort();
  const { connection } = open(t, `postgres://someone:secret-word@127.0.0.1:${port}/shop`);
  await assert.rejects(connection.send([sql('SELECT 1')]), (error) => {
    assert.ok(error instanceof ConnectionLost);
    assert.equal(error.sent, false);
    assert.match(error.message, new RegExp(`no connection to 127\\.0\\.0\\.1:${port}/shop: .*ECONNREFUSED`));
    assert.doesNotMatch(error.message, /secret-word/);
    return true;
  });
  await assert.rejects(connection.send([sql('SELECT 1')]), isLost(false, /ECONNREFUSED/));
});

test('as many calls as the bound wait for answers, and one more is refused', async (t) => {
  const wire = await Wire.before(server.url, t);
  const { connection, made } = open(t, wire.url, { callsWaitingMax: 5 });
  await made(1);
  wire.hold();
  const accepted = [
    connection.send([sql('SELECT 1'), sql('SELECT 2')]),
    connection.send([sql('SELECT 3'), sql('SELECT 4'), sql('SELECT 5')]),
  ];
  await assert.rejects(connection.send([sql('SELECT 6')]), StoreUnavailable);
  await wire.untilAsked(5);
  wire.release();
  await Promise.all(accepted);
  await connection.send([sql('SELECT 6')]);
});

test('closing waits for what is on its way and refuses what comes after', async (t) => {
  const wire = await Wire.before(server.url, t);
  const { connection, made } = open(t, wire.url);
  await made(1);
  wire.hold();
  const answer = connection.send([sql('SELECT 1')]);
  await wire.untilAsked(1);
  const closed = connection.close();
  await assert.rejects(connection.send([sql('SELECT 2')]), /is closed/);
  wire.release();
  assert.deepEqual((await answer)[0]?.rows, [[1]]);
  await closed;
});

test('closing ends where the server has fallen silent', async (t) => {
  const wire = await Wire.before(server.url, t);
  const { connection, made } = open(t, wire.url, { timeoutMs: 1000 });
  await made(1);
  wire.lossy = true;
  const answer = assert.rejects(connection.send([sql('SELECT 1')]), isLost(true, /no reply/));
  await connection.close();
  await answer;
});

for (const transport of ['TCP', 'TLS'] as const) {
  for (const [when, vanish] of [
    ['just before', (wire: Wire, close: () => Promise<void>) => [wire.cut(), close()]],
    ['just after', (wire: Wire, close: () => Promise<void>) => [close(), wire.cut()]],
    [
      'in the turn after',
      (wire: Wire, close: () => Promise<void>) => [close(), setImmediate(() => wire.cut())],
    ],
  ] as const) {
    test(`closing ends where the server vanishes ${when} it, over ${transport}`, async (t) => {
      const wire = await Wire.before(server.url, t);
      const plain = new URL(wire.url);
      plain.search = '';
      const front = await tlsFront(plain.href);
      t.after(() => front.close());
      const url = transport === 'TCP' ? wire.url : front.url('localhost', '?sslmode=require');
      const { connection, made } = open(t, url);
      await made(1);
      const answer = connection.send([sql('SELECT 1 FROM pg_sleep(60)')]).catch(() => undefined);
      await wire.untilAsked(1);
      wire.refusing = true;
      await Promise.all(vanish(wire, () => connection.close()));
      await answer;
    });
  }
}

/** In full, with the server itself: test/full/postgres/restart.test.ts. */
test('a server that goes away and comes back is found again without help', async (t) => {
  const wire = await Wire.before(server.url, t);
  const { connection, made, lost } = open(t, wire.url);
  await made(1);
  const working = assert.rejects(
    connection.send([sql('SELECT 1 FROM pg_sleep(60)')]),
    isLost(true, /was lost/),
  );
  await wire.untilAsked(1);
  wire.refusing = true;
  wire.cut();
  await working;
  await lost(1);
  await assert.rejects(connection.send([sql('SELECT 1')]), StoreUnavailable);
  wire.refusing = false;
  await made(2);
  assert.deepEqual((await connection.send([sql('SELECT 1')]))[0]?.rows, [[1]]);
});
