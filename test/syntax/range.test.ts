import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  formatContentRange,
  formatUnsatisfiedRange,
  isWholeContentRange,
  partsMax,
  selectExtents,
} from '../../src/http/syntax/range.ts';
import { threadMs } from '../harness/processor-time.ts';

/** The extents in a representation of 100 octets, with the last octet included. */
function selected(range: string, bytes = 100): string | undefined {
  return selectExtents(range, bytes)
    ?.map(({ first, end }) => `${first}-${end - 1}`)
    .join(' ');
}

const none = '';

for (const [range, expected] of [
  ['bytes=0-9', '0-9'],
  ['bytes=99-', '99-99'],
  ['bytes=0-', '0-99'],
  ['bytes=-1', '99-99'],
  ['bytes=-100', '0-99'],
  ['bytes=-1000', '0-99'],
  ['bytes=90-1000', '90-99'],
  ['BYTES=0-9', '0-9'],
  [' bytes=0-9\t', '0-9'],
  ['bytes= 0-9 ,\t20-29', '0-9 20-29'],
  ['bytes=,, 0-9,,20-29,', '0-9 20-29'],
  ['bytes=00-009', '0-9'],
  [`bytes=0-${'9'.repeat(400)}`, '0-99'],
  // In the order of the field; joined where they overlap or adjoin, at the place of the first of them.
  ['bytes=50-59,0-9', '50-59 0-9'],
  ['bytes=0-9,10-19', '0-19'],
  ['bytes=0-9,5-19,-10', '0-19 90-99'],
  ['bytes=50-59,0-9,55-69', '50-69 0-9'],
  ['bytes=20-29,0-9,10-19', '0-29'],
  ['bytes=0-99,5-6,7-8', '0-99'],
  // What lies beyond is left out.
  ['bytes=0-0,200-300', '0-0'],
  ['bytes=100-', none],
  [`bytes=${'9'.repeat(400)}-`, none],
  ['bytes=-0', none],
  ['bytes=200-300,-0', none],
] as const) {
  test(`selects ${expected === none ? 'nothing' : expected} by ${range.slice(0, 40)} (RFC 9110 §14.1.2)`, () => {
    assert.equal(selected(range), expected);
  });
}

for (const range of [
  ...['', 'bytes', 'bytes=', 'bytes=,', 'bytes=-', 'bytes=a-b', 'bytes=0', 'bytes=9-0', 'bytes=0-9;5-6'],
  ...['bytes=0-9 20-29', 'bytes =0-9', 'bytes:0-9', 'bytes=0x0-9', 'bytes=--1', 'bytes=0 - 9', 'bytes=1.5-2'],
  ...['lines=0-9', 'octets=0-9', 'bytes=0-9,x', 'bytes=０-９', 'bytes=+0-9', 'bytes=0-9-'],
]) {
  test(`ignores ${JSON.stringify(range)} (RFC 9110 §14.2)`, () => {
    assert.equal(selected(range), undefined);
  });
}

test('selects nothing of an empty representation', () => {
  for (const range of ['bytes=0-', 'bytes=-1', 'bytes=0-0']) assert.equal(selected(range, 0), none);
});

test(`takes ${partsMax} parts, and ignores a field with more, however small they are`, () => {
  const ranges = (count: number) =>
    `bytes=${Array.from({ length: count }, (_, at) => `${at * 2}-${at * 2}`)}`;
  assert.equal(selected(ranges(partsMax))?.split(' ').length, partsMax);
  assert.equal(selected(ranges(partsMax + 1)), undefined);
  assert.equal(selected(ranges(5000)), undefined);
  const adjoining = `bytes=${Array.from({ length: 99 }, (_, at) => `${at}-${at}`).reverse()}`;
  assert.equal(selected(adjoining), '0-98');
});

test('reads a field of 16 KiB in less than 20 ms of its thread', () => {
  const many = `bytes=${'0-0,'.repeat(4000)}`;
  const commas = `bytes=${','.repeat(16_000)}`;
  const begun = threadMs();
  assert.equal(selected(many), '0-0');
  assert.equal(selected(commas), undefined);
  assert.ok(threadMs() - begun < 20);
});

test('writes Content-Range (RFC 9110 §14.4)', () => {
  assert.equal(formatContentRange({ first: 42, end: 1234 }, 1234), 'bytes 42-1233/1234');
  assert.equal(formatUnsatisfiedRange(1234), 'bytes */1234');
});

test('tells a whole Content-Range of a request from a part', () => {
  for (const [value, bytes, isWhole] of [
    ['bytes 0-99/100', 100, true],
    ['Bytes  0-0/1', 1, true],
    ['bytes 0-99/100', 99, false],
    ['bytes 0-98/100', 99, false],
    ['bytes 1-99/100', 99, false],
    ['bytes 0-99/*', 100, false],
    ['bytes */100', 100, false],
    ['items 0-99/100', 100, false],
  ] as const)
    assert.equal(isWholeContentRange(value, bytes), isWhole, `${value} of ${bytes}`);
});
