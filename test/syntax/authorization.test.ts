import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decodeBasic, formatChallenge, parseCredentials } from '../../src/http/syntax/authorization.ts';

const base64 = (text: string | Uint8Array): string => Buffer.from(text).toString('base64');

test('reads the credentials of RFC 7617 §2, RFC 6750 §2.1 and RFC 7616 §3.9.1', () => {
  assert.deepEqual(parseCredentials('Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=='), {
    scheme: 'basic',
    token68: 'QWxhZGRpbjpvcGVuIHNlc2FtZQ==',
  });
  assert.deepEqual(parseCredentials('BEARER   mF_9.B5f-4.1JqM'), {
    scheme: 'bearer',
    token68: 'mF_9.B5f-4.1JqM',
  });
  const digest = parseCredentials('Digest username="Mufasa", realm = "a, b",qop=auth,, Nc=00000001');
  assert.equal(digest?.scheme, 'digest');
  assert.deepEqual(
    [...(digest?.parameters ?? [])],
    [
      ['username', 'Mufasa'],
      ['realm', 'a, b'],
      ['qop', 'auth'],
      ['nc', '00000001'],
    ],
  );
});

test('takes a scheme alone, and tells token68 with padding from a parameter', () => {
  assert.deepEqual(parseCredentials('ApiKey '), { scheme: 'apikey' });
  assert.deepEqual(parseCredentials('X a='), { scheme: 'x', token68: 'a=' });
  assert.deepEqual([...(parseCredentials('X a=b')?.parameters ?? [])], [['a', 'b']]);
});

test('refuses malformed credentials and a parameter given twice', () => {
  const bad = [
    '',
    ' ',
    '"Basic" abc',
    'Bearer a b',
    'Bearer a, b',
    'Bearer\tabc',
    'X a=1, A=2',
    'X a="1',
    'X a=b c=d',
  ];
  for (const value of [...bad, 'Bearer é', 'Bearer a=b=c', 'Basic,abc']) {
    assert.equal(parseCredentials(value), undefined, value);
  }
});

test('decodes the Basic examples of RFC 7617 §2 and §2.1', () => {
  assert.deepEqual(decodeBasic('QWxhZGRpbjpvcGVuIHNlc2FtZQ=='), { user: 'Aladdin', password: 'open sesame' });
  assert.deepEqual(decodeBasic('dGVzdDoxMjPCow=='), { user: 'test', password: '123£' });
  assert.deepEqual(decodeBasic(base64('a:b:😀')), { user: 'a', password: 'b:😀' });
  assert.deepEqual(decodeBasic(base64(':')), { user: '', password: '' });
});

test('refuses Basic that is not canonical base64, not UTF-8, without a colon or with controls', () => {
  const bytes = [
    [0x61, 0x3a, 0xff],
    [0xc0, 0xba],
    [0x3a, 0xed, 0xa0, 0x80],
    [0x3a, 0xf4, 0x90, 0x80, 0x80],
  ];
  const truncated = [
    [0x3a, 0xe2, 0x82],
    [0x3a, 0xe0, 0x80, 0x80],
    [0x3a, 0xf0, 0x80, 0x80, 0x80],
  ];
  for (const one of [...bytes, ...truncated])
    assert.equal(decodeBasic(base64(Uint8Array.from(one))), undefined);
  for (const text of ['', 'abc', 'a:\0', 'a\n:b', 'a:\x7f', 'a:\x85'])
    assert.equal(decodeBasic(base64(text)), undefined);
  for (const token of ['OjA', 'Oj==', 'Ok==', 'O===', '====', 'OjA=OjA=', 'Oj-_', 'Oj A']) {
    assert.equal(decodeBasic(token), undefined, token);
  }
});

test('writes challenges with every value quoted', () => {
  const parameters = { realm: 'a "b"\r\n', charset: 'UTF-8' };
  assert.equal(
    formatChallenge({ scheme: 'Basic', parameters }),
    'Basic realm="a \\"b\\"??", charset="UTF-8"',
  );
  assert.equal(formatChallenge({ scheme: 'Bearer' }), 'Bearer');
});
