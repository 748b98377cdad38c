/** Spellings of hosts and ports (§4.10.1): each host has one, and what is none is refused. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { canonicalHost, readAuthority, toDestination } from '../../src/tunnel/destination.ts';

const spellings: readonly (readonly [given: string, host: string])[] = [
  ['2130706433', '127.0.0.1'],
  ['0x7f000001', '127.0.0.1'],
  ['0177.0.0.1', '127.0.0.1'],
  ['127.1', '127.0.0.1'],
  ['①②⑦.0.0.1', '127.0.0.1'],
  ['127.0.0.1.', '127.0.0.1'],
  ['0', '0.0.0.0'],
  ['[::FFFF:127.0.0.1]', '127.0.0.1'],
  ['::ffff:7f00:1', '127.0.0.1'],
  ['[2001:DB8:0:0::1]', '2001:db8::1'],
  ['::1', '::1'],
  ['Example.COM.', 'example.com'],
  ['bücher.example', 'xn--bcher-kva.example'],
  ['_dmarc.example', '_dmarc.example'],
];

test('gives each host one spelling', () => {
  for (const [given, host] of spellings) assert.equal(canonicalHost(given), host, given);
});

test('refuses what is no host', () => {
  const given = [
    '',
    '.',
    'a..b',
    'a b',
    'a%62',
    'a/b',
    'a?b',
    'a#b',
    'a@b',
    'a\\b',
    'a\tb',
    '[::1',
    '::1]',
    '[v1.a]',
  ];
  given.push('fe80::1%eth0', '[::1]:80', 'a:b', '1.2.3.4.5', '256.1.1.1', '*', 'a*b', `${'a'.repeat(64)}.b`);
  given.push(Array.from({ length: 128 }, () => 'a').join('.'), '\u0000', 'a\u007f');
  for (const text of given) assert.equal(canonicalHost(text), undefined, JSON.stringify(text));
});

test('takes no letters beyond ASCII in a target, which comes as octets', () => {
  assert.equal(readAuthority('b\u00c3\u00bccher.example:443'), undefined);
  assert.equal(readAuthority('①②⑦.0.0.1:443'), undefined);
});

test('reads the port that a target has to name', () => {
  assert.deepEqual(readAuthority('example.com:443'), { host: 'example.com', port: 443 });
  assert.deepEqual(readAuthority('[::1]:65535'), { host: '::1', port: 65_535 });
  for (const port of ['', '0', '00', '65536', '99999', '+1', '1e3', ' 1', '443 ', '０']) {
    assert.equal(toDestination('example.com', port), undefined, port);
  }
});

test('a spelling of a host stays as it is', () => {
  fc.assert(
    fc.property(fc.oneof(fc.domain(), fc.ipV4(), fc.ipV6(), fc.string()), (text) => {
      const host = canonicalHost(text);
      return host === undefined || canonicalHost(host) === host;
    }),
    { numRuns: 500 },
  );
});
