import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatMediaType, parseMediaType } from '../../src/http/syntax/media-type.ts';

test('takes the four equivalent spellings of RFC 9110 §8.3.1', () => {
  for (const value of [
    'text/html;charset=utf-8',
    'Text/HTML;Charset="utf-8"',
    'text/html; charset="utf-8"',
    'text/html;charset="u\\tf-8"',
  ]) {
    const read = parseMediaType(value);
    assert.equal(read?.type, 'text/html', value);
    assert.deepEqual([...(read?.parameters ?? [])], [['charset', 'utf-8']], value);
  }
});

test('takes whitespace around semicolons, empty parameters, and semicolons inside quotes', () => {
  const read = parseMediaType(' multipart/form-data ;; boundary="a;b=c \\"d\\"" ; ');
  assert.deepEqual([...(read?.parameters ?? [])], [['boundary', 'a;b=c "d"']]);
  assert.equal(parseMediaType('application/json')?.parameters.size, 0);
});

test('refuses malformed types and a parameter given twice', () => {
  const bad = ['', 'text', 'text/', '/html', 'text /html', 'text/ html', 'text/html charset=utf-8', 'a/b/c'];
  const parameters = [
    'a/b;c',
    'a/b;c =d',
    'a/b;c= d',
    'a/b;c="d',
    'a/b;c=',
    'a/b;c=d;C=e',
    'a/b;=d',
    'a/b, c/d',
  ];
  for (const value of [...bad, ...parameters]) assert.equal(parseMediaType(value), undefined, value);
});

test('writes parameters quoted only where they must be', () => {
  const parameters = new Map([
    ['charset', 'utf-8'],
    ['profile', 'a b"c'],
  ]);
  assert.equal(formatMediaType({ type: 'a/b', parameters }), 'a/b;charset=utf-8;profile="a b\\"c"');
});
