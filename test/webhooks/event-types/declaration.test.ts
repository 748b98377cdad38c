/** What a configuration may declare of event types, and that every mistake in it is told. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Type } from 'typebox';
import { resolveConfiguration } from '../../../src/config/configuration.ts';
import { type ConfigurationDeclaration, collection } from '../../../src/config/define.ts';
import { ConfigurationError } from '../../../src/config/inspection.ts';

const collections = { products: collection({ schema: Type.Object({ name: Type.String() }) }) };

function mistakes(eventTypes: unknown): readonly string[] {
  try {
    resolveConfiguration({ collections, eventTypes } as ConfigurationDeclaration);
    return [];
  } catch (error) {
    assert(error instanceof ConfigurationError);
    return error.mistakes;
  }
}

test('fills in what a declaration leaves out', () => {
  const schema = Type.Object({ id: Type.String() });
  const { eventTypes } = resolveConfiguration({
    collections,
    eventTypes: {
      'invoice.paid': { schema, description: 'Paid.', examples: [{ id: 'i' }] },
      'shop.opened': {},
    },
  });
  assert.deepEqual(eventTypes.get('invoice.paid'), { schema, description: 'Paid.', examples: [{ id: 'i' }] });
  assert.deepEqual(eventTypes.get('shop.opened'), { schema: undefined, description: '', examples: [] });
  assert.equal(resolveConfiguration({ collections }).eventTypes.size, 0);
});

test('lets a type stand under the name of a collection, unless its writes have that type', () => {
  assert.deepEqual(mistakes({ 'products.sold': {}, 'products.created.late': {}, 'orders.created': {} }), []);
  for (const change of ['created', 'updated', 'deleted']) {
    assert.deepEqual(mistakes({ [`products.${change}`]: {} }), [
      `event type products.${change}: writes of a collection emit this type already, with the schema of the collection`,
    ]);
  }
});

test('refuses names that are none and those of the program', () => {
  const spelling = 'the name must be segments of letters, digits, _ and -, joined by dots';
  for (const name of ['', 'a b', 'a..b', 'a.*', 'ä'])
    assert.deepEqual(mistakes({ [name]: {} }), [`event type ${name}: ${spelling}`]);
  assert.match(String(mistakes({ ['x'.repeat(201)]: {} })), /at most 200 characters/);
  for (const name of ['endpoint', 'endpoint.test', 'endpoint.anything']) {
    assert.deepEqual(mistakes({ [name]: {} }), [
      `event type ${name}: names that begin with endpoint are reserved for Comity`,
    ]);
  }
});

test('tells every mistake at once', () => {
  const found = mistakes({
    'a.b': { schemas: {}, description: 1 },
    'a.c': { schema: Type.String() },
    'a.d': { schema: Type.Object({ a: Type.String({ pattern: '(' }) }) },
    'a.e': null,
    'a.f': { examples: {} },
    'a.g': { schema: Type.Object({ a: Type.Integer() }), examples: [{ a: 'x' }, { a: 1, b: 2 }, 3, {}] },
    'a.h': { schema: Type.Object({ a: Type.Ref('#/$defs/none') }) },
  });
  assert.deepEqual(
    found.map((sentence) => sentence.replace(/(cannot be compiled|is not valid|not declare)[:;] .*/, '$1')),
    [
      'event type a.b: "schemas" is not a property of an event type; did you mean schema?',
      'event type a.b: description must be a string of at most 2000 characters',
      'event type a.c: schema must be a Type.Object({ ... })',
      'event type a.d: schema cannot be compiled',
      'event type a.e: must be an object, not null',
      'event type a.f: examples must be a list, not an object',
      'event type a.g: examples[0]/a is not valid',
      'event type a.g: examples[1] has the member "b", which is not declared',
      'event type a.g: examples[2] must be an object, not a number',
      'event type a.g: examples[3]/a is not valid',
      'event type a.h: schema refers to "#/$defs/none", which it does not declare',
    ],
  );
  assert.deepEqual(mistakes([]), ['eventTypes must be an object, not a list']);
});
