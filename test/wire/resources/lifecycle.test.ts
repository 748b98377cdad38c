/**
 * The life of a resource over the wire: §4.2 GET, §4.3 HEAD, §4.4 POST, §4.5 PUT, §4.6 PATCH, §4.7 DELETE.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { serverOfFile } from '../../harness/running-server.ts';

const program = await serverOfFile();
const category = await program.send('POST', '/api/v1/categories', { json: { name: 'Kitchen' } });
const categoryId = String(category.json().id);

async function makeProduct(fields: Record<string, unknown> = {}) {
  const json = { name: 'Kettle', price: 39.5, categoryId, ...fields };
  const answer = await program.send('POST', '/api/v1/products', { json });
  assert.equal(answer.status, 201, answer.body);
  return { answer, id: String(answer.json().id), path: `/api/v1/products/${answer.json().id}` };
}

test('POST creates with Location, validators and the representation, and GET serves the same bytes', async () => {
  const { answer, path } = await makeProduct({ tags: ['a'], stock: 3 });
  assert.equal(answer.headers.location, path);
  assert.match(answer.headers.etag ?? '', /^"\d+"$/);
  const read = await program.send('GET', path, { anonymous: true });
  assert.equal(read.status, 200);
  assert.equal(read.body, answer.body);
  assert.equal(read.headers.etag, answer.headers.etag);
  assert.equal(read.headers['last-modified'], answer.headers['last-modified']);
  assert.equal(read.headers['content-type'], 'application/json');
  assert.equal(read.headers['content-length'], String(Buffer.byteLength(read.body)));
  assert.equal(read.headers['api-version'], '1');
  assert.ok(read.headers.date);
  const { id, createdAt, updatedAt, ...fields } = read.json();
  assert.match(String(id), /^[0-9a-z]{26}$/);
  assert.match(String(createdAt), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  assert.equal(createdAt, updatedAt);
  assert.deepEqual(fields, { name: 'Kettle', price: 39.5, categoryId, tags: ['a'], stock: 3 });
});

test('HEAD gives the fields of GET and no content, errors included', async () => {
  const { path } = await makeProduct();
  const get = await program.send('GET', path);
  const head = await program.send('HEAD', path);
  assert.equal(head.status, 200);
  assert.equal(head.body, '');
  for (const name of ['content-type', 'content-length', 'etag', 'last-modified', 'cache-control', 'vary']) {
    assert.equal(head.headers[name], get.headers[name], name);
  }
  const unchanged = await program.send('HEAD', path, {
    headers: { 'If-None-Match': get.headers.etag ?? '' },
  });
  assert.equal(unchanged.status, 304);
  const missing = await program.send('HEAD', '/api/v1/products/none');
  assert.equal(missing.status, 404);
  assert.equal(missing.body, '');
  assert.equal((await program.send('HEAD', '/api/v1/products/bulk-delete')).status, 405);
});

test('PUT replaces the whole resource: what is left out is gone', async () => {
  const { path } = await makeProduct({ tags: ['a'], stock: 3 });
  const put = await program.send('PUT', path, { json: { name: 'Pot', price: 10, categoryId } });
  assert.equal(put.status, 200);
  assert.equal(put.headers.etag, undefined, 'RFC 9110 §9.3.4: no validator for content the server changed');
  const { id: _id, createdAt: _c, updatedAt: _u, ...fields } = (await program.send('GET', path)).json();
  assert.deepEqual(fields, { name: 'Pot', price: 10, categoryId });
});

test('PUT refuses a missing required field with 400, a wrong type with 422, both with 400', async () => {
  const { path } = await makeProduct();
  const missing = await program.send('PUT', path, { json: { name: 'Pot', price: 1 } });
  assert.equal(missing.status, 400);
  assert.deepEqual(missing.json().errors, [{ pointer: '/categoryId', message: 'is required' }]);
  const wrong = await program.send('PUT', path, { json: { name: 'Pot', price: 'x', categoryId } });
  assert.equal(wrong.status, 422);
  const both = await program.send('PUT', path, { json: { name: 1, price: 2 } });
  assert.equal(both.status, 400);
  assert.equal((await program.send('GET', path)).json().name, 'Kettle', 'nothing was done');
});

test('PUT to a missing resource is 404 unless the collection creates by PUT', async () => {
  const json = { name: 'Pot', price: 10, categoryId };
  assert.equal((await program.send('PUT', '/api/v1/products/none', { json })).status, 404);
  const article = { title: 'A', published: true };
  const made = await program.send('PUT', '/api/v1/articles/my-slug', { json: article });
  assert.equal(made.status, 201);
  assert.equal(made.headers.location, '/api/v1/articles/my-slug');
  assert.equal(made.json().id, 'my-slug');
});

test('PUT takes the server-made members as they stand and refuses to change them', async () => {
  const { path, answer } = await makeProduct();
  const same = await program.send('PUT', path, { json: { ...answer.json(), price: 5 } });
  assert.equal(same.status, 200);
  const other = await program.send('PUT', path, {
    json: { ...same.json(), createdAt: '2020-01-01T00:00:00.000Z' },
  });
  assert.equal(other.status, 400);
  assert.equal(other.json().code, 'field_unpatchable');
});

test('PATCH changes only what a merge patch names, by either media type', async () => {
  const { path } = await makeProduct({ tags: ['a'], stock: 3 });
  for (const type of ['application/merge-patch+json', 'application/json']) {
    const answer = await program.send('PATCH', path, {
      headers: { 'Content-Type': type },
      body: JSON.stringify({ price: type.length, tags: null }),
    });
    assert.equal(answer.status, 200);
    assert.equal(answer.json().price, type.length);
    assert.equal(answer.json().tags, undefined);
    assert.equal(answer.json().stock, 3);
    assert.match(answer.headers.etag ?? '', /^"\d+"$/);
  }
});

test('PATCH applies a JSON Patch as a whole or not at all', async () => {
  const { path } = await makeProduct({ tags: ['a'] });
  const patch = (operations: unknown) =>
    program.send('PATCH', path, {
      headers: { 'Content-Type': 'application/json-patch+json' },
      body: JSON.stringify(operations),
    });
  const good = await patch([
    { op: 'test', path: '/name', value: 'Kettle' },
    { op: 'add', path: '/tags/-', value: 'b' },
    { op: 'replace', path: '/price', value: 1 },
  ]);
  assert.equal(good.status, 200);
  assert.deepEqual(good.json().tags, ['a', 'b']);
  const failing = await patch([
    { op: 'replace', path: '/price', value: 2 },
    { op: 'test', path: '/name', value: 'Pot' },
  ]);
  assert.equal(failing.status, 422);
  assert.equal(failing.json().code, 'patch_not_applicable');
  assert.equal((await program.send('GET', path)).json().price, 1);
  assert.equal((await patch({ op: 'replace' })).status, 400);
  assert.equal((await patch([{ op: 'jump', path: '/price' }])).status, 400);
  assert.equal((await patch([{ op: 'replace', path: '/sku', value: 'x' }])).status, 400);
  assert.equal((await patch([{ op: 'replace', path: '/id', value: 'x' }])).status, 400);
});

test('PATCH tells unpatchable (400), missing (404), foreign type (415), invalid (422) and taken (409) apart', async () => {
  const { path } = await makeProduct({ sku: 'PATCH-1' });
  assert.equal((await program.send('PATCH', path, { json: { sku: 'other' } })).status, 400);
  assert.equal((await program.send('PATCH', '/api/v1/products/none', { json: {} })).status, 404);
  const foreign = await program.send('PATCH', path, { headers: { 'Content-Type': 'text/csv' }, body: 'a' });
  assert.equal(foreign.status, 415);
  assert.match(foreign.headers['accept-patch']?.toString() ?? '', /application\/json-patch\+json/);
  assert.equal((await program.send('PATCH', path, { json: { price: -1 } })).status, 422);
  assert.equal((await program.send('PATCH', path, { json: { name: null } })).status, 422);
  assert.equal((await program.send('PATCH', path, { json: { categoryId: 'none' } })).status, 422);
  const taken = await program.send('POST', '/api/v1/products', {
    json: { name: 'Pot', price: 1, categoryId, sku: 'PATCH-1' },
  });
  assert.equal(taken.status, 409);
  assert.deepEqual(taken.json().errors, [{ pointer: '/sku', message: 'already in use' }]);
});

test('DELETE answers 204 once and 404 after that', async () => {
  const { path } = await makeProduct();
  const gone = await program.send('DELETE', path);
  assert.equal(gone.status, 204);
  assert.equal(gone.headers['content-length'], undefined);
  assert.equal((await program.send('DELETE', path)).status, 404);
  assert.equal((await program.send('GET', path)).status, 404);
});

test('DELETE gives what was deleted when asked to', async () => {
  const { path, answer } = await makeProduct();
  const gone = await program.send('DELETE', path, { headers: { Prefer: 'return=representation' } });
  assert.equal(gone.status, 200);
  assert.equal(gone.headers['preference-applied'], 'return=representation');
  assert.deepEqual(gone.json(), answer.json());
});

test('DELETE of a category in use is 409 and counts its products', async () => {
  const category = await program.send('POST', '/api/v1/categories', { json: { name: 'Busy' } });
  const id = String(category.json().id);
  await makeProduct({ categoryId: id });
  await makeProduct({ categoryId: id });
  const refused = await program.send('DELETE', `/api/v1/categories/${id}`);
  assert.equal(refused.status, 409);
  assert.equal(refused.json().productCount, 2);
  assert.equal(refused.json().code, 'dependants_exist');
  assert.equal(typeof refused.json().error, 'string');
});

test('a soft deletion hides the article, sets deletedAt, and lets PUT create it anew', async () => {
  const path = '/api/v1/articles/soft';
  await program.send('PUT', path, { json: { title: 'Soft', published: true } });
  const { etag } = (await program.send('GET', path)).headers;
  assert.equal((await program.send('DELETE', path)).status, 428);
  const gone = await program.send('DELETE', path, {
    headers: { 'If-Match': etag ?? '', Prefer: 'return=representation' },
  });
  assert.equal(gone.status, 200);
  assert.match(String(gone.json().deletedAt), /Z$/);
  assert.equal((await program.send('GET', path)).status, 404);
  assert.equal((await program.send('DELETE', path, { headers: { 'If-Match': '*' } })).status, 404);
  const list = await program.send('GET', '/api/v1/articles');
  assert.ok(!list.body.includes('"soft"'));
  const again = await program.send('PUT', path, { json: { title: 'Back', published: true } });
  assert.equal(again.status, 201);
});

test('bulk-delete counts what it deleted, once for each id, in one unit', async () => {
  const a = await makeProduct();
  const b = await makeProduct();
  const answer = await program.send('POST', '/api/v1/products/bulk-delete', {
    json: { ids: [a.id, b.id, a.id, 'none'] },
  });
  assert.equal(answer.status, 200);
  assert.deepEqual(answer.json(), { deleted: 2 });
  assert.equal((await program.send('GET', a.path)).status, 404);
  assert.equal((await program.send('POST', '/api/v1/products/bulk-delete', { json: {} })).status, 400);
  assert.equal(
    (await program.send('POST', '/api/v1/products/bulk-delete', { json: { ids: 'x' } })).status,
    422,
  );
});

test('every shop collection takes JSON, form and multipart; notes take text; other types are 415', async () => {
  const form = await program.send('POST', '/api/v1/products', {
    headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
    body: `name=Form&price=2.5&categoryId=${categoryId}&tags=a&tags=b&stock=4`,
  });
  assert.equal(form.status, 201, form.body);
  assert.equal(form.json().price, 2.5);
  assert.deepEqual(form.json().tags, ['a', 'b']);
  const boundary = 'XyZ';
  const part = (name: string, value: string) =>
    `--${boundary}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`;
  const multipart = await program.send('POST', '/api/v1/products', {
    headers: { 'Content-Type': `multipart/form-data; boundary=${boundary}` },
    body: `${part('name', 'Multi')}${part('price', '3')}${part('categoryId', categoryId)}--${boundary}--\r\n`,
  });
  assert.equal(multipart.status, 201, multipart.body);
  assert.equal(multipart.json().price, 3);
  const note = await program.send('POST', '/api/v1/notes', {
    headers: { 'Content-Type': 'text/plain' },
    body: 'Buy vinegar',
  });
  assert.equal(note.status, 201);
  assert.equal(note.json().text, 'Buy vinegar');
  // An empty text is a text, and judged like any other.
  const asJson = await program.send('POST', '/api/v1/notes', { json: { text: '' } });
  for (const body of [{ body: '' }, {}]) {
    const empty = await program.send('POST', '/api/v1/notes', {
      headers: { 'Content-Type': 'text/plain' },
      ...body,
    });
    assert.deepEqual([empty.status, empty.json()], [asJson.status, asJson.json()]);
  }
  const text = await program.send('POST', '/api/v1/products', {
    headers: { 'Content-Type': 'text/plain' },
    body: 'x',
  });
  assert.equal(text.status, 415);
  assert.match(text.headers['accept-post']?.toString() ?? '', /multipart\/form-data/);
  assert.equal((await program.send('POST', '/api/v1/products', { body: 'x' })).status, 415);
});

test('a browser form is sent on with 303, an API client with the same form gets 201', async () => {
  const body = `name=Form&price=2&categoryId=${categoryId}`;
  const type = { 'Content-Type': 'application/x-www-form-urlencoded' };
  const page = await program.send('POST', '/api/v1/products', {
    headers: { ...type, Accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8' },
    body,
  });
  assert.equal(page.status, 303);
  assert.equal(page.headers['cache-control'], 'no-store');
  assert.match(page.headers.location ?? '', /^\/api\/v1\/products\//);
  const client = await program.send('POST', '/api/v1/products', {
    headers: { ...type, Accept: '*/*' },
    body,
  });
  assert.equal(client.status, 201);
});

