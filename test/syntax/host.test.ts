import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isHost, isOrigin } from '../../src/http/syntax/uri.ts';

test('takes names, IPv4, IPv6 and IPvFuture, with and without a port', () => {
  const names = [
    'example.com',
    'EXAMPLE.com.',
    'localhost:4000',
    'a_b',
    'a%20b',
    "a!$&'()*+,;=~",
    '127.0.0.1:80',
  ];
  const literals = [
    '[::1]',
    '[::]:80',
    '[2001:db8::7]',
    '[1:2:3:4:5:6:7:8]',
    '[::ffff:192.0.2.128]',
    '[v1.fe:x]',
  ];
  const edges = [
    '[1:2:3:4:5:6:1.2.3.4]',
    '[1::]',
    '[1:2:3:4:5:6:7::]',
    '[::2:3:4:5:6:7:8]',
    'a:',
    'a:0',
    'a:65535',
  ];
  for (const value of [...names, ...literals, ...edges]) assert.equal(isHost(value), true, value);
});

test('refuses an empty host, user information, zones, bad ports and bad literals', () => {
  const names = [
    '',
    ':80',
    'a@b',
    'u:p@b',
    'a b',
    'a/b',
    'a?b',
    'a#b',
    'a%2',
    'a%zz',
    'é',
    'a\\b',
    'a<b',
    'a:b',
  ];
  const ports = ['a:65536', 'a:80:80', 'a: 80', 'a:-1', 'a:+1', `a:${'9'.repeat(400)}`];
  const literals = [
    '[',
    '[]',
    '[::1',
    '::1',
    '[fe80::1%25eth0]',
    '[fe80::1%eth0]',
    '[1::2::3]',
    '[:::]',
    '[:1:2::]',
  ];
  const sizes = [
    '[1:2:3:4:5:6:7]',
    '[1:2:3:4:5:6:7:8:9]',
    '[1:2:3:4::5:6:7:8]',
    '[12345::]',
    '[g::]',
    '[1:2:3:4:5:6:7:]',
  ];
  const v4 = [
    '[::1.2.3]',
    '[::1.2.3.256]',
    '[::01.2.3.4]',
    '[1.2.3.4::]',
    '[1:2:3:4:5:6:7:1.2.3.4]',
    '[::1]a',
    '[v.x]',
  ];
  for (const value of [...names, ...ports, ...literals, ...sizes, ...v4, '[v1.]', '[v1.%20]']) {
    assert.equal(isHost(value), false, value);
  }
});

test('takes one serialised origin or null', () => {
  for (const value of [
    'null',
    'https://example.com',
    'http://localhost:3000',
    'app-x+1.y://h',
    'http://[::1]:80',
  ]) {
    assert.equal(isOrigin(value), true, value);
  }
  const bad = [
    '',
    'NULL',
    'example.com',
    '://a',
    '1a://b',
    'http://',
    'http://a/',
    'http://a:',
    'http://u@a',
  ];
  for (const value of [...bad, 'http://a http://b', 'http://a?b', 'http://a:99999', '*', 'h_t://a']) {
    assert.equal(isOrigin(value), false, value);
  }
});
