/** Tables that the document keeps of its own, because its room may not import another, against those that answer requests. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { problems } from '../../src/http/problem-registry.ts';
import type { Field } from '../../src/model/field.ts';
import { withTextBounds } from '../../src/openapi/text-bounds.ts';
import { closeSchema } from '../../src/resources/document/closed-schema.ts';
import { eventFields } from '../../src/resources/events/visibility.ts';
import { operatorsOf } from '../../src/resources/query/comparison.ts';
import type { Answer } from '../harness/exchange.ts';
import { type RunningServer, startServer } from '../harness/running-server.ts';
import { documentOf, type Item, operation, resolved, shopCollections, variety } from './fixture.ts';

const schemasOf = (document: Item) => (document.components as { schemas: Record<string, Item> }).schemas;

test('offers for each field the operators that the query compilers take', () => {
  for (const [collections, name] of [
    [shopCollections, 'products'],
    [variety, 'people'],
  ] as const) {
    const document = documentOf(collections);
    const collection = collections.get(name);
    assert(collection);
    compareOperators(document, collection.fields.values(), `/api/v1/${name}`);
  }
});

test('lets events be filtered by the fields that the log can be filtered by', () => {
  compareOperators(documentOf(shopCollections), eventFields.values(), '/api/v1/events');
});

function compareOperators(document: Item, fields: Iterable<Field>, path: string): void {
  const { parameters } = operation(document, 'get', path) as { parameters: readonly Item[] };
  const offered = new Map(
    parameters
      .map((item) => resolved(document, item))
      .filter(({ style }) => style === 'deepObject')
      .map(
        ({ name, schema }) =>
          [String(name), Object.keys(resolved(document, schema).properties as Item)] as const,
      ),
  );
  const taken = [...fields].filter((field) => operatorsOf(field).length > 0);
  assert.deepEqual([...offered.keys()].sort(), taken.map(({ name }) => name).sort());
  for (const field of taken)
    assert.deepEqual(offered.get(field.name)?.sort(), [...operatorsOf(field)].sort());
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
    assert.deepEqual(closed, withTextBounds(plain, collection));
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
        Object.keys((operation(document, method, path).requestBody as { content: Item }).content);
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
  const error = schemasOf(documentOf(shopCollections)).Error;
  assert(error);
  const { enum: codes } = (error.properties as { code: { enum: readonly string[] } }).code;
  assert.deepEqual(codes, Object.keys(problems));
});
