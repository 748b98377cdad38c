/** The package comity-conduct: one small file without dependencies, which runs where it is installed. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { it } from 'node:test';
import { promisify } from 'node:util';
import { buildConduct } from '../../../scripts/build-conduct.ts';
import { repositoryRoot } from '../../../scripts/source-tree.ts';
import { cleanToken, createCleanServer } from '../../conduct-suite/clean-server.ts';
import { listen } from '../../harness/listening.ts';
import { nodePath } from '../../harness/npm-install.ts';
import { temporaryFolder } from '../../harness/temporary-folder.ts';

const run = promisify(execFile);
const packedBytesMax = 60_000;

it('installs without any other package and judges a server', async (context) => {
  await buildConduct(repositoryRoot);
  const folder = temporaryFolder();
  const env = { ...process.env, PATH: nodePath };
  const packing = [
    'pack',
    join(repositoryRoot, 'conduct'),
    '--ignore-scripts',
    '--json',
    '--pack-destination',
    folder,
  ];
  const { stdout } = await run('npm', packing, { cwd: folder, env });
  const [packed] = JSON.parse(stdout);
  assert.deepEqual(packed.files.map(({ path }: { path: string }) => path).toSorted(), [
    'README.md',
    'dist/main.js',
    'package.json',
  ]);
  const file = join(folder, packed.filename);
  assert.ok(statSync(file).size < packedBytesMax, `the package has ${statSync(file).size} octets`);
  await run('npm', ['install', '--prefix', folder, '--offline', '--no-audit', '--no-fund', file], { env });
  const command = join(folder, 'node_modules/.bin/comity-conduct');
  const { url } = await listen(createCleanServer(), context);
  const args = [
    `${url}/notes`,
    '--header',
    `Authorization: Bearer ${cleanToken}`,
    '--only',
    'conditions',
    '--json',
  ];
  const judged = JSON.parse((await run(command, args, { env })).stdout);
  assert.equal(judged.subject, `${url}/notes`);
  assert.equal(judged.summary.fails, 0);
  await assert.rejects(run(command, ['--nothing'], { env }), /--nothing/);
});
