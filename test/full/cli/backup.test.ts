/** `comity backup` as a process, beside the one of the server that writes to the store. */
import assert from 'node:assert/strict';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { createCategory, namesServedFrom } from '../../cli/served-copy.ts';
import { spawnCommand } from '../../harness/command-line.ts';
import { startServer } from '../../harness/running-server.ts';
import { temporaryFolder } from '../../harness/temporary-folder.ts';

const folder = temporaryFolder();
const data = join(folder, 'data');

test('copies the store while the server writes to it, with every write acknowledged before', async () => {
  const server = await startServer({ folder: data });
  for (let index = 0; index < 50; index += 1)
    assert.equal(await createCategory(server, `before ${index}`), 201);
  const copy = join(folder, 'copy.db');
  const backup = spawnCommand(['backup', copy, '--data', data, '--json']).ended;
  let written = 0;
  let over = false;
  void backup.finally(() => {
    over = true;
  });
  while (!over) {
    assert.equal(await createCategory(server, `during ${written}`), 201);
    written += 1;
  }
  const { code, stdout, stderr } = await backup;
  assert.deepEqual([code, stderr], [0, '']);
  const report = JSON.parse(stdout);
  assert.deepEqual([report.file, report.bytes], [copy, statSync(copy).size]);
  await server.stop();
  const names = await namesServedFrom(data, copy);
  const before = names.filter((name) => name.startsWith('before'));
  assert.equal(before.length, 50);
  assert.ok(names.length <= 50 + written);
});
