/** Every example in the document is what its schema says. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  documentOf,
  faults,
  type Item,
  operation,
  resolved,
  shopCollections,
  variety,
} from '../../openapi/fixture.ts';

for (const [label, collections] of [
  ['the shop', shopCollections],
  ['varied collections', variety],
] as const) {
  test(`validates every example of ${label}`, () => {
    const document = documentOf(collections);
    let checked = 0;
    const check = (place: string, schema: unknown, value: unknown) => {
      checked += 1;
      assert.deepEqual(faults(document, schema, value), [], `${place}: ${JSON.stringify(value)}`);
    };
    visit(document, '', (place, item) => {
      if (!('schema' in item)) return;
      if ('example' in item) check(place, item.schema, item.example);
      for (const [name, example] of Object.entries((item.examples ?? {}) as Item)) {
        check(`${place}/${name}`, item.schema, resolved(document, example).value);
      }
    });
    assert(checked > 100, `only ${checked} examples`);
  });
}

test('refuses an example that is not what its schema says', () => {
  const document = documentOf(shopCollections);
  const schema = { $ref: '#/components/schemas/ProductInput' };
  assert.deepEqual(faults(document, schema, { name: 'Kettle', price: 1, categoryId: 'c' }), []);
  assert.notDeepEqual(faults(document, schema, { name: 'Kettle', price: -1, categoryId: 'c' }), []);
  assert.notDeepEqual(faults(document, schema, { name: 'Kettle', categoryId: 'c' }), []);
  assert.notDeepEqual(faults(document, schema, { name: 'Kettle', price: 1, categoryId: 'c', prize: 1 }), []);
});

test('shows the declared bodies as requests and as the resources that come of them', () => {
  const document = documentOf(shopCollections);
  const { requestBody: body, responses } = operation(document, 'post', '/api/v1/products') as {
    requestBody: Item;
    responses: Record<string, { content: Record<string, { examples: Item }> }>;
  };
  const requestBody = resolved(document, body) as { content: Record<string, { examples: Item }> };
  const declared = shopCollections.get('products')?.examples[0];
  const sent = requestBody.content['application/json']?.examples.ProductInput1;
  assert.deepEqual(resolved(document, sent).value, declared);
  const answered = resolved(document, responses['201']?.content['application/json']?.examples.Product1).value;
  const { id, createdAt, updatedAt, ...rest } = answered as Item;
  assert.deepEqual(rest, declared);
  assert.match(String(id), /^[0-9a-z]{26}$/);
  assert.equal(createdAt, updatedAt);
});

function visit(value: unknown, place: string, see: (place: string, item: Item) => void): void {
  if (typeof value !== 'object' || value === null) return;
  if (!Array.isArray(value)) see(place, value as Item);
  for (const [name, part] of Object.entries(value)) visit(part, `${place}/${name}`, see);
}
