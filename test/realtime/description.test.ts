/** What the OpenAPI document says of `realtime`, read off the graph that answers it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { documentOf, operation, resolved } from '../openapi/fixture.ts';
import { codesOf, statusesOf } from '../openapi/statuses.ts';

const document = documentOf(new Map());
const path = '/api/v1/realtime';

test('gives the handshake and the tickets the statuses that they can end in', () => {
  for (const [method, at, expected] of [
    ['get', path, '101 401 403 406 412 426 429'],
    ['post', `${path}/tickets`, '200 401 403 406 412 429'],
  ] as const) {
    assert.equal(statusesOf(document, method, at).join(' '), expected);
  }
  assert.deepEqual(codesOf(document, 'get', path, 403), ['cross_site_request']);
  assert.deepEqual(codesOf(document, 'get', path, 426), ['upgrade_required']);
  const malformed = codesOf(document, 'get', path, 400);
  for (const code of ['handshake_invalid', 'credentials_repeated', 'query_parameter_invalid']) {
    assert.ok(malformed.includes(code), code);
  }
});

test('names the fields of the handshake', () => {
  const { responses } = operation(document, 'get', path) as { responses: Record<string, unknown> };
  const fieldsOf = (status: number) => Object.keys(resolved(document, responses[status]).headers as object);
  assert.deepEqual(fieldsOf(101), ['Sec-WebSocket-Protocol', 'Upgrade']);
  const ofAnyResponse = Object.keys(document['x-headers'] as object);
  for (const name of ['RateLimit', 'Upgrade', 'Sec-WebSocket-Version'])
    assert.ok(ofAnyResponse.includes(name));
});
