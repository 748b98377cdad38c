/**
 * What the real program answers is what the document of the same configuration promises: the status, every header field, the
 * media type and the content, for requests that come to many different ends.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Answer, RequestOptions } from '../harness/exchange.ts';
import { serverOfFile } from '../harness/running-server.ts';
import { documentOf, type Item, shopCollections } from './fixture.ts';
import { promisedBy } from './promised.ts';

/** Everything on that can be on: then every field that an answer can have has to be described. */
const env = { COMITY_CORS_ORIGINS: 'https://a.example', COMITY_TRACE_METHOD: 'on' };
const document = documentOf(shopCollections, '3.2', { traceEnabled: true, corsEnabled: true });

const program = await serverOfFile({ env });
const promised = promisedBy(document, program);

function ask(method: string, target: string, options?: RequestOptions): Promise<Answer> {
  return promised.ask(method, target, options);
}

const anonymous = { anonymous: true } as const;
const products = '/api/v1/products';

test('answers the life of a product as the document says', async () => {
  const category = String((await ask('POST', '/api/v1/categories', { json: { name: 'Kitchen' } })).json().id);
  const kettle = { name: 'Kettle', price: 39.5, categoryId: category, sku: 'K', tags: ['a'], stock: 1 };
  const made = await ask('POST', products, { json: kettle, headers: { 'Idempotency-Key': '"one"' } });
  assert.equal(made.status, 201);
  const path = String(made.headers.location);
  await ask('POST', products, { json: kettle, headers: { 'Idempotency-Key': '"one"' } });
  await ask('POST', products, { json: { ...kettle, price: 1 }, headers: { 'Idempotency-Key': '"one"' } });
  await ask('POST', products, { json: { ...kettle, sku: 'L' }, headers: { Prefer: 'return=minimal' } });
  const onlyIf = await ask('POST', products, { json: kettle, headers: { 'If-Match': '"0"' } });
  assert.equal(onlyIf.status, 412);
  for (const json of [
    kettle,
    { name: 'x' },
    { ...kettle, sku: 'Z', price: -1 },
    { ...kettle, sku: 'Z', categoryId: 'none' },
  ]) {
    await ask('POST', products, { json });
  }
  const form = { 'Content-Type': 'application/x-www-form-urlencoded', Accept: 'text/html' };
  assert.equal((await ask('POST', '/api/v1/categories', { headers: form, body: 'name=Garden' })).status, 303);
  const tag = String((await ask('GET', path)).headers.etag);
  await ask('GET', `${path}?fields=name`);
  await ask('GET', path, { headers: { 'If-None-Match': tag } });
  await ask('HEAD', path);
  await ask('GET', path, { headers: { 'If-Match': '"0"' } });
  await ask('PUT', path, { json: { ...kettle, price: 40 } });
  await ask('PUT', path, { json: { ...kettle, price: 41 }, headers: { Prefer: 'return=minimal' } });
  await ask('PUT', path, { json: { ...kettle, sku: 'other' } });
  await ask('PATCH', path, { json: { price: 42 } });
  await ask('PATCH', path, { json: { price: 43 }, headers: { Prefer: 'return=minimal' } });
  await ask('PATCH', path, { json: { price: 44 }, headers: { 'If-Match': tag } });
  const patch = { 'Content-Type': 'application/json-patch+json' };
  await ask('PATCH', path, { headers: patch, body: '[{"op":"test","path":"/price","value":0}]' });
  await ask('PATCH', path, { headers: patch, body: '{}' });
  await ask('DELETE', `/api/v1/categories/${category}`);
  const later = await ask('DELETE', path, { headers: { Prefer: 'respond-async' } });
  assert.equal(later.status, 202);
  await ask('GET', String(later.headers.location));
  await ask('POST', `${products}/bulk-delete`, { json: { ids: ['none'] } });
  await ask('POST', `${products}/bulk-delete`, { json: {} });
});

