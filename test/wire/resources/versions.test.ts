/**
 * Versions (§9): API-Version on every answer, and Deprecation, Sunset and Link where a collection declares them
 * (RFC 9745, RFC 8594).
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { parseLink } from '../../../src/http/syntax/link.ts';
import { serverOfFile } from '../../harness/running-server.ts';
import { openRaw } from '../server/raw-client.ts';

const config = fileURLToPath(new URL('../fixtures/deprecated.config.ts', import.meta.url));
const program = await serverOfFile({ config });
const path = String((await program.send('POST', '/v2/leaving', { json: { name: 'x' } })).headers.location);

test('the configured base is where the collections are', async () => {
  assert.match(path, /^\/v2\/leaving\//);
  assert.equal((await program.send('GET', '/v2/current')).status, 200);
  assert.equal((await program.send('GET', '/api/v1/current')).status, 404);
});

test('API-Version is on every answer, whatever its status, and tells browsers to guess no media type', async () => {
  const etag = String((await program.send('GET', path)).headers.etag);
  for (const [method, target, headers, status] of [
    ['GET', path, {}, 200],
    ['HEAD', path, {}, 200],
    ['GET', path, { 'If-None-Match': etag }, 304],
    ['OPTIONS', path, {}, 204],
    ['OPTIONS', '*', {}, 204],
    ['GET', '/v2/none', {}, 404],
    ['TRACE', path, {}, 405],
    ['GET', path, { Authorization: 'Bearer wrong' }, 401],
    ['GET', '/health/live', {}, 200],
    ['PROPFIND', path, {}, 501],
  ] as const) {
    const answer = await program.send(method, target, { headers });
    assert.equal(answer.status, status, `${method} ${target}`);
    assert.equal(answer.headers['api-version'], '2.1', `${method} ${target} ${status}`);
    assert.equal(answer.headers['x-content-type-options'], 'nosniff', `${method} ${target} ${status}`);
  }
});

test('API-Version is on answers that the parser of messages gives', async () => {
  for (const text of [
    'GET / HTTP/1.1\r\nHost : x\r\n\r\n',
    'get / HTTP/1.1\r\nHost: x\r\n\r\n',
    'nonsense\r\n\r\n',
  ]) {
    const client = await openRaw(program.port);
    const answer = await client.send(text).answer();
    client.destroy();
    assert.ok(answer.status >= 400);
    assert.equal(answer.fields.get('api-version'), '2.1', text);
    assert.equal(answer.fields.get('x-content-type-options'), 'nosniff', text);
  }
});

test('a deprecated collection says since when, until when and where to read about it, on every answer', async () => {
  const etag = String((await program.send('GET', path)).headers.etag);
  for (const [method, target, headers, status] of [
    ['GET', '/v2/leaving', {}, 200],
    ['GET', path, {}, 200],
    ['GET', path, { 'If-None-Match': etag }, 304],
    ['GET', '/v2/leaving/none', {}, 404],
    ['OPTIONS', path, {}, 204],
    ['DELETE', '/v2/leaving', {}, 405],
  ] as const) {
    const answer = await program.send(method, target, { headers });
    assert.equal(answer.status, status);
    assert.equal(answer.headers.deprecation, '@1769817600', `${method} ${target}`);
    assert.equal(answer.headers.sunset, 'Sun, 31 Jan 2027 12:00:00 GMT');
    const links = parseLink(String(answer.headers.link)) ?? [];
    const about = links.find(({ rel }) => rel === 'deprecation');
    assert.equal(about?.target, 'https://docs.example/leaving');
  }
});

test('the links of a deprecated list are beside those of its pages', async () => {
  await program.send('POST', '/v2/leaving', { json: { name: 'y' } });
  const answer = await program.send('GET', '/v2/leaving?limit=1');
  const rels = (parseLink(String(answer.headers.link)) ?? []).map(({ rel }) => rel).sort();
  assert.deepEqual(rels, ['deprecation', 'first', 'next']);
});

test('what is only declared since has no Sunset, and what is current has neither', async () => {
  const discouraged = await program.send('GET', '/v2/discouraged');
  assert.equal(discouraged.headers.deprecation, '@1769817600');
  assert.equal(discouraged.headers.sunset, undefined);
  const current = await program.send('GET', '/v2/current');
  assert.equal(current.headers.deprecation, undefined);
  assert.equal(current.headers.sunset, undefined);
});
