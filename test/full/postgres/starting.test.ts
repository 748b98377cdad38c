/** A program that listens is ready only when nothing of its start can fail any more. */
import assert from 'node:assert/strict';
import { request } from 'node:http';
import { createServer } from 'node:net';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { databaseOfProgram } from '../../harness/program-database.ts';
import { shopConfig, startServer } from '../../harness/running-server.ts';
import { spawnServer } from '../../harness/server-process.ts';
import { until } from '../../harness/until.ts';
import { Wire } from '../../postgres/connection/wire.ts';

test('is not ready while a part of the start waits for the database', async (context) => {
  const database = await databaseOfProgram(shopConfig);
  const client = new pg.Client(database.url);
  await client.connect();
  await client.query('BEGIN; LOCK TABLE comity.job_states IN ACCESS EXCLUSIVE MODE');
  const port = await freePort();
  const starting = startServer({ env: { COMITY_DATABASE_URL: database.url, COMITY_PORT: String(port) } });
  context.after(async () => {
    await client.end();
    await (await starting).stop();
    await database.dispose();
  });
  await until(async () => (await status(port, '/health/live')) === 200, 'the program listens');
  assert.equal(await status(port, '/health/ready'), 503);
  await client.query('ROLLBACK');
  await starting;
  assert.equal(await status(port, '/health/ready'), 200);
});

test('goes on when the database falls silent the moment it is ready, and is ready again when that answers', async (context) => {
  const database = await databaseOfProgram(shopConfig);
  const wire = await Wire.before(database.url);
  const port = await freePort();
  const timeoutMs = 1000;
  const env = {
    COMITY_DATABASE_URL: wire.url,
    COMITY_PORT: String(port),
    COMITY_DATABASE_TIMEOUT_MS: String(timeoutMs),
    COMITY_DATABASE_CONNECT_TIMEOUT_MS: String(timeoutMs),
  };
  const starting = spawnServer({ env });
  await until(async () => {
    if ((await status(port, '/health/ready')) !== 200) return false;
    wire.lossy = true;
    return true;
  }, 'the program is ready');
  const program = await starting;
  context.after(async () => {
    await program.stop();
    await wire.close();
    await database.dispose();
  });
  // Whatever asked the database before it fell silent has been refused by then, and tried again.
  await delay(5 * timeoutMs);
  assert.equal(program.process.exitCode, null, program.stderr());
  assert.equal(await status(port, '/health/live'), 200);
  assert.equal(await status(port, '/health/ready'), 503);
  wire.lossy = false;
  await until(async () => (await status(port, '/health/ready')) === 200, 'the program is ready again');
});

async function freePort(): Promise<number> {
  const server = createServer();
  const { promise, resolve } = Promise.withResolvers<void>();
  server.listen(0, '127.0.0.1', resolve);
  await promise;
  const { port } = server.address() as { port: number };
  await new Promise((closed) => server.close(closed));
  return port;
}

/** Undefined where nothing listens. */
function status(port: number, path: string): Promise<number | undefined> {
  return new Promise((resolve) => {
    const asked = request({ host: '127.0.0.1', port, path }, (answer) => {
      answer.resume();
      resolve(answer.statusCode);
    });
    asked.on('error', () => resolve(undefined));
    asked.end();
  });
}
