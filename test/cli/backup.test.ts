/** `comity backup` of a store that no server has open; test/full/cli/backup.test.ts has one that is being written to. */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { runCommand } from '../harness/command-line.ts';
import { startServer } from '../harness/running-server.ts';
import { temporaryFolder } from '../harness/temporary-folder.ts';
import { createCategory, namesServedFrom } from './served-copy.ts';

const folder = temporaryFolder();
const data = join(folder, 'data');

before(async () => {
  const server = await startServer({ folder: data });
  for (let index = 0; index < 50; index += 1)
    assert.equal(await createCategory(server, `before ${index}`), 201);
  await server.stop();
});

test('copies the store while no server runs', async () => {
  const copy = join(folder, 'stopped.db');
  const { code, stdout } = await runCommand(['backup', copy], { COMITY_DATA: data });
  assert.equal(code, 0);
  assert.ok(stdout.startsWith(`${copy} holds the whole store (`));
  assert.ok((await namesServedFrom(data, copy)).length >= 50);
});

test('never overwrites a file', async () => {
  const there = join(folder, 'there.db');
  writeFileSync(there, 'mine');
  const { code, stderr } = await runCommand(['backup', there], { COMITY_DATA: data });
  assert.deepEqual([code, stderr], [1, `comity: ${there} exists already; name a new file\n`]);
  assert.equal(statSync(there).size, 4);
});

test('says so when there is no store, and makes none', async () => {
  const empty = join(folder, 'empty');
  mkdirSync(empty);
  const { code, stderr } = await runCommand(['backup', join(folder, 'none.db')], { COMITY_DATA: empty });
  assert.equal(code, 1);
  assert.match(stderr, /^comity: there is no store in .*--data or COMITY_DATA\n$/);
  assert.deepEqual(readdirSync(empty), []);
  assert.ok(!existsSync(join(folder, 'none.db')));
});

test('says so when the folder of the copy is missing', async () => {
  const { code, stderr } = await runCommand(['backup', join(folder, 'no', 'copy.db')], { COMITY_DATA: data });
  assert.deepEqual([code, stderr], [1, `comity: there is no folder ${join(folder, 'no')}\n`]);
});
