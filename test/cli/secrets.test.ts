/** `comity secrets rotate` as a person at the command line sees it, and a start with another key. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { emptyDatabase } from '../harness/postgres-database.ts';
import { runProgram, type Server, shop, startServer, temporaryFolder } from './spawn-program.ts';

const one = '1a'.repeat(32);
const two = '2b'.repeat(32);

async function jwksOf(server: Server): Promise<string> {
  return (await fetch(`${server.url}/.well-known/jwks.json`)).text();
}

async function stop(server: Server): Promise<void> {
  server.send('SIGTERM');
  assert.equal((await server.ended).code, 0);
}

test('changes the key file of a folder that no server has open, and refuses one that a server has', async () => {
  const data = join(temporaryFolder(), 'data');
  const environment = { COMITY_DATA: data, COMITY_CONFIG: shop };
  const server = await startServer(environment);
  const jwks = await jwksOf(server);
  const busy = await runProgram(['secrets', 'rotate'], environment);
  assert.equal(busy.code, 1);
  assert.match(busy.stderr, /in use by another process: stop the server first, .*COMITY_SECRET_KEY_PREVIOUS/);
  await stop(server);
  const before = readFileSync(join(data, 'secret.key'), 'utf8');
  const rotated = await runProgram(['secrets', 'rotate', '--json'], environment);
  assert.deepEqual([rotated.code, rotated.stderr], [0, '']);
  const { key, rows } = JSON.parse(rotated.stdout);
  assert.ok(rows >= 5 && /^[0-9a-f]{16}$/.test(key));
  assert.notEqual(readFileSync(join(data, 'secret.key'), 'utf8'), before);
  const again = await startServer(environment);
  assert.equal(await jwksOf(again), jwks);
  await stop(again);
});

test('changes the key on PostgreSQL while servers go on, which then need the new one alone', async (context) => {
  const database = await emptyDatabase();
  context.after(() => database.dispose());
  const common = { COMITY_DATABASE_URL: database.url, COMITY_CONFIG: shop, COMITY_DATA: temporaryFolder() };
  const both = { ...common, COMITY_SECRET_KEY: two, COMITY_SECRET_KEY_PREVIOUS: one };
  const old = await startServer({ ...common, COMITY_SECRET_KEY: one });
  const jwks = await jwksOf(old);
  const next = await startServer(both);
  assert.equal(await jwksOf(next), jwks);
  await stop(old);
  const rotated = await runProgram(['secrets', 'rotate'], { ...both, COMITY_DATABASE_POLL_MS: '100' });
  assert.deepEqual([rotated.code, rotated.stderr], [0, '']);
  assert.match(
    rotated.stdout,
    /^\d+ secrets were encrypted anew; .*\nServers no longer need COMITY_SECRET_KEY_PREVIOUS/,
  );
  assert.equal(await jwksOf(next), jwks);
  await stop(next);
  const last = await startServer({ ...common, COMITY_SECRET_KEY: two });
  assert.equal(await jwksOf(last), jwks);
  await stop(last);
  const refused = await runProgram(['serve'], { ...common, COMITY_SECRET_KEY: one, COMITY_PORT: '0' });
  assert.equal(refused.code, 1);
  assert.match(
    refused.stderr,
    /^comity: the secrets in the store are encrypted with the key \w+, and COMITY_SECRET_KEY is/m,
  );
  assert.ok(!refused.stderr.includes(one) && !refused.stderr.includes(two));
});
