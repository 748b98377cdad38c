/** Octets of actions with a media type, a name and validators at run time: conditional requests and ranges, as of a file. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { createClient } from '../../../src/client/index.ts';
import { type Answer, adminKey } from '../../harness/exchange.ts';
import type { Expectation } from '../../harness/expected-answer.ts';
import { serverOfFile } from '../../harness/running-server.ts';
import { statusesOf } from '../../openapi/statuses.ts';
import type octets from './fixtures/octets.config.ts';
import { drawn } from './fixtures/octets.config.ts';

const config = fileURLToPath(new URL('./fixtures/octets.config.ts', import.meta.url));
const lastModified = 'Sat, 01 Aug 2026 09:30:00 GMT';
const server = await serverOfFile({ config });
const send = (
  method: string,
  path: string,
  expect?: Expectation,
  headers: Readonly<Record<string, string>> = {},
) => server.send(method, path, { headers, ...(expect === undefined ? {} : { expect }) });

/** The message of the failure in the log. */
function reasonOf(answer: Answer): string {
  const [line = ''] = server.logOf(answer).split('\n');
  return JSON.parse(line).error.message;
}

const drawing = {
  'content-type': 'image/svg+xml',
  'content-security-policy': 'sandbox',
  'content-disposition': 'attachment; filename="drawing v1.svg"',
  'x-content-type-options': 'nosniff',
  'cache-control': 'private, no-cache',
  'accept-ranges': 'bytes',
  'content-encoding': undefined,
  etag: '"v1"',
  'last-modified': lastModified,
};

test('says the media type, the name and the validators of the handler', async () => {
  const fields = { ...drawing, 'content-length': '2000' };
  await send('GET', 'drawing', { status: 200, fields }, { 'Accept-Encoding': 'gzip' });
  await send('HEAD', 'drawing', { status: 200, fields, body: '' });
  await send('GET', 'drawing', { status: 200, fields }, { Accept: 'image/png' });
});

test('answers conditional requests by the validators of the handler', async () => {
  const { etag, 'last-modified': _, 'cache-control': cached } = drawing;
  const fields = { etag, 'last-modified': lastModified, 'cache-control': cached };
  await send('GET', 'drawing', { status: 304, fields, body: '' }, { 'If-None-Match': '"v1"' });
  await send('HEAD', 'drawing', { status: 304, fields }, { 'If-None-Match': 'W/"v1"' });
  await send('GET', 'drawing?v=v2', 200, { 'If-None-Match': '"v1"' });
  await send('GET', 'drawing', 304, { 'If-Modified-Since': lastModified });
  await send('GET', 'drawing', 200, { 'If-Modified-Since': 'Fri, 31 Jul 2026 09:30:00 GMT' });
  await send('GET', 'drawing', 412, { 'If-Match': '"v2"' });
  await send('GET', 'drawing', 200, { 'If-Match': '"v1"' });
  await send('GET', 'drawing', 412, { 'If-Unmodified-Since': 'Fri, 31 Jul 2026 09:30:00 GMT' });
});

test('serves ranges of octets that have a validator', async () => {
  const fields = { ...drawing, 'content-range': 'bytes 0-3/2000', 'content-length': '4' };
  await send('GET', 'drawing', { status: 206, fields, body: '<svg' }, { Range: 'bytes=0-3' });
  await send('GET', 'drawing', 206, { Range: 'bytes=0-3', 'If-Range': '"v1"' });
  await send('GET', 'drawing', 200, { Range: 'bytes=0-3', 'If-Range': '"v2"' });
  const beyond = { status: 416, fields: { 'content-range': 'bytes */2000' } };
  await send('GET', 'drawing', beyond, { Range: 'bytes=2000-' });
  const dated = { status: 206, fields: { etag: undefined, 'last-modified': lastModified } };
  await send('GET', 'dated', dated, { Range: 'bytes=-1', 'If-Range': lastModified });
  const parts = await send('GET', 'drawing', 206, { Range: 'bytes=0-3,10-13' });
  const [, boundary = ''] = /^multipart\/byteranges; boundary=([0-9a-f]{32})$/.exec(
    parts.headers['content-type'] ?? '',
  ) ?? ['', ''];
  assert.equal(parts.body.split(`--${boundary}`).length, 4);
  assert.equal(parts.headers['content-security-policy'], 'sandbox');
  const others = await send('GET', 'drawing', 206, { Range: 'bytes=0-3,10-13' });
  assert.ok(!others.body.includes(boundary), 'the boundary is another one each time');
});

test('serves octets without a validator whole, and compressed as before', async () => {
  const whole = { 'accept-ranges': 'none', 'cache-control': 'private, no-store', etag: undefined };
  for (const path of ['plain', 'named']) {
    await send('GET', path, { status: 200, fields: whole }, { Range: 'bytes=0-3' });
    const coded = { status: 200, fields: { 'content-encoding': 'gzip' } };
    await send('GET', path, coded, { 'Accept-Encoding': 'gzip' });
  }
});

