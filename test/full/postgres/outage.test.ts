/**
 * The database goes away under a serving program and comes back: a server of the test's own, stopped and started. The short form in the
 * default tier is test/wire/database-away.test.ts, where the network to the server is cut.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { ownCluster } from '../../harness/postgres-server/own-cluster.ts';
import { startServer } from '../../harness/running-server.ts';

const recoveryBoundMs = 20_000;

test('answers 503 while the database is down, and is ready again only when it takes writes', async () => {
  const cluster = await ownCluster();
  const program = await startServer({ env: { COMITY_DATABASE_URL: cluster.url } });
  const path = '/api/v1/categories';
  try {
    await cluster.stop('immediate');
    for (const [method, target, json] of [
      ['GET', path, undefined],
      ['GET', `${path}/x`, undefined],
      ['POST', path, { name: 'lost' }],
      ['GET', '/health/ready', undefined],
    ] as const) {
      const answer = await program.send(method, target, { json });
      assert.equal(answer.status, 503, `${method} ${target}`);
      assert.match(answer.headers['retry-after'] ?? '', /^[1-9]\d*$/);
    }
    assert.equal((await program.send('GET', '/health/live')).status, 200);
    await cluster.start();
    const endsAt = performance.now() + recoveryBoundMs;
    while ((await program.send('GET', '/health/ready')).status !== 200) {
      assert.ok(performance.now() < endsAt, 'the program did not recover by itself');
      await delay(20);
    }
    assert.equal((await program.send('POST', path, { json: { name: 'kept' } })).status, 201);
    const { items } = (await program.send('GET', `${path}?name=kept`)).json() as { items: unknown[] };
    assert.equal(items.length, 1);
  } finally {
    await program.stop();
    await cluster.dispose();
  }
});
