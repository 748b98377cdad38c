import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findSizeProblems } from '../../scripts/checks/sizes.ts';
import { assertNoProblems, makeTree } from './fixture-tree.ts';

const lines = (count: number): string => '// line\n'.repeat(count);
const functionOf = (count: number, opening = 'export function long() {'): string =>
  `${opening}\n${'  // line\n'.repeat(count - 2)}}\n`;
const messagesOf = (problems: readonly { message: string }[]) => problems.map(({ message }) => message);

test('a file may have 500 lines and not 501', (t) => {
  const root = makeTree(t, { 'src/edge.ts': lines(500), 'src/over.ts': lines(501) });
  const message = 'The file has 501 lines, the limit is 500';
  assert.deepEqual(findSizeProblems(root, []), [{ file: 'src/over.ts', line: 1, message }]);
});

test('a file of tests may have 600 lines and not 601', (t) => {
  const root = makeTree(t, { 'test/edge.test.ts': lines(600), 'test/over.test.ts': lines(601) });
  const message = '601 lines: no file may have more than 600; split it';
  assert.deepEqual(findSizeProblems(root, []), [{ file: 'test/over.test.ts', message }]);
});

test('no exception takes a file past 600 lines', (t) => {
  const root = makeTree(t, { 'src/over.ts': lines(601) });
  const found = findSizeProblems(root, [{ file: 'src/over.ts', linesMax: 600, reason: 'a table' }]);
  assert.ok(messagesOf(found).includes('601 lines: no file may have more than 600; split it'));
});

test('a function may have 70 lines and not 71, whatever its form', (t) => {
  const root = makeTree(t, {
    'src/edge.ts': functionOf(70),
    'src/declared.ts': functionOf(71),
    'src/arrow.ts': functionOf(71, 'export const go = () => {'),
    'src/method.ts': `export class Pool {\n${functionOf(71, '  #take() {')}}\n`,
    'src/callback.ts': `${functionOf(71, 'setTimeout(() => {').trimEnd()}, 1);\n`,
    'test/title.test.ts': `${functionOf(71, "test('closes', () => {").trimEnd()});\n`,
  });
  assert.deepEqual(messagesOf(findSizeProblems(root, [])), [
    'The function go has 71 lines, the limit is 70',
    'The function setTimeout() has 71 lines, the limit is 70',
    'The function long has 71 lines, the limit is 70',
    'The function Pool.#take has 71 lines, the limit is 70',
    "The function test('closes') has 71 lines, the limit is 70",
  ]);
});

test('the body of describe only groups tests and has no limit', (t) => {
  const root = makeTree(t, {
    'test/group.test.ts': `${functionOf(100, "describe('a group', () => {").trimEnd()});\n`,
  });
  assertNoProblems(findSizeProblems(root, []));
});

test('an exception holds up to its own limit', (t) => {
  const root = makeTree(t, { 'src/table.ts': lines(520), 'src/long.ts': functionOf(90) });
  const allow = (file: number, fn: number) => [
    { file: 'src/table.ts', linesMax: file, reason: 'one table' },
    { file: 'src/long.ts', function: 'long', linesMax: fn, reason: 'one switch' },
  ];
  assertNoProblems(findSizeProblems(root, allow(520, 90)));
  assert.deepEqual(messagesOf(findSizeProblems(root, allow(519, 89))), [
    'The function long has 90 lines, the limit is 89',
    'The file has 520 lines, the limit is 519',
  ]);
});

test('an exception that nothing needs any more fails', (t) => {
  const root = makeTree(t, { 'src/short.ts': functionOf(70) });
  const found = findSizeProblems(root, [
    { file: 'src/short.ts', linesMax: 420, reason: 'was long' },
    { file: 'src/short.ts', function: 'long', linesMax: 80, reason: 'was long' },
    { file: 'src/gone.ts', linesMax: 320, reason: 'was there' },
  ]);
  assert.deepEqual(messagesOf(found), [
    'src/short.ts needs no exception: remove it',
    'src/short.ts long needs no exception: remove it',
    'src/gone.ts needs no exception: remove it',
  ]);
});

test('an exception has to come down with its file', (t) => {
  const root = makeTree(t, { 'src/table.ts': lines(510) });
  const found = findSizeProblems(root, [{ file: 'src/table.ts', linesMax: 600, reason: 'one table' }]);
  assert.deepEqual(messagesOf(found), ['src/table.ts has 510 lines: lower its 600']);
});