test('keeps the name and the policy of the declaration where the handler gives none', async () => {
  const fields = {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': "default-src 'none'",
    'content-disposition': 'attachment; filename="all.csv"',
  };
  await send('GET', 'named', { status: 200, fields });
  await send('GET', 'named', 406, { Accept: 'image/png' });
});

test('takes an entity tag of 255 characters', async () => {
  const v = 'v'.repeat(255);
  const headers = { 'Content-Type': 'application/json' };
  const expect = { status: 200, fields: { etag: `"${v}"` } };
  await server.send('QUERY', 'queried', { body: JSON.stringify({ v }), headers, expect });
});

test('answers a conditional QUERY, and no ranges of it', async () => {
  const headers = { 'Content-Type': 'application/json' };
  const ask = (more: Readonly<Record<string, string>>, expect: Expectation) =>
    server.send('QUERY', 'queried', { body: '{}', headers: { ...headers, ...more }, expect });
  await ask({ 'If-None-Match': '"v1"' }, 304);
  await ask({ Range: 'bytes=0-3' }, 200);
});

test('gives the answer to a POST its media type and its name, also when it is repeated', async () => {
  const fields = {
    'content-type': 'image/svg+xml',
    'content-security-policy': 'sandbox',
    'content-disposition': 'attachment; filename="made.svg"',
    'accept-ranges': undefined,
  };
  const headers = { 'Idempotency-Key': '"made-once"' };
  const body = Buffer.from(drawn).toString();
  for (let time = 0; time < 2; time += 1) await send('POST', 'made', { status: 200, fields, body }, headers);
});

for (const [fault, told] of [
  ['nothing', /must return a Uint8Array or an object with bytes, and returned undefined/],
  ['text', /an object with bytes, and returned a string/],
  ['no bytes', /an object with bytes, and returned one without/],
  ['other bytes', /must return bytes as a Uint8Array, and returned a string/],
  ['member', /an object with bytes, mediaType, fileName, etag, lastModified, and returned one with "type"/],
  ['type', /must return mediaType as text\/csv is one, not "image\\r\\nSet-Cookie: a=b"/],
  ['name', /must return fileName as the name of a file, not "\.\.\/x"/],
  ['quoted tag', /must return etag as 1 to 255 visible ASCII characters without quotes, not "\\"v1\\""/],
  ['empty tag', /must return etag as/],
  ['long tag', /must return etag as/],
  ['date', /must return lastModified as a Date in the years 0 to 9999, not "2026-08-01"/],
  ['no date', /must return lastModified as a Date/],
] as const) {
  test(`is a failure of the function, and the log says which: ${fault}`, async () => {
    const answer = await send('GET', `faulty?fault=${encodeURIComponent(fault)}`, [500, 'internal']);
    assert.match(reasonOf(answer), told);
  });
}

test('refuses validators of an answer that is no representation', async () => {
  const answer = await send('POST', 'tagged', [500, 'internal']);
  assert.match(reasonOf(answer), /etag and lastModified with GET and QUERY alone/);
});

test('is described with its ranges in the OpenAPI document', async () => {
  const document = (await send('GET', '/openapi.json')).json();
  const { parameters, responses, 'x-responses': asked } = document.paths['/api/v1/drawing'].get;
  const named = parameters.map((each: { $ref?: string; name?: string }) => each.$ref ?? each.name);
  for (const name of ['If-None-Match', 'If-Modified-Since', 'Range', 'If-Range'])
    assert.ok(named.includes(`#/components/parameters/${name}`), name);
  assert.deepEqual(Object.keys(responses), ['200', '304', 'default']);
  const { $ref } = asked.Range['206'];
  assert.equal($ref, '#/components/responses/PartialContent');
  const partial = document.components.responses.PartialContent;
  assert.deepEqual(Object.keys(partial.content), ['application/octet-stream', 'multipart/byteranges']);
  assert.deepEqual(Object.keys(partial.headers), [
    ...['Comity-Content', 'Content-Disposition', 'Content-Range', 'Content-Security-Policy'],
  ]);
  assert.ok(statusesOf(document, 'get', '/api/v1/drawing').includes(416));
  assert.ok(!statusesOf(document, 'query', '/api/v1/queried').includes(416));
});

test('marks octets whose type clients read as text or JSON, which the client then returns as octets', async () => {
  const marked = { 'comity-content': 'octets' };
  await send('GET', 'plain', { status: 200, fields: marked });
  await send('GET', 'named', { status: 200, fields: marked });
  await send('GET', 'drawing', { status: 200, fields: { 'comity-content': undefined } });
  const client = createClient<typeof octets>({
    ...{ baseUrl: `${server.url}/api/v1`, key: adminKey },
    routes: {
      actions: {
        ...{ drawing: 'GET /drawing', named: 'GET /named', dated: 'GET /dated', queried: 'QUERY /queried' },
        ...{ plain: 'GET /plain', faulty: 'GET /faulty' },
      },
    },
  });
  const named: Uint8Array = await client.actions.named();
  assert.deepEqual(named, new Uint8Array(2000));
  assert.deepEqual(Buffer.from(await client.actions.plain()), Buffer.from(drawn));
  assert.deepEqual(Buffer.from(await client.actions.made()), Buffer.from(drawn));
});