test('answers an article as the document says', async () => {
  const path = '/api/v1/articles/kettles';
  await ask('PUT', path, { json: { title: 'Kettles', published: true } });
  await ask('PUT', path, { json: { title: 'Kettles' } });
  await ask('PATCH', path, { json: { title: 'Kettles' }, ...anonymous });
  const tag = String((await ask('GET', path)).headers.etag);
  const headers = { 'If-Match': tag, Prefer: 'return=representation' };
  assert.equal((await ask('DELETE', path, { headers })).status, 200);
  await ask('DELETE', path);
  await ask('PUT', path, { json: { title: 'Kettles' } });
});

test('answers lists and queries as the document says', async () => {
  await ask('GET', `${products}?price[gte]=1&sort=-price&limit=1`, { headers: { Prefer: 'count=exact' } });
  await ask('GET', `${products}?prize=1`);
  await ask('HEAD', products);
  await ask('GET', '/api/v1/notes', anonymous);
  const repeated = await ask('QUERY', products, { json: { filter: { price: { gte: 1 } }, limit: 1 } });
  await ask('GET', String(repeated.headers.location));
  await ask('GET', `${repeated.headers.location}?cursor=x`);
  await ask('GET', String(repeated.headers['content-location']));
  await ask('QUERY', products, { json: { filter: { prize: 1 } } });
  await ask('QUERY', products, {
    headers: { 'Content-Type': 'application/sql' },
    body: 'SELECT * FROM products LIMIT 1',
  });
  await ask('QUERY', products, { headers: { 'Content-Type': 'application/sql' }, body: 'SELECT' });
  await ask('QUERY', products, { headers: { 'Content-Type': 'text/csv' }, body: 'a' });
  await ask('QUERY', products, { body: '{}' });
  await ask('QUERY', `${products}?limit=1`, { json: {} });
});

test('answers everything else as the document says', async () => {
  await ask('OPTIONS', products);
  await ask('OPTIONS', `${products}/bulk-delete`, anonymous);
  await ask('OPTIONS', products, {
    headers: { Origin: 'https://a.example', 'Access-Control-Request-Method': 'PUT' },
  });
  await ask('POST', products, { json: {}, ...anonymous });
  await ask('GET', products, { headers: { Authorization: 'Bearer wrong' } });
  await ask('GET', products, { headers: { Accept: 'image/png' } });
  await ask('GET', `${products}/none`, { headers: { Accept: 'application/problem+json' } });
  await ask('POST', products, { headers: { 'Content-Type': 'text/csv' }, body: 'a' });
  await ask('POST', products, {
    headers: { 'Content-Type': 'application/json', 'Content-Encoding': 'x' },
    body: '{}',
  });
  await ask('POST', products, { headers: { Expect: 'miracle' }, json: {} });
  await ask('GET', products, { headers: { Origin: 'https://a.example' } });
  await ask('GET', products, { headers: { Origin: 'https://b.example' } });
  await ask('TRACE', products, anonymous);
  const events = await ask('GET', '/api/v1/events?limit=1');
  const [event] = events.json().items as readonly { id: string }[];
  await ask('GET', `/api/v1/events/${event?.id}`);
  await ask('GET', '/api/v1/events/none', anonymous);
  await ask('GET', '/api/v1/operations/none');
  for (const path of ['/health/live', '/health/ready', '/metrics']) await ask('GET', path);
  await ask('GET', '/metrics', anonymous);
});

test('has for every path the methods that OPTIONS announces, besides those that the preface names', async () => {
  for (const [path, item] of Object.entries(document.paths as Record<string, Item>)) {
    const target = path.replaceAll(/\{[^}]+\}/g, 'x');
    const { status, headers } = await program.send('OPTIONS', target);
    assert.equal(status, 204, target);
    const described = Object.keys(item)
      .filter((name) => name !== 'parameters')
      .map((method) => method.toUpperCase());
    const others = ['OPTIONS', 'TRACE', ...(described.includes('GET') ? ['HEAD'] : [])];
    assert.deepEqual(String(headers.allow).split(', ').sort(), [...described, ...others].sort(), target);
  }
});

test('came to many different ends', () => {
  const { seen } = promised;
  assert(seen.size >= 50, `${seen.size}: ${[...seen].join(', ')}`);
});
