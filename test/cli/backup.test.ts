/** `comity backup`: a whole copy of a store that is being written to, and of one that is not. */
import assert from 'node:assert/strict';
import { copyFileSync, existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { runProgram, type Server, startServer, temporaryFolder } from './spawn-program.ts';

const key = 'sk_test_0123456789abcdef0123456789';
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
  const server = await startServer({ COMITY_DATA: restored, COMITY_ADMIN_KEY: key });
  const answer = await fetch(`${server.url}/api/v1/categories?limit=1000`);
  const { items } = (await answer.json()) as { items: readonly { name: string }[] };
  server.send('SIGTERM');
  await server.ended;
  return items.map(({ name }) => name);
}

test('copies the store while the server writes to it, with every write acknowledged before', async () => {
  const server = await startServer({ COMITY_DATA: data, COMITY_ADMIN_KEY: key });
  for (let index = 0; index < 50; index += 1) assert.equal(await create(server, `before ${index}`), 201);
  const copy = join(folder, 'copy.db');
  const backup = runProgram(['backup', copy, '--data', data, '--json']);
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
  server.send('SIGTERM');
  await server.ended;
  const names = await namesServedFrom(copy);
  const before = names.filter((name) => name.startsWith('before'));
  assert.equal(before.length, 50);
  assert.ok(names.length <= 50 + written);
});

test('copies the store while no server runs', async () => {
  const copy = join(folder, 'stopped.db');
  const { code, stdout } = await runProgram(['backup', copy], { COMITY_DATA: data });
  assert.equal(code, 0);
  assert.ok(stdout.startsWith(`${copy} holds the whole store (`));
  assert.ok((await namesServedFrom(copy)).length >= 50);
});

test('never overwrites a file', async () => {
  const there = join(folder, 'there.db');
  writeFileSync(there, 'mine');
  const { code, stderr } = await runProgram(['backup', there], { COMITY_DATA: data });
  assert.deepEqual([code, stderr], [1, `comity: ${there} is there already; name a file that is not\n`]);
  assert.equal(statSync(there).size, 4);
});

test('says so when there is no store, and makes none', async () => {
  const empty = join(folder, 'empty');
  mkdirSync(empty);
  const { code, stderr } = await runProgram(['backup', join(folder, 'none.db')], { COMITY_DATA: empty });
  assert.equal(code, 1);
  assert.match(stderr, /^comity: there is no store in .*--data or COMITY_DATA\n$/);
  assert.deepEqual(readdirSync(empty), []);
  assert.ok(!existsSync(join(folder, 'none.db')));
});

test('says so when the folder of the copy is missing', async () => {
  const { code, stderr } = await runProgram(['backup', join(folder, 'no', 'copy.db')], { COMITY_DATA: data });
  assert.deepEqual([code, stderr], [1, `comity: there is no folder ${join(folder, 'no')}\n`]);
});
