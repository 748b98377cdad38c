import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatLink, parseLink } from '../../src/http/syntax/link.ts';

function read(value: string): unknown {
  return parseLink(value)?.map(({ target, rel, parameters }) => [target, rel, ...Object.entries(parameters)]);
}

test('reads the examples of RFC 8288 §3.5', () => {
  assert.deepEqual(read('<http://example.com/TheBook/chapter2>; rel="previous"; title="previous chapter"'), [
    ['http://example.com/TheBook/chapter2', 'previous', ['title', 'previous chapter']],
  ]);
  assert.deepEqual(read('</>; rel="http://example.net/foo"'), [['/', 'http://example.net/foo']]);
  assert.deepEqual(read('</terms>; rel="copyright"; anchor="#foo"'), [
    ['/terms', 'copyright', ['anchor', '#foo']],
  ]);
  assert.deepEqual(read('<http://example.org/>; rel="start http://example.net/relation/other"'), [
    ['http://example.org/', 'start http://example.net/relation/other'],
  ]);
  assert.deepEqual(read('<https://example.org/>; rel="start", <https://example.org/index>; rel="index"'), [
    ['https://example.org/', 'start'],
    ['https://example.org/index', 'index'],
  ]);
});

test('keeps commas and semicolons of a target, the first of two rels, and attributes without a value', () => {
  assert.deepEqual(read('</a,b;c> ; Rel = next;; rel=prev ;crossorigin'), [
    ['/a,b;c', 'next', ['crossorigin', '']],
  ]);
  assert.deepEqual(read('</a>; rel=x; __proto__="y"'), [['/a', 'x', ['__proto__', 'y']]]);
});

test('leaves out links without a rel, and refuses a malformed list', () => {
  assert.deepEqual(read('</a>, </b>; rel=x,'), [['/b', 'x']]);
  for (const value of [
    '/a',
    '</a',
    '</a>; rel="x',
    '</a> rel=x',
    '<a b>; rel=x',
    '</a>; rel=',
    '</a>; rel=x y',
  ]) {
    assert.equal(parseLink(value), undefined, value);
  }
});

test('writes links that no target or attribute can break out of', () => {
  const links = [
    { target: '/p?a=1&b=[2]', rel: 'next' },
    { target: '/é><x \n', rel: 'a"b', parameters: { title: 'x\r\ny', 'title*': "UTF-8''%e2", 'b d': '' } },
  ];
  const text =
    '</p?a=1&b=[2]>; rel="next", </%C3%A9%3E%3Cx%20%0A>; rel="a\\"b"; title="x??y"; title*=UTF-8\'\'%e2';
  assert.equal(formatLink(links), text);
});
