import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import pg from 'pg';
import type { Connection } from '../../../src/store/postgres/connection/connection.ts';
import { emptyDatabase, type TestDatabase } from '../../harness/postgres-database.ts';
import { open, plain, sql } from './open.ts';
import { Wire } from './wire.ts';

let server: TestDatabase;
before(async () => {
  server = await emptyDatabase();
});
after(() => server.dispose());

/** The statements that the session keeps, oldest first. */
async function kept(connection: Connection): Promise<readonly unknown[]> {
  const [reply] = await connection.send([
    plain('SELECT statement FROM pg_prepared_statements ORDER BY prepare_time'),
  ]);
  return (reply?.rows ?? []).map(([statement]) => statement);
}

test('a statement is kept in the session unless the call says otherwise', async (t) => {
  const { connection } = open(t, server.url);
  await connection.send([sql('SELECT 1'), sql('SELECT 1'), plain('SELECT 2')]);
  await connection.send([{ sql: 'SELECT $1::int', values: [3], prepared: false }]);
  assert.deepEqual(await kept(connection), ['SELECT 1']);
});

test('as many statements as the bound are kept, and the least recently used makes room', async (t) => {
  const { connection } = open(t, server.url, { statementsKeptMax: 3 });
  for (const text of ['SELECT 1', 'SELECT 2', 'SELECT 3', 'SELECT 1']) await connection.send([sql(text)]);
  assert.deepEqual(await kept(connection), ['SELECT 1', 'SELECT 2', 'SELECT 3']);
  await connection.send([sql('SELECT 4')]);
  assert.deepEqual(await kept(connection), ['SELECT 1', 'SELECT 3', 'SELECT 4']);
  await connection.send([sql('SELECT 2')]);
  assert.deepEqual(await kept(connection), ['SELECT 1', 'SELECT 4', 'SELECT 2']);
  const again = await connection.send([sql('SELECT 3'), sql('SELECT 1')]);
  assert.deepEqual(
    again.map(({ rows }) => rows),
    [[[3]], [[1]]],
  );
});

test('a statement that calls on their way use is not put away; what finds no room goes without a name', async (t) => {
  const wire = await Wire.before(server.url, t);
  const { connection, made } = open(t, wire.url, { statementsKeptMax: 2 });
  await made(1);
  wire.hold();
  const answers = ['SELECT 1', 'SELECT 2', 'SELECT 3', 'SELECT 1'].map((text) =>
    connection.send([sql(text)]),
  );
  await wire.untilAsked(4);
  wire.release();
  assert.deepEqual(
    (await Promise.all(answers)).map(([reply]) => reply?.rows[0]?.[0]),
    [1, 2, 3, 1],
  );
  assert.deepEqual(await kept(connection), ['SELECT 1', 'SELECT 2']);
  await connection.send([sql('SELECT 3')]);
  assert.deepEqual(await kept(connection), ['SELECT 1', 'SELECT 3']);
});

test('a statement over a table that has changed shape is prepared anew, and a lone call notices nothing', async (t) => {
  const { connection } = open(t, server.url);
  await connection.send([plain('CREATE TABLE shaped (a int); INSERT INTO shaped VALUES (1)')]);
  const read = sql('SELECT * FROM shaped');
  await connection.send([read]);
  await connection.send([plain('ALTER TABLE shaped ADD b int DEFAULT 2')]);
  const answers = await Promise.all(Array.from({ length: 5 }, () => connection.send([read])));
  for (const [reply] of answers) assert.deepEqual(reply?.rows, [[1, 2]]);
  await connection.send([read]);
  assert.deepEqual(await kept(connection), ['SELECT * FROM shaped']);
});

test('in a transaction the change of shape is told, and the next time goes well', async (t) => {
  const { connection } = open(t, server.url);
  await connection.send([plain('CREATE TABLE reshaped (a int)')]);
  const flight = [plain('BEGIN'), sql('SELECT * FROM reshaped'), plain('COMMIT')];
  await connection.send(flight);
  await connection.send([plain('ALTER TABLE reshaped ADD b int')]);
  await assert.rejects(
    connection.send(flight),
    (error) => error instanceof pg.DatabaseError && error.code === '0A000',
  );
  await connection.send(flight);
});

test('a session that has lost its statements is used without names from then on', async (t) => {
  const { connection } = open(t, server.url);
  await connection.send([sql('SELECT 1')]);
  await connection.send([plain('DEALLOCATE ALL')]);
  const answers = await Promise.all([1, 2, 3].map(() => connection.send([sql('SELECT 1')])));
  for (const [reply] of answers) assert.deepEqual(reply?.rows, [[1]]);
  await connection.send([sql('SELECT 2')]);
  assert.deepEqual(await kept(connection), []);
});

test('calls right behind one that cannot be prepared fail as it does, and names stay in use', async (t) => {
  const { connection, made } = open(t, server.url);
  await made(1);
  const answers = Array.from({ length: 3 }, () =>
    connection.send([sql('SELECT * FROM nothing_of_the_kind')]),
  );
  for (const answer of answers) {
    await assert.rejects(answer, (error) => error instanceof pg.DatabaseError && error.code === '42P01');
  }
  await connection.send([plain('CREATE TABLE nothing_of_the_kind (n int)')]);
  await connection.send([sql('SELECT * FROM nothing_of_the_kind')]);
  assert.deepEqual(await kept(connection), ['SELECT * FROM nothing_of_the_kind']);
});

test('a statement first seen in a transaction that has failed is prepared the next time', async (t) => {
  const { connection, made } = open(t, server.url);
  await made(1);
  const failing = connection.send([
    plain('BEGIN'),
    sql('SELECT 1 / $1::int', 0),
    sql('SELECT 1'),
    plain('COMMIT'),
  ]);
  const behind = connection.send([sql('SELECT 1')]);
  await assert.rejects(failing, (error) => error instanceof pg.DatabaseError && error.code === '22012');
  assert.deepEqual((await behind)[0]?.rows, [[1]]);
  await connection.send([sql('SELECT 1')]);
  assert.deepEqual(await kept(connection), ['SELECT 1 / $1::int', 'SELECT 1']);
});

test('a session that has a statement of that name already is used without names from then on', async (t) => {
  const { connection } = open(t, server.url);
  await connection.send([sql('SELECT 1')]);
  const [reply] = await connection.send([plain('SELECT name FROM pg_prepared_statements')]);
  const name = String(reply?.rows[0]?.[0]);
  const other = open(t, server.url).connection;
  await other.send([plain(`PREPARE "${name}" AS SELECT 1`)]);
  assert.deepEqual((await other.send([sql('SELECT 1')]))[0]?.rows, [[1]]);
  await other.send([sql('SELECT 2')]);
  assert.deepEqual(await kept(other), [`PREPARE "${name}" AS SELECT 1`]);
});

test('the same text has the same name in every session', async (t) => {
  const names = await Promise.all(
    [1, 2].map(async () => {
      const { connection } = open(t, server.url);
      await connection.send([sql('SELECT 1')]);
      const [reply] = await connection.send([plain('SELECT name FROM pg_prepared_statements')]);
      return reply?.rows;
    }),
  );
  assert.equal(names[0]?.length, 1);
  assert.deepEqual(names[0], names[1]);
});
