/** What the document says in its own way, against what answers requests. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { problems } from '../../../src/http/problem-registry.ts';
import { closeSchema } from '../../../src/kernel/content/validator.ts';

import { inputSchema } from '../../../src/openapi/input-schemas.ts';
import { withTextBounds } from '../../../src/openapi/resource-schemas.ts';

import type { Answer } from '../../harness/exchange.ts';
import { type RunningServer, startServer } from '../../harness/running-server.ts';
import {
  documentOf,
  type Item,
  operation,
  resolved,
  shopCollections,
  variety,
} from '../../openapi/fixture.ts';

const schemasOf = (document: Item) => (document.components as { schemas: Record<string, Item> }).schemas;

/** Without what only forms read. */
function validated(schema: Item): Item {
  return JSON.parse(
    JSON.stringify(schema, (name, value: unknown) => (/^x-(?:help|default)$/.test(name) ? undefined : value)),
  ) as Item;
}

test('closes what clients send exactly as the validator does', () => {
  for (const [collections, name, schema] of [
    [shopCollections, 'products', 'ProductInput'],
    [variety, 'people', 'PeopleItemInput'],
  ] as const) {
    const { description: _described, ...closed } = schemasOf(documentOf(collections))[schema] ?? {};
    const collection = collections.get(name);
    assert(collection);
    const plain = JSON.parse(JSON.stringify(closeSchema(collection.schema))) as Item;
    const bounded = withTextBounds(plain, collection) as { properties: Record<string, Item> };
    for (const { field, collection: target } of collection.references)
      bounded.properties[field] = { ...bounded.properties[field], 'x-references': target };
    assert.deepEqual(validated(closed), inputSchema(bounded));
  }
});

test('names the collection that a member refers to, in what is served and in what clients send', () => {
  const schemas = schemasOf(documentOf(shopCollections));
  for (const name of ['Product', 'ProductInput']) {
    const { categoryId, name: title } = (schemas[name]?.properties ?? {}) as Record<string, Item>;
    assert.equal(categoryId?.['x-references'], 'categories');
    assert.equal(title?.['x-references'], undefined);
  }
});

test('says of each indexed text how many bytes it may take, unless the schema keeps it shorter', () => {
  const properties = schemasOf(documentOf(shopCollections)).Product?.properties as Record<string, Item>;
  assert.equal(properties.sku?.description, 'At most 2000 bytes of UTF-8, because it is indexed.');
  assert.equal(properties.categoryId?.description, 'At most 2000 bytes of UTF-8, because it is indexed.');
  assert.equal(properties.name?.description, undefined, 'it has no index');
  const code = { type: 'string', description: 'The code.' };
  const bounds = (property: Item, bytesMax: number) =>
    withTextBounds({ properties: { code: property } }, { textBounds: [{ path: ['code'], bytesMax }] });
  assert.deepEqual(bounds(code, 1000), {
    properties: {
      code: { ...code, description: 'The code. At most 1000 bytes of UTF-8, because it is indexed.' },
    },
  });
  for (const short of [{ maxLength: 250 }, { format: 'date-time' }, { const: 'a' }]) {
    const property = { type: 'string', ...short };
    assert.deepEqual(bounds(property, 1000), { properties: { code: property } });
    const nullable = { anyOf: [property, { type: 'null' }] };
    assert.deepEqual(bounds(nullable, 1000), { properties: { code: nullable } });
  }
  assert.notDeepEqual(bounds({ maxLength: 251 }, 1000), { properties: { code: { maxLength: 251 } } });
});

test('takes with each method the media types that OPTIONS announces', async () => {
  const program: RunningServer = await startServer();
  try {
    const document = documentOf(shopCollections);
    for (const name of shopCollections.keys()) {
      const list: Answer = await program.send('OPTIONS', `/api/v1/${name}`);
      const member: Answer = await program.send('OPTIONS', `/api/v1/${name}/x`);
      const types = (method: string, path: string) =>
        Object.keys(resolved(document, operation(document, method, path).requestBody).content as Item);
      assert.equal(types('post', `/api/v1/${name}`).join(', '), list.headers['accept-post']);
      assert.equal(types('put', `/api/v1/${name}/{id}`).join(', '), member.headers.accept);
      assert.equal(types('patch', `/api/v1/${name}/{id}`).join(', '), member.headers['accept-patch']);
      const queried = String(list.headers['accept-query']);
      for (const type of types('query', `/api/v1/${name}`))
        assert(queried.includes(type), `${type}: ${queried}`);
    }
  } finally {
    await program.stop();
  }
});

test('knows every code of the registry', () => {
  const anyOf = schemasOf(documentOf(shopCollections)).ErrorCode?.anyOf;
  // Or a code of the application's own.
  assert.deepEqual(anyOf, [{ enum: Object.keys(problems) }, { type: 'string' }]);
});
