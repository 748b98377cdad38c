/** Which requests are for another server, and what of them goes on (RFC 9112 §3.2.2; RFC 9110 §7.6). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Request } from '../../../src/http/message.ts';
import { readRequestFields } from '../../../src/http/request-fields.ts';
import { answerFields, requestFields } from '../../../src/tunnel/carry.ts';
import { createIsForeign, readForeignTarget } from '../../../src/tunnel/destination.ts';

function requestOf(
  method: string,
  target: string,
  rawFields: readonly string[] = [],
  version = '1.1',
): Request {
  return {
    ...{ method, target, version, rawFields, fields: readRequestFields(rawFields) },
    readContent: () => Promise.reject(new Error('not read')),
    ...{ peer: '192.0.2.1', id: 'req_1' },
  };
}

const isForeign = createIsForeign(() => [
  '127.0.0.1:4000',
  '[::1]:4443',
  '198.51.100.7:8080',
  'Api.Shop.example.:443',
]);

test('its own are those that name a listener or the public URL, however they are spelled', () => {
  const own = [
    '/x',
    'http://127.0.0.1:4000/x',
    'http://127.0.0.9:4000/',
    'HTTP://LOCALHOST:4000',
    'http://a.localhost:4000/',
    'http://[::1]:4000/',
    'http://[::ffff:127.0.0.1]:4000/',
    'http://0.0.0.0:4000/',
    'http://2130706433:4000/',
    'https://localhost:4443/',
    'http://198.51.100.7:8080/',
    'https://api.shop.example/x',
    'https://api.shop.example:443/x',
    'https://API.shop.example.:/x',
    'http://api.shop.example:443/x',
  ];
  for (const target of own) assert.equal(isForeign(requestOf('GET', target)), false, target);
  const foreign = [
    'http://127.0.0.1:4001/x',
    'http://127.0.0.1/',
    'http://198.51.100.7/',
    'http://localhost:8080/',
    'http://api.shop.example/',
    'https://shop.example/',
    'http://api.shop.example.evil.net:443/',
    'http://a%2eexample/',
  ];
  for (const target of foreign) assert.equal(isForeign(requestOf('GET', target)), true, target);
});

test('what is no target of a request for another server stays with the kernel, which refuses it', () => {
  for (const target of [
    '*',
    'ftp://a.example/',
    'http://u:p@a.example/',
    'http:///x',
    'a.example:80',
    'http://a b/',
    '',
  ]) {
    assert.equal(isForeign(requestOf('GET', target)), false, target);
  }
});

test('TRACE and OPTIONS that may go no further are answered here, other methods go on', () => {
  const last = ['Max-Forwards', '0'];
  for (const [method, expected] of [
    ['TRACE', false],
    ['OPTIONS', false],
    ['GET', true],
  ] as const) {
    assert.equal(isForeign(requestOf(method, 'http://a.example/', last)), expected, method);
    assert.equal(isForeign(requestOf(method, 'http://a.example/', ['Max-Forwards', '1'])), true);
    assert.equal(isForeign(requestOf(method, 'http://a.example/', ['Max-Forwards', 'x'])), true);
  }
});

test('over HTTP/2 a request is foreign only with credentials for a proxy and another authority', () => {
  const with2 = (authority: string, ...fields: string[]) =>
    requestOf('GET', '/x?y', ['host', authority, ...fields], '2.0');
  assert.equal(isForeign(with2('a.example')), false);
  assert.equal(isForeign(with2('a.example', 'proxy-authorization', 'Bearer x')), true);
  assert.equal(isForeign(with2('localhost:4000', 'proxy-authorization', 'Bearer x')), false);
  assert.deepEqual(readForeignTarget(with2('a.example:81')), {
    scheme: 'http',
    destination: { host: 'a.example', port: 81 },
    path: '/x?y',
  });
});

test('reads the destination in canonical form, with the port of its scheme, and the path as sent', () => {
  const read = (target: string, method = 'GET') => {
    const { scheme, destination, path } = readForeignTarget(requestOf(method, target)) ?? {};
    return [scheme, destination?.host, destination?.port, path];
  };
  assert.deepEqual(read('http://A.Example./%41?a=%20&b'), ['http', 'a.example', 80, '/%41?a=%20&b']);
  assert.deepEqual(read('https://[2001:DB8::1]'), ['https', '2001:db8::1', 443, '/']);
  assert.deepEqual(read('http://a.example:8080?x'), ['http', 'a.example', 8080, '/?x']);
  assert.deepEqual(read('http://a.example', 'OPTIONS'), ['http', 'a.example', 80, '*']);
  assert.deepEqual(read('http://a.example:0/'), ['http', undefined, undefined, '/']);
});

const destination = { host: 'a.example', port: 80 };
const none = { kind: 'none' } as const;

test('what belongs to the connection goes, whatever its spelling, with what Connection names', () => {
  const raw = [
    ...[
      'HOST',
      'other.example',
      'connection',
      'X-Hop, close',
      'Connection',
      'x-other',
      'X-Hop',
      '1',
      'x-OTHER',
      '2',
    ],
    ...['Keep-Alive', 'timeout=5', 'Proxy-Connection', 'keep-alive', 'TE', 'trailers', 'Trailer', 'X-T'],
    ...['Upgrade', 'websocket', 'HTTP2-Settings', 'AAMA', 'proxy-AUTHORIZATION', 'Basic x', ':path', '/'],
    ...[
      'Transfer-Encoding',
      'chunked',
      'Content-Length',
      '5',
      'Via',
      '1.0 fred',
      'Cookie',
      'a=1',
      'Authorization',
      'Bearer x',
    ],
  ];
  assert.deepEqual(requestFields(requestOf('GET', 'http://a.example/', raw), destination, none, 'comity'), [
    ...['Host', 'a.example', 'Via', '1.0 fred', 'Cookie', 'a=1', 'Authorization', 'Bearer x'],
    ...['Via', '1.1 comity', 'Connection', 'close'],
  ]);
});

test('content is framed anew, by the one that was understood', () => {
  const framed = (method: string, framing: Parameters<typeof requestFields>[2]) =>
    requestFields(requestOf(method, 'http://a/'), destination, framing, 'c').slice(2, -4);
  assert.deepEqual(framed('POST', { kind: 'chunked' }), ['Transfer-Encoding', 'chunked']);
  assert.deepEqual(framed('GET', { kind: 'length', length: '3' }), ['Content-Length', '3']);
  assert.deepEqual(framed('POST', none), ['Content-Length', '0']);
  assert.deepEqual(framed('GET', none), []);
});

test('counts Max-Forwards down for TRACE and OPTIONS alone', () => {
  const hops = (method: string, count: string) => {
    const fields = requestFields(
      requestOf(method, 'http://a/', ['max-forwards', count]),
      destination,
      none,
      'c',
    );
    return fields[fields.indexOf('max-forwards') + 1];
  };
  assert.equal(hops('TRACE', '10'), '9');
  assert.equal(hops('OPTIONS', '1'), '0');
  assert.equal(hops('GET', '10'), '10');
  assert.equal(hops('OPTIONS', 'many'), 'many');
});

test('names host and port as the target had them, and the version that the message came by', () => {
  const fields = (version: string, host: string, port: number) =>
    requestFields(
      requestOf('GET', 'http://a/', ['Expect', '100-Continue'], version),
      { host, port },
      none,
      'c',
    );
  assert.deepEqual(fields('1.0', '2001:db8::1', 81), [
    'Host',
    '[2001:db8::1]:81',
    'Via',
    '1.0 c',
    'Connection',
    'close',
  ]);
  assert.deepEqual(fields('2.0', 'a.example', 80), [
    ...['Host', 'a.example', 'Expect', '100-continue', 'Via', '2 c', 'Connection', 'close'],
  ]);
});

test('of an answer goes what belongs to its connection, and a length where there is no content', () => {
  const raw = [
    ...[
      'Connection',
      'x-hop, content-length',
      'X-Hop',
      '1',
      'Keep-Alive',
      'x',
      'Transfer-Encoding',
      'chunked',
      'Upgrade',
      'h2c',
    ],
    ...[
      'Proxy-Authenticate',
      'Basic',
      'Proxy-Authentication-Info',
      'x',
      'Trailer',
      'x',
      'Content-Length',
      '5',
      'Set-Cookie',
      'a',
      'Set-Cookie',
      'b',
    ],
  ];
  const cookies = ['Set-Cookie', 'a', 'Set-Cookie', 'b'];
  assert.deepEqual(answerFields(raw, 200, '1.1', 'c'), ['Content-Length', '5', ...cookies, 'Via', '1.1 c']);
  assert.deepEqual(answerFields(raw, 304, '1.0', 'c'), ['Content-Length', '5', ...cookies, 'Via', '1.0 c']);
  assert.deepEqual(answerFields(raw, 204, '1.1', 'c'), [...cookies, 'Via', '1.1 c']);
  assert.deepEqual(answerFields(raw, 103, '1.1', 'c'), cookies);
});
