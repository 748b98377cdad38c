/**
 * Content codings (RFC 9110 §8.4, §12.5.3): of answers, each with an entity tag of its own, and of requests.
 */
import assert from 'node:assert/strict';
import { request } from 'node:http';
import { test } from 'node:test';
import {
  brotliCompressSync,
  brotliDecompressSync,
  deflateRawSync,
  deflateSync,
  gunzipSync,
  gzipSync,
  zstdCompressSync,
} from 'node:zlib';
import { serverOfFile } from '../../harness/running-server.ts';

const articles = '/api/v1/articles';
const longText = 'A sentence with the letters ä, € and 😀, over and over again. '.repeat(60);

const program = await serverOfFile();
const large = `${articles}/large`;
const small = `${articles}/small`;
const put = (path: string, body: string) =>
  program.send('PUT', path, { json: { title: 'T', body, published: true } });
assert.equal((await put(large, longText)).status, 201);
assert.equal((await put(small, 'short')).status, 201);

type Coded = { readonly status: number; readonly headers: Record<string, unknown>; readonly bytes: Buffer };

/** `program.send` reads text; a coded answer is octets. */
function get(path: string, headers: Record<string, string> = {}, method = 'GET'): Promise<Coded> {
  return new Promise((resolve, reject) => {
    const asked = request(
      { host: '127.0.0.1', port: program.port, path, method, headers, agent: false },
      (answer) => {
        const chunks: Buffer[] = [];
        answer.on('data', (chunk: Buffer) => chunks.push(chunk));
        answer.on('error', reject);
        answer.on('end', () =>
          resolve({ status: answer.statusCode ?? 0, headers: answer.headers, bytes: Buffer.concat(chunks) }),
        );
      },
    );
    asked.on('error', reject);
    asked.end();
  });
}

