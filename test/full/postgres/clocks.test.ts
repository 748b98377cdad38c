/** What a program reports of another process on its store whose clock differs: in readiness, for administrators and in the log. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import pg from 'pg';
import { emptyDatabase } from '../../harness/postgres-database.ts';
import { startServer } from '../../harness/running-server.ts';
import { until } from '../../harness/until.ts';

test('readiness and meta show a clock that differs, until it no longer does', async (context) => {
  const database = await emptyDatabase();
  const program = await startServer({ env: { COMITY_DATABASE_URL: database.url } });
  const client = new pg.Client(database.url);
  await client.connect();
  context.after(async () => {
    await client.end();
    await program.stop();
    await database.dispose();
  });
  const readiness = async () => {
    const answer = await program.send('GET', '/health/ready');
    assert.equal(answer.status, 200);
    return answer.json() as { status: string; detail?: string };
  };
  assert.deepEqual(await readiness(), { status: 'ready' });
  await client.query(
    `INSERT INTO comity.comity_processes VALUES ('other', (extract(epoch FROM now() + interval '1 hour') * 1000)::bigint, $1)`,
    [JSON.stringify({ clockAheadMs: '60000' })],
  );
  await until(async () => (await readiness()).detail !== undefined, 'a heartbeat sees the other process');
  assert.deepEqual(await readiness(), {
    status: 'ready',
    detail: "another process on the same store has a clock that is 60 s ahead of this one's",
  });
  const meta = (await program.send('GET', '/api/v1/meta')).json() as { differences: { what: string }[] };
  assert.deepEqual(
    meta.differences.map(({ what }) => what),
    ["a clock that is 60 s ahead of this one's"],
  );
  await client.query(`DELETE FROM comity.comity_processes WHERE process = 'other'`);
  await until(async () => (await readiness()).detail === undefined, 'a heartbeat misses it');
});
