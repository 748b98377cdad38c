/** What TRACE tells of a request (§4.11), of either protocol. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { traceMessage } from '../../src/http/syntax/http-message.ts';

const secret = 'very-secret';

function trace(target: string, rawFields: readonly string[], version = '1.1'): string {
  return traceMessage({ method: 'TRACE', target, version, rawFields });
}

test('writes the request line and the fields as they came', () => {
  assert.equal(
    trace('/a?b=%20&c', ['Host', 'a.example', 'Max-Forwards', '0', 'X-One', '1', 'x-one', '2']),
    'TRACE /a?b=%20&c HTTP/1.1\r\nHost: a.example\r\nMax-Forwards: 0\r\nX-One: 1\r\nx-one: 2\r\n\r\n',
  );
});

test('makes a request line of an HTTP/2 request and shows no pseudo-field', () => {
  const rawFields = [':method', 'TRACE', ':path', '/a', 'host', 'a.example', 'max-forwards', 'many'];
  assert.equal(
    trace('/a', rawFields, '2.0'),
    'TRACE /a HTTP/2.0\r\nhost: a.example\r\nmax-forwards: many\r\n\r\n',
  );
});

for (const name of [
  ...['Authorization', 'proxy-authorization', 'COOKIE', 'X-API-Key', 'Idempotency-Key', 'Referer'],
  ...['X-Gitlab-Token', 'Stripe-Signature', 'X-Hub-Signature-256', 'webhook-signature', 'X_Auth_Token'],
  ...['X-Amz-Security-Token', 'X-Forwarded-Client-Cert', 'X-CSRF-Token', 'DPoP-JWT', 'Sec-WebSocket-Key'],
]) {
  test(`leaves out ${name}`, () => {
    assert.equal(trace('/', ['Host', 'a', name, secret]), 'TRACE / HTTP/1.1\r\nHost: a\r\n\r\n');
  });
}

test('shows fields whose names only look like secret ones', () => {
  const message = trace('/', ['X-Author', 'a', 'Accept', '*/*', 'X-Keyboard', 'b', 'Monkey', 'c']);
  assert.equal(
    message,
    'TRACE / HTTP/1.1\r\nX-Author: a\r\nAccept: */*\r\nX-Keyboard: b\r\nMonkey: c\r\n\r\n',
  );
});

for (const [target, shown] of [
  [`/a?api_key=${secret}`, '/a'],
  [`/a?b=1&ticket=${secret}&c=2`, '/a?b=1&c=2'],
  [`/a?t%69cket=${secret}&keep`, '/a?keep'],
  [`/a?access_token=${secret}&token=${secret}&code=${secret}&state=${secret}`, '/a'],
  [`/a?api%5Fkey&ticket`, '/a'],
  [`http://a.example/b?ticket=${secret}`, 'http://a.example/b'],
  ['/a?%zz=1&tickets=2', '/a?%zz=1&tickets=2'],
  ['/a?', '/a?'],
] as const) {
  test(`shows the target ${target} as ${shown}`, () => {
    assert.equal(trace(target, []), `TRACE ${shown} HTTP/1.1\r\n\r\n`);
  });
}
