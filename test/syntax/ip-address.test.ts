/** Addresses in text (RFC 3986 §3.2.2, RFC 4291 §2.2). */
import assert from 'node:assert/strict';
import { isIPv4, isIPv6 } from 'node:net';
import { test } from 'node:test';
import fc from 'fast-check';
import { isIpv4Address, parseIpv6Address } from '../../src/http/syntax/uri.ts';

for (const [text, groups] of [
  ['::', [0, 0, 0, 0, 0, 0, 0, 0]],
  ['::1', [0, 0, 0, 0, 0, 0, 0, 1]],
  ['1::', [1, 0, 0, 0, 0, 0, 0, 0]],
  ['2001:db8::ff:FFFF', [0x2001, 0xdb8, 0, 0, 0, 0, 0xff, 0xffff]],
  ['1:2:3:4:5:6:7:8', [1, 2, 3, 4, 5, 6, 7, 8]],
  ['1:2:3:4:5:6:7::', [1, 2, 3, 4, 5, 6, 7, 0]],
  ['::ffff:203.0.113.7', [0, 0, 0, 0, 0, 0xffff, 0xcb00, 0x7107]],
  ['1:2:3:4:5:6:203.0.113.7', [1, 2, 3, 4, 5, 6, 0xcb00, 0x7107]],
] as const) {
  test(`reads ${text}`, () => assert.deepEqual(parseIpv6Address(text), groups));
}

for (const text of [
  '',
  ':',
  ':::',
  '1',
  '1::2::3',
  '1:2:3:4:5:6:7',
  '1:2:3:4:5:6:7:8:9',
  '1:2:3:4:5:6:7:8::',
  '12345::',
  'g::',
  '::1%eth0',
  '::203.0.113.256',
  '::203.0.113.7:1',
  '203.0.113.7::',
  '203.0.113.7',
]) {
  test(`refuses ${text === '' ? 'nothing' : text} as an IPv6 address`, () => {
    assert.equal(parseIpv6Address(text), undefined);
  });
}

test('judges texts as the library of sockets does', () => {
  const piece = fc.constantFrom(
    ':',
    '::',
    '.',
    '0',
    '1',
    '25',
    '255',
    '256',
    '01',
    'ffff',
    'abcde',
    'A',
    ' ',
  );
  const texts = fc.array(piece, { maxLength: 18 }).map((pieces) => pieces.join(''));
  const property = fc.property(fc.oneof(texts, fc.ipV4(), fc.ipV6()), (text) => {
    assert.equal(isIpv4Address(text), isIPv4(text), text);
    assert.equal(parseIpv6Address(text) !== undefined, isIPv6(text), text);
  });
  fc.assert(property, { numRuns: 5000 });
});
