import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findTraces } from '../../scripts/checks/traces.ts';
import { assertNoProblems, makeTree, placesOf } from './fixture-tree.ts';

test('finds absolute paths of one machine in any text', (t) => {
  const root = makeTree(t, {
    'docs/guide.md': 'Run it in /work/main.\n',
    'src/a.ts': "// A header.\nexport const path = '/tmp/store.db';\n",
    'examples/run.sh': 'cd /home/ada/comity\n',
    'test/b.ts': "// A header.\nexport const url = 'file:///root/x';\n",
  });
  assert.deepEqual(placesOf(findTraces(root)), [
    'docs/guide.md:1',
    'examples/run.sh:1',
    'src/a.ts:2',
    'test/b.ts:2',
  ]);
});

test('leaves paths of URLs and folders with such names alone', (t) => {
  const root = makeTree(t, {
    'src/a.ts': "const a = 'src/work/a.ts';\nconst b = 'https://example.com/tmp/a';\nconst c = a + b;\n",
    'docs/a.md': 'The folder ./work/out, and /workers/1.\n',
  });
  assertNoProblems(findTraces(root));
});

test('finds a registry named as a host', (t) => {
  const root = makeTree(t, { 'docs/install.md': 'Fetched from https://registry.npmjs.org/comity.\n' });
  assert.deepEqual(placesOf(findTraces(root)), ['docs/install.md:1']);
});

test('finds unfinished work without an issue, in code only', (t) => {
  const root = makeTree(t, {
    'src/a.ts': '// TODO: later\n// FIXME(ada) soon\n// TODO(#12) when the store can\n',
    'docs/a.md': 'No TODO stays without an issue.\n',
  });
  assert.deepEqual(placesOf(findTraces(root)), ['src/a.ts:1', 'src/a.ts:2']);
});
