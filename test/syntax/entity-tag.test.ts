import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  formatEntityTag,
  parseEntityTagList,
  strongMatch,
  weakMatch,
} from '../../src/http/syntax/entity-tag.ts';

const strong = (opaque: string) => ({ weak: false, opaque });
const weak = (opaque: string) => ({ weak: true, opaque });

test('reads the entity-tag examples of RFC 9110 §8.8.3 and §13.1', () => {
  assert.deepEqual(parseEntityTagList('"xyzzy"'), [strong('xyzzy')]);
  assert.deepEqual(parseEntityTagList('W/"xyzzy"'), [weak('xyzzy')]);
  assert.deepEqual(parseEntityTagList('""'), [strong('')]);
  assert.deepEqual(parseEntityTagList('"xyzzy", "r2d2xxxx", "c3piozzzz"'), [
    strong('xyzzy'),
    strong('r2d2xxxx'),
    strong('c3piozzzz'),
  ]);
  assert.deepEqual(parseEntityTagList('W/"xyzzy", W/"r2d2xxxx"'), [weak('xyzzy'), weak('r2d2xxxx')]);
  assert.equal(parseEntityTagList('*'), '*');
  assert.equal(parseEntityTagList(' *\t'), '*');
});

test('takes commas inside quotes, empty elements, whitespace and obs-text', () => {
  assert.deepEqual(parseEntityTagList('"a,b" ,\t"c"'), [strong('a,b'), strong('c')]);
  assert.deepEqual(parseEntityTagList(', ,"a",, W/"b",'), [strong('a'), weak('b')]);
  assert.deepEqual(parseEntityTagList('"\x80\xff"'), [strong('\x80\xff')]);
  assert.deepEqual(parseEntityTagList('"a\\"'), [strong('a\\')]);
  assert.deepEqual(parseEntityTagList(''), []);
});

test('refuses what is not a list of entity tags', () => {
  const bad = ['xyzzy', '"a', 'a"', '"', 'w/"a"', 'W/ "a"', 'W/', '"a" "b"', '"a""b"', '*, "a"', '"a", *'];
  for (const value of [...bad, '"a b"', '"a\x7f"', '"a\u0100"', '"a\n"', '**', '"a";q=1']) {
    assert.equal(parseEntityTagList(value), undefined, value);
  }
});

test('compares as the table of RFC 9110 §8.8.3.2', () => {
  assert.deepEqual([strongMatch(weak('1'), weak('1')), weakMatch(weak('1'), weak('1'))], [false, true]);
  assert.deepEqual([strongMatch(weak('1'), weak('2')), weakMatch(weak('1'), weak('2'))], [false, false]);
  assert.deepEqual([strongMatch(weak('1'), strong('1')), weakMatch(weak('1'), strong('1'))], [false, true]);
  assert.deepEqual([strongMatch(strong('1'), weak('1')), weakMatch(strong('1'), weak('1'))], [false, true]);
  assert.deepEqual(
    [strongMatch(strong('1'), strong('1')), weakMatch(strong('1'), strong('1'))],
    [true, true],
  );
});

test('writes a tag, and throws RangeError for a content that would break out of its quotes', () => {
  assert.equal(formatEntityTag(strong('x')), '"x"');
  assert.equal(formatEntityTag(weak('x')), 'W/"x"');
  assert.throws(() => formatEntityTag(strong('a"b')), RangeError);
  assert.throws(() => formatEntityTag(strong('a b')), RangeError);
});
