import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findNameProblems } from '../../scripts/checks/names.ts';
import { assertNoProblems, makeTree, placesOf } from './fixture-tree.ts';

const treeOf = (...paths: readonly string[]) => Object.fromEntries(paths.map((path) => [path, '']));

test('finds names that say nothing, as a file, a folder or an ending', (t) => {
  const root = makeTree(
    t,
    treeOf(
      'src/accounts/types.ts',
      'src/accounts/session-manager.ts',
      'src/lib/token.ts',
      'src/model/interfaces.ts',
      'test/helpers/open.ts',
      'bench/utils.test.ts',
    ),
  );
  assert.deepEqual(placesOf(findNameProblems(root)), [
    'bench/utils.test.ts',
    'src/accounts/session-manager.ts',
    'src/accounts/types.ts',
    'src/lib',
    'src/model/interfaces.ts',
    'test/helpers',
  ]);
});

test('finds names that are not kebab-case', (t) => {
  const root = makeTree(t, treeOf('src/http/EntityTag.ts', 'src/http/media_type.ts', 'src/webHooks/send.ts'));
  assert.deepEqual(placesOf(findNameProblems(root)), [
    'src/http/EntityTag.ts',
    'src/http/media_type.ts',
    'src/webHooks',
  ]);
});

test('leaves names of things alone', (t) => {
  const root = makeTree(
    t,
    treeOf(
      'src/accounts/shared-secret.ts',
      'src/http/base64.ts',
      'src/http/media-type.ts',
      'examples/shop/comity.config.ts',
    ),
  );
  assertNoProblems(findNameProblems(root));
});

test('finds names of source files that say what they are only with their folder', (t) => {
  const paths = ['src/accounts/resources.ts', 'src/store/reader-thread.ts', 'test/accounts/parts.ts'];
  const root = makeTree(t, treeOf(...paths));
  assert.deepEqual(placesOf(findNameProblems(root)), ['src/accounts/resources.ts']);
});
