import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatHttpMessage } from '../../src/http/syntax/http-message.ts';

test('reflects the request in its order and spelling, without the withheld fields', () => {
  const rawFields = [
    ':method',
    'TRACE',
    'Host',
    'a',
    'COOKIE',
    's=1',
    'X-b',
    '1',
    'x-B',
    '2',
    'Authorization',
    'Basic x',
  ];
  const withheld = new Set(['cookie', 'authorization']);
  const message = formatHttpMessage({
    method: 'TRACE',
    target: '/t?x',
    version: 'HTTP/1.1',
    rawFields,
    withheld,
  });
  assert.equal(message, 'TRACE /t?x HTTP/1.1\r\nHost: a\r\nX-b: 1\r\nx-B: 2\r\n\r\n');
});

test('lets no value begin another field', () => {
  const rawFields = ['A', 'b\r\nC: d\0', 'bad name', 'x', 'odd'];
  const message = formatHttpMessage({
    method: 'TRACE',
    target: '/',
    version: 'HTTP/1.1',
    rawFields,
    withheld: new Set(),
  });
  assert.equal(message, 'TRACE / HTTP/1.1\r\nA: b  C: d \r\n\r\n');
});
