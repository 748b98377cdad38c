import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatQueryString, parseQueryString } from '../../src/http/syntax/query-string.ts';

test('reads pairs in order, repeated names, plus as space, and missing values', () => {
  assert.deepEqual(parseQueryString('a=1&b=x+y%20z&a=2&c&=d&e=f=g&&'), [
    ['a', '1'],
    ['b', 'x y z'],
    ['a', '2'],
    ['c', ''],
    ['', 'd'],
    ['e', 'f=g'],
  ]);
  assert.deepEqual(parseQueryString('%C3%A9=%2B&price[gte]=10'), [
    ['é', '+'],
    ['price[gte]', '10'],
  ]);
  assert.deepEqual(parseQueryString(''), []);
});

test('refuses bad escapes, bytes that are not UTF-8, and lone surrogates', () => {
  for (const text of [
    'a=%',
    'a=%2',
    'a=%zz',
    '%=1',
    'a=%ff',
    'a=%c0%80',
    'a=%ed%a0%80',
    'a=\ud800',
    'ok=1&a=%C3',
  ]) {
    assert.equal(parseQueryString(text), undefined, text);
  }
});

test('refuses more pairs than the bound', () => {
  assert.equal(parseQueryString('a&a&a', 3)?.length, 3);
  assert.equal(parseQueryString('a&a&a&a', 3), undefined);
  assert.equal(parseQueryString('a&'.repeat(10_000))?.length, 10_000);
  assert.equal(parseQueryString('a&'.repeat(10_001)), undefined);
});

test('writes as URLSearchParams does', () => {
  const pairs: [string, string][] = [
    ["a b!'()~*-._", 'é😀&=+%'],
    ['', ''],
    ['x', '\ud800'],
  ];
  assert.equal(formatQueryString(pairs), new URLSearchParams(pairs).toString());
});
