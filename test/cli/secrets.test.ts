/** `comity secrets rotate` of a folder; test/full/cli/secrets.test.ts has it on PostgreSQL, and a start with another key. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { runCommand } from '../harness/command-line.ts';
import { type RunningServer as Server, shopConfig as shop, startServer } from '../harness/running-server.ts';
import { temporaryFolder } from '../harness/temporary-folder.ts';

async function jwksOf(server: Server): Promise<string> {
  return (await fetch(`${server.url}/.well-known/jwks.json`)).text();
}

test('changes the key file of a folder that no server has open, and refuses one that a server has', async () => {
  const data = join(temporaryFolder(), 'data');
  const environment = { COMITY_DATA: data, COMITY_CONFIG: shop };
  const server = await startServer({ folder: data });
  const jwks = await jwksOf(server);
  const busy = await runCommand(['secrets', 'rotate'], environment);
  assert.equal(busy.code, 1);
  assert.match(busy.stderr, /in use by another process: stop the server first, .*COMITY_SECRET_KEY_PREVIOUS/);
  await server.stop();
  const before = readFileSync(join(data, 'secret.key'), 'utf8');
  const rotated = await runCommand(['secrets', 'rotate', '--json'], environment);
  assert.deepEqual([rotated.code, rotated.stderr], [0, '']);
  const { key, rows } = JSON.parse(rotated.stdout);
  assert.ok(rows >= 5 && /^[0-9a-f]{16}$/.test(key));
  assert.notEqual(readFileSync(join(data, 'secret.key'), 'utf8'), before);
  const again = await startServer({ folder: data });
  assert.equal(await jwksOf(again), jwks);
  await again.stop();
});
