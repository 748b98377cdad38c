import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findHeaderProblems, findNamedFileProblems, findVagueWords } from '../../scripts/checks/comments.ts';
import { assertNoProblems, makeTree, placesOf } from './fixture-tree.ts';

test('finds files that open with code, with an empty comment, or after a gap', (t) => {
  const root = makeTree(t, {
    'src/code.ts': 'export const a = 1;\n/** Says what a is, but too late. */\n',
    'src/empty.ts': '/** */\nexport const a = 1;\n',
    'bench/gap.ts': '\n\n/** A comment that does not open the file. */\nexport const a = 1;\n',
  });
  assert.deepEqual(placesOf(findHeaderProblems(root)), ['bench/gap.ts:1', 'src/code.ts:1', 'src/empty.ts:1']);
});

test('finds a header of eleven lines and allows ten', (t) => {
  const header = (count: number) => `/**\n${' * One more line.\n'.repeat(count)} */\nexport const a = 1;\n`;
  const root = makeTree(t, { 'src/eleven.ts': header(11), 'src/ten.ts': header(10) });
  assert.deepEqual(placesOf(findHeaderProblems(root)), ['src/eleven.ts:1']);
});

test('finds a header of a source file that begins indirectly', (t) => {
  const header = (words: string) => `/** ${words} */\nexport const a = 1;\n`;
  const root = makeTree(t, {
    'src/of.ts': header('Of entity tags, the comparison.'),
    'src/office.ts': header('Offices, and what they keep.'),
    'scripts/what.ts': header('What a check finds in the tree.'),
    'bench/how.ts': header('How soon an event arrives.'),
  });
  assert.deepEqual(placesOf(findHeaderProblems(root)), ['scripts/what.ts:1', 'src/of.ts:1']);
});

test('takes a block, a run of line comments, and a first line that names the interpreter', (t) => {
  const root = makeTree(t, {
    'src/block.ts': '/** Entity tags of RFC 9110, section 8.8.3. */\nexport const a = 1;\n',
    'src/lines.ts': '// Entity tags\n// of RFC 9110.\nexport const a = 1;\n',
    'src/main.ts': '#!/usr/bin/env node\n/** Turns arguments into an exit code. */\nexport const a = 1;\n',
  });
  assertNoProblems(findHeaderProblems(root));
});

test('finds files and folders that a comment names and that do not exist, or files not alone', (t) => {
  const root = makeTree(t, {
    'src/http/field.ts': [
      '/** Fields, as value.ts, http/name.ts and octets.ts beside it, `other.ts` not. */',
      'export const a = 1; // see store/field.ts,',
      '/**',
      ' * and gone/field.ts, and store.ts',
      ' */',
      '// Folders are store/, gone/ and src/model/.',
    ].join('\n'),
    'src/http/octets.ts': '',
    'src/http/name.ts': '',
    'src/model/octets.ts': '',
    'src/model/store.ts': '',
    'src/store/field.ts': '',
    'src/store/store.ts': '',
    'test/store.ts': '/** A store, as store.ts of this folder. */',
  });
  assert.deepEqual(
    findNamedFileProblems(root).map(({ file, line, message }) => `${file}:${line} ${message}`),
    [
      'src/http/field.ts:1 No file is named value.ts',
      'src/http/field.ts:4 No file is named gone/field.ts',
      'src/http/field.ts:4 2 files are named store.ts: add the folder',
      'src/http/field.ts:6 No folder is named gone/',
    ],
  );
});

test('finds a vague word in comments of the sources, and not in code', (t) => {
  const root = makeTree(t, {
    'src/a.ts': "/** A store,\n * and nobody else. */\nexport const told = 'tells';\n",
    'src/b.ts': '/** A counter of untold things. */\nexport const a = 1; // Whoever asks.\n',
    'test/c.ts': '/** A test tells. */',
  });
  assert.deepEqual(
    findVagueWords(root).map(({ file, line, message }) => `${file}:${line} ${message}`),
    [
      'src/a.ts:2 "nobody": name the action, or the one who acts',
      'src/b.ts:2 "Whoever": name the action, or the one who acts',
    ],
  );
});
