import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findImportProblems } from '../../scripts/checks/imports.ts';
import type { FolderRow } from '../../scripts/folder-row.ts';
import { assertNoProblems, makeTree } from './fixture-tree.ts';

const table: readonly FolderRow[] = [
  { folder: 'src/http/syntax', may: [], node: [], packages: [] },
  { folder: 'src/http', may: ['src/http/syntax'], node: [], packages: [] },
  { folder: 'src/store', may: ['src/http'], node: ['node:path'], packages: ['pg'] },
  { folder: 'src/main.ts', may: ['src/store'], node: 'any', packages: [] },
];

const sound = {
  'package.json': '{"dependencies": {"pg": "1.0.0"}}',
  'src/http/syntax/accept.ts': 'export const a = 1;\n',
  'src/http/problem.ts': "import { a } from './syntax/accept.ts';\nexport const p = a;\n",
  'src/store/open.ts':
    "import { Pool } from 'pg';\nimport { join } from 'node:path';\nexport const o = [Pool, join];\n",
  'src/main.ts': "import './store/open.ts';\nimport 'node:net';\n",
};

test('a tree that follows its table is left alone', (t) => {
  assertNoProblems(findImportProblems(makeTree(t, sound), table));
});

test('the manifest and its folder may be read by their URLs', (t) => {
  const version = "new URL('../../package.json', import.meta.url);\nnew URL('../../', import.meta.url);\n";
  assertNoProblems(findImportProblems(makeTree(t, { ...sound, 'src/store/version.ts': version }), table));
});

const wrongImports: Readonly<Record<string, readonly [file: string, text: string, message: string]>> = {
  'an import against the arrow': [
    'src/http/syntax/link.ts',
    "import { p } from '../problem.ts';\n",
    'src/http/syntax may not import from src/http ("../problem.ts")',
  ],
  'an import of a type against the arrow': [
    'src/http/outcome.ts',
    "import type { O } from '../store/open.ts';\n",
    'src/http may not import from src/store ("../store/open.ts")',
  ],
  'a type named inside another type': [
    'src/http/outcome.ts',
    "export type O = import('../store/open.ts').O;\n",
    'src/http may not import from src/store ("../store/open.ts")',
  ],
  'a re-export against the arrow': [
    'src/http/outcome.ts',
    "export { o } from '../store/open.ts';\n",
    'src/http may not import from src/store ("../store/open.ts")',
  ],
  'an import at run time': [
    'src/http/outcome.ts',
    "export const late = () => import('../store/open.ts');\n",
    'src/http may not import from src/store ("../store/open.ts")',
  ],
  'a worker started from a forbidden folder': [
    'src/http/outcome.ts',
    "export const worker = new URL('../store/open.ts', import.meta.url);\n",
    'src/http may not import from src/store ("../store/open.ts")',
  ],
  'an arrow that skips a row that it may reach only through another': [
    'src/store/read.ts',
    "import { a } from '../http/syntax/accept.ts';\n",
    'src/store may not import from src/http/syntax ("../http/syntax/accept.ts")',
  ],
  'a module of Node in a pure folder': [
    'src/http/body.ts',
    "import { inspect } from 'node:util';\n",
    'src/http may not import node:util',
  ],
  'a module of Node that the row does not name': [
    'src/store/read.ts',
    "import { connect } from 'node:net';\n",
    'src/store may not import node:net',
  ],
  'a package that the row does not name': [
    'src/http/body.ts',
    "import { Pool } from 'pg/esm';\n",
    'src/http may not import the package pg',
  ],
  'a file outside the table': [
    'src/store/version.ts',
    "import manifest from '../../package.json' with { type: 'json' };\n",
    'src/store may not import "package.json", which no row covers',
  ],
};

for (const [fault, [file, text, message]] of Object.entries(wrongImports)) {
  test(`finds ${fault}`, (t) => {
    const root = makeTree(t, { ...sound, [file]: `\n${text}` });
    assert.deepEqual(findImportProblems(root, table), [{ file, line: 2, message }]);
  });
}

test('finds a folder that no row covers', (t) => {
  const root = makeTree(t, { ...sound, 'src/extras/a.ts': 'export const a = 1;\n' });
  const message = 'No row of scripts/import-table.ts covers this file';
  assert.deepEqual(findImportProblems(root, table), [{ file: 'src/extras/a.ts', message }]);
});

test('finds a row whose folder is gone', (t) => {
  const gone = { folder: 'src/egress', may: [], node: [], packages: [] };
  const found = findImportProblems(makeTree(t, sound), [...table, gone]);
  assert.deepEqual(
    found.map(({ message }) => message),
    ['The folder src/egress does not exist: remove its row'],
  );
});

test('finds an arrow to a row that does not exist', (t) => {
  const rows = table.map((row) =>
    row.folder === 'src/main.ts' ? { ...row, may: ['src/store', 'src/cli'] } : row,
  );
  const found = findImportProblems(makeTree(t, sound), rows);
  assert.deepEqual(
    found.map(({ message }) => message),
    ['src/main.ts may import src/cli, which has no row'],
  );
});

test('finds arrows that close a circle', (t) => {
  const rows = table.map((row) => (row.folder === 'src/http/syntax' ? { ...row, may: ['src/store'] } : row));
  const found = findImportProblems(makeTree(t, sound), rows).map(({ message }) => message);
  assert.ok(found.includes('The edge from src/http/syntax to src/store closes a cycle'), found.join('\n'));
});

test('finds a package that a row allows and none of its files imports', (t) => {
  const rows = table.map((row) => (row.folder === 'src/http' ? { ...row, packages: ['pg'] } : row));
  const found = findImportProblems(makeTree(t, sound), rows);
  assert.deepEqual(
    found.map(({ message }) => message),
    ['src/http does not import pg: remove it from its row'],
  );
});

test('finds a dependency that nothing imports', (t) => {
  const root = makeTree(t, { ...sound, 'package.json': '{"dependencies": {"pg": "1.0.0", "ws": "8.0.0"}}' });
  assert.deepEqual(findImportProblems(root, table), [
    { file: 'package.json', message: 'No file of src/ imports ws' },
  ]);
});

test('accepts a package of the bundle, which users of this one do not install', (t) => {
  const root = makeTree(t, { ...sound, 'package.json': '{"devDependencies": {"pg": "1.0.0"}}' });
  assert.deepEqual(findImportProblems(root, table), []);
});

test('holds an import by the name of this package to the row of its entry point', (t) => {
  const own = "import { one } from 'comity/webhooks';\n";
  const root = makeTree(t, { ...sound, 'src/store/open.ts': own + (sound['src/store/open.ts'] ?? '') });
  const message = 'src/store may not import "src/webhooks/index.ts", which no row covers';
  assert.deepEqual(findImportProblems(root, table), [{ file: 'src/store/open.ts', line: 1, message }]);
});

test('finds a package that is used but is not a dependency', (t) => {
  const root = makeTree(t, { ...sound, 'package.json': '{"devDependencies": {"ws": "8.0.0"}}' });
  const message = 'pg is not among the dependencies of package.json';
  assert.deepEqual(findImportProblems(root, table), [{ file: 'src/store/open.ts', line: 1, message }]);
});
