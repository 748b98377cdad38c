import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  isUnderstoodTransferCoding,
  maxForwardsMax,
  parseMaxForwards,
} from '../../src/http/request-fields.ts';
import { parseContentCoding } from '../../src/http/syntax/accept.ts';
import { parseFieldList } from '../../src/http/syntax/field-value.ts';

test('reads the lists of RFC 9110 §5.6.1.2, empty elements skipped', () => {
  assert.deepEqual(parseFieldList('foo,bar'), ['foo', 'bar']);
  assert.deepEqual(parseFieldList('foo ,bar,'), ['foo', 'bar']);
  assert.deepEqual(parseFieldList('foo , ,bar,charlie'), ['foo', 'bar', 'charlie']);
  assert.deepEqual(parseFieldList('\tKeep-Alive, Upgrade '), ['keep-alive', 'upgrade']);
  assert.deepEqual(parseFieldList(', ,'), []);
  for (const value of ['a b', 'a;b', '"a"', 'a,é', 'a/b'])
    assert.equal(parseFieldList(value), undefined, value);
});

test('names content codings in their order, x-gzip as gzip', () => {
  assert.deepEqual(parseContentCoding('X-GZip, br'), ['gzip', 'br']);
  assert.deepEqual(parseContentCoding('x-compress'), ['compress']);
  assert.equal(parseContentCoding('gzip;q=1'), undefined);
});

test('understands only one chunked as transfer coding', () => {
  for (const value of ['chunked', 'Chunked', ' chunked\t'])
    assert.equal(isUnderstoodTransferCoding(value), true);
  const bad = [
    '',
    'gzip',
    'gzip, chunked',
    'chunked, chunked',
    'chunked,',
    'chunked;a=b',
    'xchunked',
    'chunked\v',
  ];
  for (const value of bad) assert.equal(isUnderstoodTransferCoding(value), false, value);
});

test('reads Max-Forwards, cutting what no path is long enough for', () => {
  assert.equal(parseMaxForwards('0'), 0);
  assert.equal(parseMaxForwards('010 '), 10);
  assert.equal(parseMaxForwards('9'.repeat(500)), maxForwardsMax);
  for (const value of ['', ' ', '-1', '+1', '1.0', '1, 2', '0x1', '1 2'])
    assert.equal(parseMaxForwards(value), undefined, value);
});
