import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findCycleProblems } from '../../../scripts/checks/cycles.ts';
import { assertNoProblems, makeTree } from '../../repository/fixture-tree.ts';

test('finds a cycle over three files and shows the way round', (t) => {
  const root = makeTree(t, {
    'src/a.ts': "import './b.ts';\nimport './d.ts';\n",
    'src/b.ts': "import './sub/c.ts';\n",
    'src/sub/c.ts': "import '../a.ts';\n",
    'src/d.ts': 'export const d = 1;\n',
  });
  const message = 'Import cycle: src/a.ts -> src/b.ts -> src/sub/c.ts -> src/a.ts';
  assert.deepEqual(findCycleProblems(root), [{ file: 'src/a.ts', message }]);
});

test('finds a cycle that only types close', (t) => {
  const root = makeTree(t, {
    'test/a.ts': "import type { B } from './b.ts';\nexport type A = B;\n",
    'test/b.ts': "import type { A } from './a.ts';\nexport type B = A;\n",
  });
  assert.equal(findCycleProblems(root).length, 1);
});

test('finds a file that imports itself', (t) => {
  const root = makeTree(t, { 'src/a.ts': "import * as self from './a.ts';\nexport const a = self;\n" });
  assert.equal(findCycleProblems(root).length, 1);
});

test('tells separate cycles separately', (t) => {
  const root = makeTree(t, {
    'src/a.ts': "import './b.ts';\nimport './c.ts';\n",
    'src/b.ts': "import './a.ts';\n",
    'src/c.ts': "import './d.ts';\n",
    'src/d.ts': "import './c.ts';\n",
  });
  assert.deepEqual(
    findCycleProblems(root)
      .map(({ file }) => file)
      .sort(),
    ['src/a.ts', 'src/c.ts'],
  );
});

test('a diamond is not a cycle, nor is a worker that its own module starts', (t) => {
  const root = makeTree(t, {
    'src/a.ts': "import './b.ts';\nimport './c.ts';\n",
    'src/b.ts': "import './d.ts';\n",
    'src/c.ts': "import './d.ts';\n",
    'src/d.ts': "export const worker = new URL('./a.ts', import.meta.url);\n",
  });
  assertNoProblems(findCycleProblems(root));
});
