/** The declarations of `comity/client` as the package has them, compiled with a page in a project without types of Node, every line judged. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { repositoryRoot } from '../../harness/running-server.ts';
import { temporaryFolder } from '../../harness/temporary-folder.ts';

const compile = (...args: readonly string[]): string =>
  execFileSync(process.execPath, [join(repositoryRoot, 'node_modules/typescript/bin/tsc'), ...args], {
    cwd: repositoryRoot,
    encoding: 'utf8',
  });

test('a page with printed types compiles against the client alone, without skipLibCheck', () => {
  const folder = temporaryFolder();
  const comity = join(folder, 'node_modules/comity');
  mkdirSync(comity, { recursive: true });
  cpSync(join(repositoryRoot, 'package.json'), join(comity, 'package.json'));
  compile('--project', 'tsconfig.build.json', '--outDir', join(comity, 'dist'));
  for (const name of ['page.ts', 'api.ts'])
    cpSync(join(repositoryRoot, 'examples/live-page', name), join(folder, name));
  const compilerOptions = {
    ...{ target: 'es2023', module: 'preserve', moduleResolution: 'bundler', noEmit: true },
    ...{ strict: true, exactOptionalPropertyTypes: true, skipLibCheck: false },
    ...{ lib: ['es2023', 'dom', 'dom.iterable', 'dom.asynciterable'], types: [] },
  };
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['page.ts'] }));
  const files = compile('--project', folder, '--listFilesOnly').trim().split('\n');
  compile('--project', folder);
  const own = files
    .filter((file) => !file.includes('/typescript'))
    .map((file) => file.slice(folder.length + 1));
  assert.ok(own.includes('page.ts'));
  // The names of codes are the only thing of the program.
  assert.deepEqual(
    own.filter((file) => !/^(?:page|api)\.ts$|\/dist\/client\//.test(file)),
    ['node_modules/comity/dist/http/problem-registry.d.ts'],
  );
});
