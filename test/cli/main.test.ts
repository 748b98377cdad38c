/** The entry point of the program in an old Node: a sentence, and no stack trace. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { parse } from 'acorn';
import { programFile } from '../harness/command-line.ts';

test('is read by any Node that knows import(), and imports nothing at first', () => {
  const { body } = parse(readFileSync(programFile(), 'utf8'), {
    ecmaVersion: 2020,
    sourceType: 'module',
    allowHashBang: true,
  });
  assert.deepEqual(
    body.filter(({ type }) => type === 'ImportDeclaration'),
    [],
  );
});

test('tells which Node is needed', () => {
  const old = `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '20.19.1' } })`;
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ['--import', `data:text/javascript,${encodeURIComponent(old)}`, programFile(), 'serve'],
    { encoding: 'utf8' },
  );
  assert.deepEqual(
    [status, stdout, stderr],
    [1, '', 'comity: needs Node 24.7 or later, and this is 20.19.1\n'],
  );
});
