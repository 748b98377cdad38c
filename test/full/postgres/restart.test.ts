/**
 * A connection over a restart of its server, on a server of the test's own. The short form in the default tier is `a server that goes away
 * and comes back is found again without help` of test/postgres/connection/connection.test.ts.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ConnectionLost } from '../../../src/store/postgres/connection/connection.ts';
import { StoreUnavailable } from '../../../src/store/store.ts';
import { ownCluster } from '../../harness/postgres-server/own-cluster.ts';
import { open, sql } from '../../postgres/connection/open.ts';

test('a server that is stopped and started is found again without help', async (t) => {
  const cluster = await ownCluster();
  t.after(() => cluster.dispose());
  const { connection, made, lost } = open(t, cluster.url);
  await made(1);
  let sessions = 1;
  for (const mode of ['fast', 'immediate'] as const) {
    const working = assert.rejects(connection.send([sql('SELECT 1 FROM pg_sleep(60)')]), (error) => {
      assert.ok(error instanceof ConnectionLost, String(error));
      assert.equal(error.sent, true);
      assert.match(error.message, /was lost/);
      return true;
    });
    await cluster.stop(mode);
    await working;
    await lost(sessions);
    await assert.rejects(connection.send([sql('SELECT 1')]), StoreUnavailable);
    await cluster.start();
    sessions += 1;
    await made(sessions);
    assert.deepEqual((await connection.send([sql('SELECT 1')]))[0]?.rows, [[1]]);
  }
});
