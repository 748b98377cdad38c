/**
 * Conditional requests (RFC 9110 §13), 428 mode, and races that they decide.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { answered } from '../../harness/expected-answer.ts';
import { serverOfFile, startServer } from '../../harness/running-server.ts';

const program = await serverOfFile();
const categoryId = String((await program.send('POST', 'categories', { json: { name: 'C' } })).json().id);

async function make() {
  const answer = await program.send('POST', 'products', { json: { name: 'P', price: 1, categoryId } });
  return { path: String(answer.headers.location), etag: String(answer.headers.etag), answer };
}

const get = (path: string, headers: Record<string, string>) => program.send('GET', path, { headers });
const patch = (path: string, headers: Record<string, string>, json: unknown = { price: 2 }) =>
  program.send('PATCH', path, { headers, json });

test('If-Match takes a weak tag only where a setting says so, and only that of the current state', async () => {
  for (const [environment, status] of [
    [{}, 412],
    [{ COMITY_WEAK_IF_MATCH: 'on' }, 200],
  ] as const) {
    const server = await startServer({ env: environment });
    try {
      const { headers } = await server.send('POST', 'categories', { json: { name: 'C' }, expect: 201 });
      const path = String(headers.location);
      const change = (tag: string, expect: number) =>
        server.send('PATCH', path, { headers: { 'If-Match': tag }, json: { name: 'D' }, expect });
      await change(`W/${headers.etag}`, status);
      await change('W/"other"', 412);
      await change('"other"', 412);
    } finally {
      await server.stop();
    }
  }
});

test('GET and HEAD say that ranges are not served, and ignore one (RFC 9110 §14.3)', async () => {
  const { path } = await make();
  for (const target of [path, '/api/v1/products', '/openapi.json', '/health/live']) {
    for (const method of ['GET', 'HEAD']) {
      const answer = await program.send(method, target, { headers: { Range: 'bytes=0-1' }, expect: 200 });
      assert.equal(answer.headers['accept-ranges'], 'none', `${method} ${target}`);
    }
  }
});

test('If-Match lets one version be changed, compares strongly, and 412 carries the current ETag', async () => {
  const { path, etag } = await make();
  await answered(patch(path, { 'If-Match': '"0"' }), { status: 412, fields: { etag } });
  assert.equal((await patch(path, { 'If-Match': `W/${etag}` })).status, 412);
  await answered(patch(path, { 'If-Match': `"x", ${etag}` }), 200);
  assert.equal((await patch(path, { 'If-Match': etag })).status, 412);
  assert.equal((await patch(path, { 'If-Match': '*' })).status, 200);
  assert.equal((await patch(path, { 'If-Match': 'unquoted' })).status, 400);
});

test('If-None-Match: * makes PUT create only', async () => {
  const json = { title: 'T', published: true };
  const put = () => program.send('PUT', 'articles/only-once', { json, headers: { 'If-None-Match': '*' } });
  assert.equal((await put()).status, 201);
  assert.equal((await put()).status, 412);
});

test('If-Match on what does not exist is 404 where PUT does not create and 412 where it does', async () => {
  const json = { title: 'T' };
  const headers = { 'If-Match': '*' };
  assert.equal((await program.send('PUT', 'articles/absent', { json, headers })).status, 412);
  assert.equal((await patch('/api/v1/products/absent', headers)).status, 404);
});

test('other refusals outrank 412', async () => {
  const { path } = await make();
  const headers = { 'If-Match': '"0"' };
  assert.equal((await patch(path, headers, { price: 'x' })).status, 422);
  assert.equal((await program.send('PATCH', path, { headers, json: {}, anonymous: true })).status, 401);
  assert.equal(
    (await program.send('PATCH', path, { headers: { ...headers, 'Content-Type': 'text/csv' }, body: 'a' }))
      .status,
    415,
  );
});

test('a collection that requires If-Match answers 428 without it', async () => {
  await program.send('PUT', 'articles/strict', { json: { title: 'T' } });
  const bare = await program.send('PUT', 'articles/strict', { json: { title: 'U' }, expect: 428 });
  assert.equal(bare.json().code, 'precondition_required');
  assert.equal((await program.send('PATCH', 'articles/strict', { json: { title: 'U' } })).status, 428);
  assert.equal((await program.send('DELETE', 'articles/strict')).status, 428);
});

test('field selection never changes the tag that If-Match needs', async () => {
  const { path, etag } = await make();
  const part = await get(`${path}?fields=name`, {});
  assert.deepEqual(part.json(), { name: 'P' });
  assert.equal(part.headers.etag, etag);
  assert.equal((await patch(path, { 'If-Match': String(part.headers.etag) })).status, 200);
});

test('a content coding has a tag of its own, and If-Match takes any coding of the current version', async () => {
  const name = 'x'.repeat(200);
  const tags = Array.from({ length: 60 }, (_, index) => `a tag to compress ${index}`);
  const { headers } = await program.send('POST', 'products', { json: { name, price: 1, categoryId, tags } });
  const path = String(headers.location);
  const plain = await get(path, {});
  const gzip = await get(path, { 'Accept-Encoding': 'gzip' });
  const br = await get(path, { 'Accept-Encoding': 'gzip;q=0.5, br' });
  assert.equal(gzip.headers['content-encoding'], 'gzip');
  assert.equal(br.headers['content-encoding'], 'br');
  assert.equal(new Set([plain, gzip, br].map((answer) => answer.headers.etag)).size, 3);
  await answered(get(path, { 'Accept-Encoding': 'gzip', 'If-None-Match': String(gzip.headers.etag) }), 304);
  assert.equal((await patch(path, { 'If-Match': String(br.headers.etag) })).status, 200);
  assert.equal(
    (await get(path, { 'Accept-Encoding': 'identity;q=1, *;q=0' })).headers['content-encoding'],
    undefined,
  );
});

test('many writers with one If-Match have exactly one winner', async () => {
  const { path, etag } = await make();
  const answers = await Promise.all(
    // Each is a price of its own, unlike that of make(): a change to what is there already wins without making a version.
    Array.from({ length: 40 }, (_, index) => patch(path, { 'If-Match': etag }, { price: 1000 + index })),
  );
  const won = answers.filter(({ status }) => status === 200);
  assert.equal(won.length, 1);
  assert.equal(answers.filter(({ status }) => status === 412).length, 39);
  assert.equal((await get(path, {})).json().price, won[0]?.json().price);
});

test('many JSON Patch additions to one array lose none', async () => {
  const { path } = await make();
  await patch(path, {}, { tags: [] });
  const answers = await Promise.all(
    Array.from({ length: 40 }, (_, index) =>
      program.send('PATCH', path, {
        headers: { 'Content-Type': 'application/json-patch+json' },
        body: JSON.stringify([{ op: 'add', path: '/tags/-', value: `t${index}` }]),
      }),
    ),
  );
  assert.deepEqual([...new Set(answers.map(({ status }) => status))], [200]);
  const tags = (await get(path, {})).json().tags as string[];
  assert.equal(new Set(tags).size, 40);
});
