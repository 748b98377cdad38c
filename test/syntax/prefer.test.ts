import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatPreferenceApplied, parsePrefer } from '../../src/http/syntax/prefer.ts';

function read(value: string): unknown {
  return [...parsePrefer(value)].map(([name, one]) => [name, one.value, ...one.parameters]);
}

test('reads the examples of RFC 7240', () => {
  assert.deepEqual(read('respond-async, wait=100'), [
    ['respond-async', ''],
    ['wait', '100'],
  ]);
  assert.deepEqual(read('foo; bar'), [['foo', '', ['bar', '']]]);
  assert.deepEqual(read('foo; bar=""'), [['foo', '', ['bar', '']]]);
  assert.deepEqual(read('foo=""; bar'), [['foo', '', ['bar', '']]]);
  assert.deepEqual(read('priority=5'), [['priority', '5']]);
  assert.deepEqual(read('Lenient'), [['lenient', '']]);
  assert.deepEqual(read('return=minimal; foo="some parameter"'), [
    ['return', 'minimal', ['foo', 'some parameter']],
  ]);
});

test('counts the first of several with one name, whatever its case', () => {
  assert.deepEqual(read('return=minimal, Return=representation; x=1'), [['return', 'minimal']]);
  assert.deepEqual(read('a; b=1; B=2'), [['a', '', ['b', '1']]]);
});

test('takes bad whitespace around the equals sign and commas inside quotes', () => {
  assert.deepEqual(read('a = "x, y" ;; b\t=\tc ,, d'), [
    ['a', 'x, y', ['b', 'c']],
    ['d', ''],
  ]);
});

test('skips a malformed preference and reads the rest', () => {
  assert.deepEqual(read('=x, return=minimal'), [['return', 'minimal']]);
  assert.deepEqual(read('a b, c'), [['c', '']]);
  assert.deepEqual(read('a="x, c'), [['c', '']]);
  assert.deepEqual(read('a;=, c; d='), []);
  assert.deepEqual(read(''), []);
});

test('writes Preference-Applied', () => {
  const applied = [
    ['return', 'minimal'],
    ['respond-async', ''],
    ['x', 'a b'],
    ['no token', ''],
  ] as const;
  assert.equal(formatPreferenceApplied(applied), 'return=minimal, respond-async, x="a b"');
});
