/** What `comity init` refuses; test/full/cli/init.test.ts has projects that it writes. */
import assert from 'node:assert/strict';
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { runCommand } from '../harness/command-line.ts';
import { temporaryFolder } from '../harness/temporary-folder.ts';

test('overwrites nothing: names what is there and leaves the folder as it was', async () => {
  const project = temporaryFolder();
  writeFileSync(join(project, 'package.json'), '{}');
  writeFileSync(join(project, 'README.md'), 'mine');
  const { code, stdout, stderr } = await runCommand(['init', project]);
  assert.deepEqual([code, stdout], [1, '']);
  assert.equal(
    stderr,
    `comity: ${project} already contains package.json, README.md; nothing was written, name another folder\n`,
  );
  assert.deepEqual(readdirSync(project).sort(), ['README.md', 'package.json']);
});

test('refuses a file in place of the folder, and an unknown way to bring Node', async () => {
  const file = join(temporaryFolder(), 'file');
  writeFileSync(file, '');
  assert.equal((await runCommand(['init', file])).stderr, `comity: ${file} is a file; name a folder\n`);
  const { code, stderr } = await runCommand(['init', '--node', 'nvm']);
  assert.deepEqual([code, stderr], [2, 'comity: --node must be npm or system, not "nvm"\n']);
});
