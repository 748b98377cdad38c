/** The network to the database breaks under a serving program, and is there again. In full: test/full/postgres/outage.test.ts. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { databaseOfProgram } from '../harness/program-database.ts';
import { shopConfig, startServer } from '../harness/running-server.ts';
import { Wire } from '../postgres/connection/wire.ts';

const recoveryBoundMs = 20_000;

test('answers 503 while the database cannot be reached, and is ready again by itself', async (t) => {
  const database = await databaseOfProgram(shopConfig);
  const wire = await Wire.before(database.url);
  const program = await startServer({
    env: { COMITY_DATABASE_URL: wire.url },
  });
  t.after(async () => {
    await program.stop();
    await wire.close();
    await database.dispose();
  });
  const path = '/api/v1/categories';
  wire.refusing = true;
  wire.cut();
  for (const [method, target, json] of [
    ['GET', path, undefined],
    ['POST', path, { name: 'lost' }],
    ['GET', '/health/ready', undefined],
  ] as const) {
    const answer = await program.send(method, target, { json });
    assert.equal(answer.status, 503, `${method} ${target}`);
    assert.match(answer.headers['retry-after'] ?? '', /^[1-9]\d*$/);
  }
  assert.equal((await program.send('GET', '/health/live')).status, 200);
  wire.refusing = false;
  const endsAt = performance.now() + recoveryBoundMs;
  while ((await program.send('GET', '/health/ready')).status !== 200) {
    assert.ok(performance.now() < endsAt, 'the program did not recover by itself');
    await delay(20);
  }
  assert.equal((await program.send('POST', path, { json: { name: 'kept' } })).status, 201);
  const { items } = (await program.send('GET', path)).json() as { items: { name: string }[] };
  assert.equal(items.filter(({ name }) => name === 'lost').length, 0);
});
