import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatJsonPointer, parseJsonPointer } from '../../src/http/syntax/json-pointer.ts';

test('reads and writes the pointers of RFC 6901 §5', () => {
  const vectors: [string, string[]][] = [
    ['', []],
    ['/foo', ['foo']],
    ['/foo/0', ['foo', '0']],
    ['/', ['']],
    ['/a~1b', ['a/b']],
    ['/c%d', ['c%d']],
    ['/i\\j', ['i\\j']],
    ['/k"l', ['k"l']],
    ['/ ', [' ']],
    ['/m~0n', ['m~n']],
    ['/~01', ['~1']],
    ['/a/-', ['a', '-']],
  ];
  for (const [text, tokens] of vectors) {
    assert.deepEqual(parseJsonPointer(text), tokens, text);
    assert.equal(formatJsonPointer(tokens), text);
  }
});

test('refuses a pointer without its slash and a tilde without 0 or 1', () => {
  for (const text of ['a', '#/a', '/~', '/~2', '/a~/b', '/~0~'])
    assert.equal(parseJsonPointer(text), undefined, text);
});
