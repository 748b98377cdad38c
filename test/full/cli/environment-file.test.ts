/** Files of variables: all commands of a project speak of one store. */
import assert from 'node:assert/strict';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { runCommand, spawnCommand } from '../../harness/command-line.ts';
import { linkPackage, temporaryFolder } from '../../harness/temporary-folder.ts';

const configuration = `
import { collection, defineConfig, Type } from 'comity';
export default defineConfig({
  title: process.env.DESK_TITLE,
  collections: { notes: collection({ schema: Type.Object({ text: Type.String() }) }) },
});
`;

function project(): string {
  const folder = temporaryFolder();
  linkPackage(folder);
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
  writeFileSync(join(folder, 'comity.config.ts'), configuration);
  writeFileSync(join(folder, '.env'), 'COMITY_DATA=here\nCOMITY_PORT=0\nDESK_TITLE="A desk"\n');
  return folder;
}

test('seed and check read the file .env, for settings and for the configuration; variables that are set win', async () => {
  const cwd = project();
  writeFileSync(join(cwd, 'seed.ndjson'), '{"collection":"notes","fields":{"text":"x"}}');
  assert.equal((await spawnCommand(['seed', 'seed.ndjson'], {}, { cwd }).ended).code, 0);
  assert.deepEqual([existsSync(join(cwd, 'here')), existsSync(join(cwd, 'data'))], [true, false]);
  assert.match((await spawnCommand(['check'], {}, { cwd }).ended).stdout, /would serve "A desk"/);
  assert.match(
    (await spawnCommand(['check'], { DESK_TITLE: 'Mine' }, { cwd }).ended).stdout,
    /would serve "Mine"/,
  );
});

test('serve reads a file only where it is named, and tells what it leaves out', async () => {
  const cwd = project();
  const environment = { COMITY_PORT: '0' };
  const plain = spawnCommand(['serve'], environment, { cwd });
  await plain.told(
    '.env sets COMITY_DATA, DESK_TITLE, which "comity serve" does not read: --env .env reads it',
  );
  plain.process.kill('SIGTERM');
  await plain.ended;
  assert.equal(existsSync(join(cwd, 'here')), false);
  for (const option of ['--env', '--env-if-exists']) {
    const named = spawnCommand(['serve', option, '.env'], environment, { cwd });
    await named.told('store-opened');
    named.process.kill('SIGTERM');
    const { code, stderr } = await named.ended;
    assert.equal(code, 0);
    assert.doesNotMatch(stderr, /does not read/);
    assert.ok(existsSync(join(cwd, 'here')));
  }
});

test('refuses a file that is not there, unless it may be missing', async () => {
  const missing = join(temporaryFolder(), 'none.env');
  const { code, stderr } = await runCommand(['check', '--env', missing]);
  assert.deepEqual([code, stderr], [2, `comity: there is no file ${missing}\n`]);
  const spawned = await spawnCommand(['serve', '--env', missing], { COMITY_PORT: '0' }).ended;
  assert.deepEqual([spawned.code, spawned.stderr], [2, `comity: there is no file ${missing}\n`]);
  const served = await runCommand(['serve', '--env-if-exists', missing], { COMITY_PORT: 'x' });
  assert.match(served.stderr, /COMITY_PORT must be/);
});
