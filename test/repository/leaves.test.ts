import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findLeafProblems } from '../../scripts/checks/leaves.ts';
import { makeTree, placesOf } from './fixture-tree.ts';

const tree = {
  'src/store/open.ts':
    "import { a } from './lock.ts';\nimport { b } from './sqlite/line.ts';\nimport { c } from './long.ts';\n",
  'src/store/lock.ts': 'export const a = 1;\n',
  'src/store/sqlite/line.ts': 'export const b = 1;\n',
  'src/store/long.ts': `${'// \n'.repeat(199)}export const c = 1;\n`,
  'src/store/two.ts': 'export const d = 1;\n',
  'src/store/one-user.ts': "import { d } from './two.ts';\nexport const load = () => import('./later.ts');\n",
  'src/store/later.ts': 'export const e = 1;\n',
  'src/server/other-user.ts': "import { d } from '../store/two.ts';\nimport { e } from '../store/far.ts';\n",
  'src/store/far.ts': `${'// \n'.repeat(198)}export const e = 1;\n`,
  'src/server/long-user.ts': `import { f } from './wide.ts';\n${'// \n'.repeat(400)}`,
  'src/server/wide.ts': `${'// \n'.repeat(100)}export const f = 1;\n`,
};

test('finds files under 200 lines with one importer that fit into it and are not loaded later', (t) => {
  const problems = findLeafProblems(makeTree(t, tree), new Map());
  assert.deepEqual(placesOf(problems), ['src/store/far.ts', 'src/store/lock.ts', 'src/store/sqlite/line.ts']);
});

test('takes a reason for one that stays, and refuses one that applies to nothing', (t) => {
  const exceptions = new Map([
    ['src/store/lock.ts', 'a reason'],
    ['src/store/sqlite/line.ts', 'a reason'],
    ['src/store/far.ts', 'a reason'],
    ['src/store/two.ts', 'a reason'],
  ]);
  const problems = findLeafProblems(makeTree(t, tree), exceptions);
  assert.deepEqual(problems, [
    { file: 'scripts/leaf-exceptions.ts', message: 'src/store/two.ts no longer needs an exception' },
  ]);
});