for (const [coding, decompress] of [
  ['gzip', gunzipSync],
  ['br', brotliDecompressSync],
] as const) {
  test(`an answer in ${coding} decodes to the identity answer, shorter, under a tag of its own`, async () => {
    const plain = await get(large);
    const coded = await get(large, { 'Accept-Encoding': coding });
    assert.equal(coded.headers['content-encoding'], coding);
    assert.deepEqual(decompress(coded.bytes), plain.bytes);
    assert.equal(Number(coded.headers['content-length']), coded.bytes.length);
    assert.ok(coded.bytes.length < plain.bytes.length / 2);
    assert.notEqual(coded.headers.etag, plain.headers.etag);
    assert.match(String(coded.headers.etag), /^"/, 'strong');
    assert.equal(coded.headers['last-modified'], plain.headers['last-modified']);
    for (const answer of [plain, coded]) assert.match(String(answer.headers.vary), /\bAccept-Encoding\b/);
  });

  test(`304 carries the ${coding} tag that the client holds, in GET and HEAD`, async () => {
    const headers = { 'Accept-Encoding': coding };
    const coded = await get(large, headers);
    for (const method of ['GET', 'HEAD']) {
      const same = await get(large, { ...headers, 'If-None-Match': String(coded.headers.etag) }, method);
      assert.equal(same.status, 304);
      assert.equal(same.headers.etag, coded.headers.etag);
      assert.equal(same.headers['content-encoding'], undefined);
      assert.match(String(same.headers.vary), /\bAccept-Encoding\b/);
    }
  });
}

for (const [accept, coding] of [
  ['gzip, br', 'br'],
  ['gzip;q=1, br;q=0.5', 'gzip'],
  ['gzip;q=0', undefined],
  ['*', 'br'],
  ['identity', undefined],
  ['identity;q=0.5, gzip;q=0.4', undefined],
  ['deflate', undefined],
  ['x-gzip', 'gzip'],
  ['identity;q=0, compress', undefined],
  ['', undefined],
  ['gzip;q=2', undefined],
] as const) {
  test(`Accept-Encoding: ${accept} is answered in ${coding ?? 'identity'}`, async () => {
    const answer = await get(large, { 'Accept-Encoding': accept });
    assert.equal(answer.status, 200);
    assert.equal(answer.headers['content-encoding'], coding);
  });
}

test('what is shorter than the minimum is sent as it is', async () => {
  const answer = await get(small, { 'Accept-Encoding': 'gzip, br' });
  assert.equal(answer.headers['content-encoding'], undefined);
  assert.match(String(answer.headers.etag), /^"\d+"$/);
});

test('HEAD has the fields of the coded GET', async () => {
  const headers = { 'Accept-Encoding': 'gzip' };
  const whole = await get(large, headers);
  const head = await get(large, headers, 'HEAD');
  assert.equal(head.bytes.length, 0);
  for (const name of ['content-encoding', 'content-length', 'etag', 'vary', 'content-type']) {
    assert.equal(head.headers[name], whole.headers[name], name);
  }
});

const heldCodings: readonly [held: string, acceptEncoding: string | undefined, status: number][] = [
  ['gzip', 'identity', 200],
  ['gzip', 'gzip;q=0', 200],
  ['gzip', 'br', 200],
  ['gzip', undefined, 200],
  ['gzip', '*', 304],
  ['gzip', 'br, gzip;q=0.1', 304],
  ['', 'gzip', 304],
  ['', 'gzip, identity;q=0', 200],
];

for (const [held, acceptEncoding, expected] of heldCodings) {
  const asked = acceptEncoding === undefined ? 'no Accept-Encoding' : `Accept-Encoding: ${acceptEncoding}`;
  test(`If-None-Match with the ${held || 'plain'} tag and ${asked} gives ${expected}`, async () => {
    const { headers } = await get(large, held === '' ? {} : { 'Accept-Encoding': held });
    const accepting: Record<string, string> =
      acceptEncoding === undefined ? {} : { 'Accept-Encoding': acceptEncoding };
    const answer = await get(large, { ...accepting, 'If-None-Match': String(headers.etag) });
    assert.equal(answer.status, expected);
    assert.equal(answer.headers.etag === headers.etag, expected === 304);
  });
}

test('a 304 names of several held representations one that the client accepts', async () => {
  const tags = await Promise.all(
    ['br', 'gzip', 'identity'].map(
      async (coding) => (await get(large, { 'Accept-Encoding': coding })).headers.etag,
    ),
  );
  for (const [index, coding] of ['br', 'gzip', 'identity'].entries()) {
    const answer = await get(large, {
      'Accept-Encoding': coding === 'identity' ? coding : `${coding}, identity;q=0`,
      'If-None-Match': tags.join(', '),
    });
    assert.equal(answer.status, 304);
    assert.equal(answer.headers.etag, tags[index]);
  }
});

test('lists are coded too, and their coded tags give 304', async () => {
  const headers = { 'Accept-Encoding': 'br' };
  const list = await get(articles, headers);
  assert.equal(list.headers['content-encoding'], 'br');
  assert.deepEqual(brotliDecompressSync(list.bytes), (await get(articles)).bytes);
  const same = await get(articles, { ...headers, 'If-None-Match': String(list.headers.etag) });
  assert.equal(same.status, 304);
  assert.equal(same.headers.etag, list.headers.etag);
});

test('an event stream is never coded', async () => {
  const answer = await get(
    '/api/v1/events',
    { Accept: 'text/event-stream', 'Accept-Encoding': 'gzip' },
    'HEAD',
  );
  assert.equal(answer.status, 200);
  assert.equal(answer.headers['content-type'], 'text/event-stream');
  assert.equal(answer.headers['content-encoding'], undefined);
});

const content = Buffer.from(JSON.stringify({ name: 'Coded ä€😀', note: undefined }));
const send = (body: Uint8Array, coding: string) =>
  program.send('POST', '/api/v1/categories', {
    body,
    headers: { 'Content-Type': 'application/json', 'Content-Encoding': coding },
  });

for (const [coding, bytes] of [
  ['gzip', gzipSync(content)],
  ['x-gzip', gzipSync(content)],
  ['deflate', deflateSync(content)],
  ['br', brotliCompressSync(content)],
  ['zstd', zstdCompressSync(content)],
  ['GZIP', gzipSync(content)],
  ['gzip, br', brotliCompressSync(gzipSync(content))],
] as const) {
  test(`request content in ${coding} is decoded`, async () => {
    const answer = await send(bytes, coding);
    assert.equal(answer.status, 201, answer.body);
    assert.equal(answer.json().name, 'Coded ä€😀');
  });
}

test('PATCH and QUERY take coded content as POST does', async () => {
  const patch = await program.send(
    'PATCH',
    String((await send(gzipSync(content), 'gzip')).headers.location),
    {
      body: brotliCompressSync('{"name":"Patched"}'),
      headers: { 'Content-Type': 'application/merge-patch+json', 'Content-Encoding': 'br' },
    },
  );
  assert.equal(patch.json().name, 'Patched');
  const query = await program.send('QUERY', '/api/v1/categories', {
    body: gzipSync('{"filter":{"name":"Patched"}}'),
    headers: { 'Content-Type': 'application/json', 'Content-Encoding': 'gzip' },
  });
  assert.equal((query.json().items as unknown[]).length, 1);
});

test('an unknown coding is 415 and says which are known', async () => {
  for (const coding of ['compress', 'gzip, compress', 'lzma']) {
    const answer = await send(content, coding);
    assert.equal(answer.status, 415, coding);
    assert.equal(answer.json().code, 'content_coding_unsupported');
    assert.equal(answer.headers['accept-encoding'], 'gzip, deflate, br, zstd');
  }
});

test('content that is not what its coding says is 400', async () => {
  for (const [coding, bytes] of [
    ['gzip', content],
    ['br', content],
    ['zstd', content],
    ['deflate', deflateRawSync(content)],
    ['gzip', gzipSync(content).subarray(0, -4)],
    ['gzip', Buffer.concat([gzipSync(content), Buffer.from('rest')])],
  ] as const) {
    const answer = await send(bytes, coding);
    assert.equal(answer.status, 400, coding);
    assert.equal(answer.json().code, 'content_malformed');
  }
});
