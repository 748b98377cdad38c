import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { build } from '../../../scripts/build.ts';
import { readText } from '../../../scripts/source-tree.ts';
import { linkModules, makeTree, ownFiles } from '../../repository/fixture-tree.ts';

test('a build runs without TypeScript, starts its workers, and carries files that are not code', (t) => {
  const root = makeTree(t, {
    ...ownFiles('package.json', 'tsconfig.json', 'tsconfig.build.json'),
    'dist/left-over.js': '',
    'src/main.ts':
      "#!/usr/bin/env node\nimport { Worker } from 'node:worker_threads';\nimport { greeting } from './store/greeting.ts';\n" +
      "new Worker(new URL('./store/writer.ts', import.meta.url), { workerData: greeting });\n",
    'src/store/greeting.ts': "export const greeting: string = 'written';\n",
    'src/store/writer.ts':
      "import { workerData } from 'node:worker_threads';\n\nconsole.log(workerData as string);\n",
    'src/store/0001.sql': 'SELECT 1;\n',
  });
  linkModules(root);
  build(root);
  const output = execFileSync(process.execPath, [join(root, 'dist/main.js')], { encoding: 'utf8' });
  assert.equal(output, 'written\n');
  assert.ok(readText(root, 'dist/main.js').startsWith('#!/usr/bin/env node\n'));
  assert.equal(readText(root, 'dist/store/0001.sql'), 'SELECT 1;\n');
  assert.ok(existsSync(join(root, 'dist/store/greeting.d.ts')));
  assert.ok(!existsSync(join(root, 'dist/left-over.js')));
});
