/** Path to resource: literals, captures, escapes, and what a literal hides. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Resource } from '../../src/kernel/resource.ts';
import { createRouter } from '../../src/kernel/router.ts';

const resource = (pattern: string): Resource => ({
  pattern,
  operations: new Map(),
  constantFields: [],
  offers: [],
});

const router = createRouter(
  [
    '/v1/products',
    '/v1/products/{id}',
    '/v1/products/bulk-delete',
    '/v1/queries/{token}',
    '/v1/queries/{token}/results/{version}',
    '/health/live',
  ].map(resource),
);

function found(path: string): string {
  const route = router.find(path);
  if (route === undefined || route === 'missing') return String(route);
  return [route.resource.pattern, ...route.captures].join(' ');
}

test('finds collections, members and deeper captures', () => {
  assert.equal(found('/v1/products'), '/v1/products');
  assert.equal(found('/v1/products/7'), '/v1/products/{id} 7');
  assert.equal(found('/v1/queries/t/results/3.p'), '/v1/queries/{token}/results/{version} t 3.p');
  assert.equal(found('/health/live'), '/health/live');
});

test('a literal hides the member of that name, however it is spelled', () => {
  assert.equal(found('/v1/products/bulk-delete'), '/v1/products/bulk-delete');
  assert.equal(found('/v1/products/bulk%2Ddelete'), '/v1/products/bulk-delete');
});

test('captures are decoded once, and an escaped slash stays inside its segment', () => {
  assert.equal(found('/v1/products/a%2Fb'), '/v1/products/{id} a/b');
  assert.equal(found('/v1/products/%2525'), '/v1/products/{id} %25');
});

test('names nothing for a slash at the end, an unknown path, or a segment too many', () => {
  for (const path of ['/v1/products/', '/v1/nothing', '/v1/products/7/8', '/', '/v1', '/v1//7']) {
    assert.equal(found(path), 'missing', path);
  }
});

test('a bad escape or a dot segment is no path at all', () => {
  for (const path of [
    '/v1/products/%zz',
    '/v1/products/%ff',
    '/v1/../v1/products',
    '/v1/%2e%2e/products',
    '/v1/./products',
  ]) {
    assert.equal(found(path), 'undefined', path);
  }
});

test('two resources may not share a pattern', () => {
  assert.throws(() => createRouter([resource('/a'), resource('/a')]), /have the pattern \/a/);
});

const rooted = createRouter(['/v1/products', '/v1/products/{id}', '/'].map(resource), '/v1');

for (const [path, pattern] of [
  ['/v1/products', '/v1/products'],
  ['/v1/v1/products', '/v1/products'],
  ['/v1/v1/products/a', '/v1/products/{id}'],
  ['/v1', '/'],
  ['/v1/', '/'],
  ['/', '/'],
  ['/v1x/products', 'missing'],
  ['/v1/v1/v1/products', 'missing'],
  ['/v1/v1/%zz', undefined],
] as const) {
  test(`with the root /v1 finds ${pattern} for ${path}, as it is or without the root`, () => {
    const route = rooted.find(path);
    assert.equal(typeof route === 'object' ? route.resource.pattern : route, pattern);
  });
}
