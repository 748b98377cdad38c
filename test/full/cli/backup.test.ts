/** `comity backup` as a process, beside the one of the server that writes to the store. */
import assert from 'node:assert/strict';
import { copyFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { spawnCommand, temporaryFolder } from '../../harness/command-line.ts';
import { adminKey as key } from '../../harness/exchange.ts';
import { type RunningServer as Server, startServer } from '../../harness/running-server.ts';

const folder = temporaryFolder();
const data = join(folder, 'data');

async function create(server: Server, name: string): Promise<number> {
  const headers = { 'X-API-Key': key, 'Content-Type': 'application/json' };
  const answer = await fetch(`${server.url}/api/v1/categories`, {
    method: 'POST',
    headers,
    body: JSON.stringify({ name }),
  });
  await answer.arrayBuffer();
  return answer.status;
}

async function namesServedFrom(database: string): Promise<readonly string[]> {
  const restored = temporaryFolder();
  copyFileSync(database, join(restored, 'comity.db'));
  copyFileSync(join(data, 'secret.key'), join(restored, 'secret.key'));
  const server = await startServer({ folder: restored });
  const answer = await fetch(`${server.url}/api/v1/categories?limit=1000`);
  const { items } = (await answer.json()) as { items: readonly { name: string }[] };
  await server.stop();
  return items.map(({ name }) => name);
}

test('copies the store while the server writes to it, with every write acknowledged before', async () => {
  const server = await startServer({ folder: data });
  for (let index = 0; index < 50; index += 1) assert.equal(await create(server, `before ${index}`), 201);
  const copy = join(folder, 'copy.db');
  const backup = spawnCommand(['backup', copy, '--data', data, '--json']).ended;
  let written = 0;
  let over = false;
  void backup.finally(() => {
    over = true;
  });
  while (!over) {
    assert.equal(await create(server, `during ${written}`), 201);
    written += 1;
  }
  const { code, stdout, stderr } = await backup;
  assert.deepEqual([code, stderr], [0, '']);
  const report = JSON.parse(stdout);
  assert.deepEqual([report.file, report.bytes], [copy, statSync(copy).size]);
  await server.stop();
  const names = await namesServedFrom(copy);
  const before = names.filter((name) => name.startsWith('before'));
  assert.equal(before.length, 50);
  assert.ok(names.length <= 50 + written);
});
