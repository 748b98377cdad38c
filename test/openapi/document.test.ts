/** The document as a whole: by the official schemas of the OpenAPI Initiative, and by what no schema can say. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TObject } from 'typebox';
import { resolveCollections } from '../../src/config/collections.ts';
import {
  type DocumentSetting,
  documentOf,
  type Item,
  operation,
  operationsOf,
  resolved,
  responsesOf,
  shopCollections,
  variety,
} from './fixture.ts';
import { complaintsAbout } from './official-schema.ts';

const node = { anyOf: [{ type: 'string' }, { type: 'array', items: { $ref: '#/$defs/node' } }] };
const referring = resolveCollections({
  trees: {
    schema: {
      ...{ type: 'object', $defs: { node }, definitions: { name: { type: 'string' } } },
      properties: {
        node: { $ref: '#/$defs/node' },
        name: { $ref: '#/definitions/name' },
        again: { $ref: '#/properties/name' },
        whole: { $ref: '#' },
      },
    } as unknown as TObject,
  },
});

const sets = [
  ['the shop', shopCollections],
  ['schemas with references', referring],
  ['varied collections', variety],
  ['no collection', new Map()],
] as const;

for (const [label, collections] of sets) {
  for (const version of ['3.2', '3.1'] as const) {
    test(`follows the official ${version} schema for ${label}`, async () => {
      assert.equal(await complaintsAbout(documentOf(collections, version)), undefined);
    });
  }
  test(`has no reference that leads nowhere and no component that nothing uses, for ${label}`, () => {
    const document = documentOf(collections);
    const all = new Set(references(document));
    for (const $ref of all) resolved(document, { $ref });
    const used = new Set([...all].map(($ref) => $ref.split('/', 4).join('/')));
    const kept = Object.entries(document.components as Record<string, Item>)
      .filter(([kind]) => kind !== 'securitySchemes')
      .flatMap(([kind, items]) => Object.keys(items).map((name) => `#/components/${kind}/${name}`));
    assert.deepEqual(
      kept.filter((name) => !used.has(name)),
      [],
    );
  });
  test(`gives each operation an id of its own, for ${label}`, () => {
    const ids = operationsOf(documentOf(collections)).map(({ item }) => item.operationId);
    assert.equal(new Set(ids).size, ids.length);
  });
}

test('is refused by the official schema when an operation is broken', async () => {
  const document = documentOf(shopCollections);
  const broken = structuredClone(document) as {
    paths: Record<string, Record<string, { responses: unknown }>>;
  };
  const query = broken.paths['/api/v1/products']?.query;
  assert(query);
  query.responses = [];
  assert.notEqual(await complaintsAbout(broken), undefined);
});

test('names the operations of a collection as a client library would', () => {
  const ids = operationsOf(documentOf(shopCollections))
    .filter(({ path }) => path.startsWith('/api/v1/products') && !path.endsWith('/history'))
    .map(({ item }) => item.operationId);
  assert.deepEqual(ids, [
    'listProducts',
    'createProduct',
    'patchManyProducts',
    'queryProducts',
    'readProduct',
    'replaceProduct',
    'patchProduct',
    'deleteProduct',
    'exportProducts',
    'bulkCreateProducts',
    'importProducts',
    'bulkDeleteProducts',
  ]);
});

test('keeps its own schemas from a collection of the same name', () => {
  const { schemas } = documentOf(variety).components as { schemas: Record<string, Item> };
  assert.deepEqual(schemas.Error?.required, ['error', 'code']);
  assert.deepEqual(schemas.Error2?.required, ['id', 'text', 'createdAt', 'updatedAt']);
});

test('has QUERY as an operation in 3.2 and as an extension in 3.1, and says so there', () => {
  const latest = documentOf(shopCollections);
  const earlier = documentOf(shopCollections, '3.1');
  const path = (document: Item) => (document.paths as Record<string, Item>)['/api/v1/products'] ?? {};
  assert.equal(latest.openapi, '3.2.0');
  assert.equal(earlier.openapi, '3.1.1');
  assert('query' in path(latest) && !('x-query' in path(latest)));
  assert('x-query' in path(earlier) && !('query' in path(earlier)));
  assert.match((earlier.info as { description: string }).description, /x-query/);
  assert(!JSON.stringify(earlier).includes('itemSchema'));
  const content = operation(latest, 'query', '/api/v1/products').requestBody as { content: Item };
  assert.deepEqual(Object.keys(content.content), [
    'application/json',
    'application/x-www-form-urlencoded',
    'application/sql',
  ]);
});

test('describes the items of the event stream in 3.2', () => {
  const document = documentOf(shopCollections);
  const { responses, 'x-responses': asked } = operation(document, 'get', '/api/v1/events') as {
    responses: Item;
    'x-responses': Record<string, Item>;
  };
  const contentOf = (response: unknown) => resolved(document, response).content as Record<string, Item>;
  assert.deepEqual(Object.keys(contentOf(responses['200'])), ['application/json']);
  const stream = contentOf(asked['Accept: text/event-stream']?.['200']);
  assert('itemSchema' in (stream['text/event-stream'] ?? {}));
});

test('demands no member with a default of what is sent, and says the default in words there', () => {
  const { schemas } = documentOf(variety).components as { schemas: Record<string, Item> };
  const { PeopleItem, PeopleItemInput, PeopleItemPatch } = schemas as Record<
    string,
    { required?: readonly string[]; properties: Record<string, Item> }
  >;
  assert.equal(PeopleItem?.properties.name?.default, 'Ada');
  assert(PeopleItem?.required?.includes('name'));
  assert.equal(PeopleItemInput?.required, undefined);
  assert.match(String(PeopleItemInput?.properties.name?.description), /Default: `"Ada"`[.]$/);
  // Null brings the default back.
  assert.deepEqual(Object.keys(PeopleItemPatch?.properties.name ?? {}), ['anyOf']);
});

test('has no default in what is sent, and readOnly nowhere', () => {
  for (const collections of [shopCollections, variety]) {
    const document = documentOf(collections);
    assert(!JSON.stringify(document).includes('"readOnly":'));
    const seen = new Set<unknown>();
    const inspect = (value: unknown, place: string): void => {
      if (typeof value !== 'object' || value === null || seen.has(value)) return;
      seen.add(value);
      assert(!('default' in value), place);
      if ('$ref' in value) inspect(resolved(document, value), place);
      for (const [name, part] of Object.entries(value))
        if (name !== 'example' && name !== 'examples') inspect(part, `${place}/${name}`);
    };
    for (const { path, method, item } of operationsOf(document)) {
      inspect(item.parameters, `${method} ${path}`);
      inspect(item.requestBody, `${method} ${path}`);
    }
  }
});

test('has two parts, which are the whole together; that of the application is under 220 kB for the shop', () => {
  const ids = (setting: DocumentSetting) =>
    operationsOf(documentOf(shopCollections, '3.2', setting)).map(({ item }) => String(item.operationId));
  const application = ids({ part: 'application' });
  const operator = ids({ part: 'operator' });
  assert.deepEqual([...application, ...operator].sort(), ids({}).sort());
  for (const id of ['createProduct', 'login', 'listEvents', 'patchUser'])
    assert(application.includes(id), id);
  for (const id of ['createKey', 'listEndpoints', 'exportProducts', 'readMetrics', 'listUsers'])
    assert(operator.includes(id), id);
  const text = JSON.stringify(documentOf(shopCollections, '3.2', { part: 'application' }));
  assert(text.length < 220_000, String(text.length));
});

test('says the length of a new password, and of one that exists nothing', () => {
  type Schemas = Record<string, { readonly properties?: Record<string, Item> }>;
  const { schemas } = documentOf(shopCollections).components as { schemas: Schemas };
  const passwordOf = (name: string) => schemas[name]?.properties?.password;
  const { minLength, maxLength } = passwordOf('Registration') as Item;
  assert.deepEqual({ minLength, maxLength }, { minLength: 8, maxLength: 1024 });
  assert.equal((passwordOf('Login') as Item).minLength, undefined);
});

test('takes from TypeBox the JSON Schema and nothing else', () => {
  assert(!JSON.stringify(documentOf(variety)).includes('"~'));
});

test('marks a deprecated collection and gives its answers the fields that say so', () => {
  const document = documentOf(variety);
  for (const { path, item } of operationsOf(document)) {
    const deprecated = path.includes('/people');
    assert.equal(item.deprecated ?? false, deprecated, path);
    for (const [, { headers = {} }] of responsesOf(document, item)) {
      const names = Object.keys(headers as Item);
      assert.equal(names.includes('Deprecation') && names.includes('Sunset'), deprecated, path);
    }
  }
});

test('tells of TRACE and cross-origin fields where they are enabled, and only there', () => {
  const plain = documentOf(shopCollections);
  const open = documentOf(shopCollections, '3.2', { traceEnabled: true, corsEnabled: true });
  const told = (document: Item) => [
    (document.info as { description: string }).description.includes('TRACE'),
    'Access-Control-Expose-Headers' in (document['x-headers'] as Item),
  ];
  assert.deepEqual(
    [told(plain), told(open)],
    [
      [false, false],
      [true, true],
    ],
  );
});

test('is made of a large configuration in linear size', () => {
  const many = (count: number) =>
    new Map(
      Array.from({ length: count }, (_, index) => {
        const [products] = [...shopCollections.values()].slice(1);
        assert(products);
        return [`c${index}s`, { ...products, name: `c${index}s`, references: [], dependants: [] }] as const;
      }),
    );
  const size = (count: number) => JSON.stringify(documentOf(many(count))).length;
  const [one, ten, twenty] = [size(1), size(10), size(20)];
  assert(twenty - ten < ((ten - one) / 9) * 11, `${one}, ${ten}, ${twenty}`);
});

function references(value: unknown): readonly string[] {
  if (Array.isArray(value)) return value.flatMap(references);
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, part]) =>
    name === '$ref' && typeof part === 'string' ? [part] : references(part),
  );
}