test('malformed content is 400 and tells where', async () => {
  for (const body of [
    '{"name":',
    '{"name":"a","name":"b"}',
    '{"name":"\\ud800"}',
    '{"__proto__":{}}',
    '{"price":1e999}',
    `${'['.repeat(100)}${']'.repeat(100)}`,
    '\ufeff{}',
    '',
  ]) {
    const answer = await program.send('POST', '/api/v1/products', {
      headers: { 'Content-Type': 'application/json' },
      body,
    });
    assert.equal(answer.status, 400, `${body.slice(0, 20)}: ${answer.body}`);
    assert.equal(typeof answer.json().error, 'string');
  }
});

test('a method the resource lacks is 405 with Allow; one nobody knows is 501', async () => {
  const put = await program.send('PUT', '/api/v1/products', { json: {} });
  assert.equal(put.status, 405);
  const allowed = ['GET', 'HEAD', 'OPTIONS', 'PATCH', 'POST', 'QUERY'];
  assert.deepEqual(String(put.headers.allow).split(', ').sort(), allowed);
  const query = await program.send('QUERY', '/api/v1/products/none', { json: {} });
  assert.equal(query.status, 405);
  assert.equal((await program.send('TRACE', '/api/v1/products')).status, 405);
  assert.equal((await program.send('PROPFIND', '/api/v1/products')).status, 501);
  assert.equal((await program.send('GET', '/api/v1/nothing')).status, 404);
  assert.equal((await program.send('GET', '/api/v1/products/')).status, 404);
});
