/** Statuses: read off the decision graph, less what the declaration rules out. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { problems } from '../../src/http/problem-registry.ts';
import {
  documentOf,
  errorsOf,
  isOpen,
  operation,
  operationsOf,
  resolved,
  shopCollections,
  variety,
} from './fixture.ts';
import { codesOf, type Statuses, testStatuses } from './statuses.ts';

const shop = documentOf(shopCollections);
const shopTable: Statuses = [
  ['get', 'products', '200 304 401 403 406 412 429'],
  ['query', 'products', '200 304 401 403 406 412 413 415 422 429'],
  ['post', 'products', '201 202 303 401 403 406 409 412 413 415 422 429'],
  ['get', 'products/{id}', '200 304 401 403 404 406 412 429'],
  ['put', 'products/{id}', '200 202 204 401 403 404 406 409 412 413 415 422 429'],
  ['patch', 'products/{id}', '200 202 204 401 403 404 406 409 412 413 415 422 429'],
  ['delete', 'products/{id}', '200 202 204 401 403 404 406 409 412 422 429'],
  ['delete', 'categories/{id}', '200 202 204 401 403 404 406 409 412 422 429'],
  ['put', 'articles/{id}', '200 201 202 204 401 403 404 406 409 412 413 415 422 428 429'],
  ['delete', 'articles/{id}', '200 202 204 401 403 404 406 409 412 422 428 429'],
  ['post', 'products/bulk-delete', '200 202 204 401 403 406 409 412 413 415 422 429'],
  ['get', 'queries/{token}', '200 304 401 403 404 406 412 429'],
  ['get', 'queries/{token}/results/{version}', '200 401 403 404 406 410 412 429'],
  ['get', 'operations/{id}', '200 303 401 403 404 406 412 429'],
  ['get', 'events', '200 304 401 406 410 412 429'],
  ['get', 'events/{id}', '200 304 401 404 406 412 429'],
];

testStatuses(shop, shopTable);

test('leaves out conflicts that the declaration rules out', () => {
  assert.deepEqual(codesOf(shop, 'post', '/api/v1/products', 409), [
    'idempotency_key_in_use',
    'unique_taken',
  ]);
  assert.deepEqual(codesOf(shop, 'post', '/api/v1/notes', 409), ['idempotency_key_in_use']);
  // sku is unique and fixed at creation, so no change of a product can take another's.
  assert.deepEqual(codesOf(shop, 'patch', '/api/v1/products/{id}', 409), ['idempotency_key_in_use']);
  assert.deepEqual(codesOf(documentOf(variety), 'patch', '/api/v1/people/{id}', 409), [
    'idempotency_key_in_use',
    'unique_taken',
  ]);
  assert(codesOf(shop, 'post', '/api/v1/products', 422).includes('reference_missing'));
  assert(!codesOf(shop, 'post', '/api/v1/notes', 422).includes('reference_missing'));
});

test('counts dependants by the member that the body has', () => {
  const { responses } = operation(shop, 'delete', '/api/v1/categories/{id}') as {
    responses: Record<string, unknown>;
  };
  assert.match(JSON.stringify(resolved(shop, responses.default)), /"productCount":\{"type":"integer"/);
});

test('names every code under the status that the registry gives it', () => {
  for (const { item } of operationsOf(shop)) {
    for (const [status, codes] of errorsOf(shop, item)) {
      for (const code of codes) assert.equal(problems[code as keyof typeof problems].status, status);
    }
  }
});

test('says of every operation that takes a credential how the credential may be refused', () => {
  for (const { path, item } of operationsOf(shop))
    assert(errorsOf(shop, item).get(401)?.includes('invalid_token'), path);
});

test('opens an operation without a credential exactly where the access rule does', () => {
  const anonymous = (path: string, method: string) =>
    isOpen(shop, operation(shop, method, `/api/v1/${path}`));
  assert(anonymous('products', 'get') && anonymous('products', 'query') && anonymous('articles/{id}', 'get'));
  assert(
    !anonymous('products', 'post') && !anonymous('notes', 'get') && !anonymous('articles/{id}', 'delete'),
  );
  assert(!anonymous('operations/{id}', 'get'));
});
