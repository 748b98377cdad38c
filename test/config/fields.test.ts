/** Fields from schemas (§2.1): which names clients may use and how their values compare. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Type } from 'typebox';
import { fieldsOf } from '../../src/config/fields.ts';

function typeOf(schema: object): string {
  const field = fieldsOf({ type: 'object', properties: { it: schema } }).get('it');
  return field?.item === undefined ? String(field?.type) : `${field.type} of ${field.item}`;
}

test('puts id first and the times last, each in a column of its own', () => {
  const fields = [...fieldsOf(Type.Object({ name: Type.String() })).values()];
  assert.deepEqual(
    fields.map(({ name, column }) => [name, column]),
    [
      ['id', 'id'],
      ['name', undefined],
      ['createdAt', 'createdAt'],
      ['updatedAt', 'updatedAt'],
    ],
  );
});

const cases: readonly (readonly [title: string, schema: object, type: string])[] = [
  ['a string', Type.String(), 'string'],
  ['a number', Type.Number(), 'number'],
  ['an integer', Type.Integer(), 'integer'],
  ['a boolean', Type.Boolean(), 'boolean'],
  ['a date-time as a timestamp', Type.String({ format: 'date-time' }), 'timestamp'],
  ['another format as a string', Type.String({ format: 'email' }), 'string'],
  ['an optional value as the value', Type.Optional(Type.Integer()), 'integer'],
  ['a nullable value as the value', Type.Union([Type.Number(), Type.Null()]), 'number'],
  ['a list of types with null as the other one', { type: ['null', 'boolean'] }, 'boolean'],
  ['literals of one type as that type', Type.Union([Type.Literal('a'), Type.Literal('b')]), 'string'],
  ['an enumeration of strings as a string', Type.Enum(['a', 'b']), 'string'],
  ['a constant without type by its value', { const: 5 }, 'number'],
  ['integers and numbers together as numbers', Type.Union([Type.Integer(), Type.Number()]), 'number'],
  ['values of several types as selectable only', Type.Union([Type.String(), Type.Number()]), 'json'],
  ['an array of strings', Type.Array(Type.String()), 'array of string'],
  ['a nullable array of integers', Type.Union([Type.Array(Type.Integer()), Type.Null()]), 'array of integer'],
  ['an array of objects as selectable only', Type.Array(Type.Object({ a: Type.String() })), 'json'],
  ['an array of arrays as selectable only', Type.Array(Type.Array(Type.String())), 'json'],
  ['a record as selectable only', Type.Record(Type.String(), Type.Number()), 'json'],
  ['anything as selectable only', Type.Any(), 'json'],
  ['null alone as selectable only', Type.Null(), 'json'],
];
for (const [title, schema, type] of cases) {
  test(`reads ${title}`, () => assert.equal(typeOf(schema), type));
}

test('names members of nested objects with dots, beside the object itself', () => {
  const address = Type.Object({
    city: Type.String(),
    at: Type.Optional(Type.Object({ lat: Type.Number() })),
  });
  const fields = fieldsOf(Type.Object({ address: Type.Union([address, Type.Null()]) }));
  assert.deepEqual([...fields.keys()].slice(1, -2), [
    'address',
    'address.city',
    'address.at',
    'address.at.lat',
  ]);
  assert.deepEqual(fields.get('address.at.lat'), {
    name: 'address.at.lat',
    path: ['address', 'at', 'lat'],
    type: 'number',
  });
});

test('goes at most eight levels deep', () => {
  let schema: object = { type: 'string' };
  for (let level = 0; level < 50; level += 1) schema = { type: 'object', properties: { n: schema } };
  assert.equal(fieldsOf(schema).size, 3 + 8);
});

const $defs = {
  at: { type: 'string', format: 'date-time' },
  again: { $ref: '#/$defs/at' },
  loop: { anyOf: [{ type: 'string' }, { $ref: '#/$defs/loop' }] },
  ring: { $ref: '#/$defs/ring' },
  count: { $anchor: 'count', type: 'integer' },
  price: { $id: 'price', type: 'number' },
  is: { type: 'boolean' },
  name: { enum: ['a', 'b', null] },
  tags: { type: 'array', items: { $ref: '#/$defs/name' } },
  tree: { type: 'object', properties: { left: { $ref: '#/$defs/tree' }, right: { $ref: '#/$defs/tree' } } },
};
const referring: readonly (readonly [schema: object, type: string])[] = [
  [{ $ref: '#/$defs/at' }, 'timestamp'],
  [{ $ref: '#/$defs/again', description: 'x' }, 'timestamp'],
  [{ anyOf: [{ $ref: '#/$defs/at' }, { type: 'null' }] }, 'timestamp'],
  [{ anyOf: [{ $ref: '#/$defs/at' }, { $ref: '#/$defs/count' }] }, 'json'],
  [{ anyOf: [{ $ref: '#count' }, { $ref: 'price' }] }, 'number'],
  [{ $ref: '#count' }, 'integer'],
  [{ $ref: '#/$defs/is' }, 'boolean'],
  [{ $ref: '#/$defs/name' }, 'string'],
  [{ $ref: '#/$defs/at', const: '2026-01-31T12:00:00Z' }, 'string'],
  [{ $ref: '#/$defs/tags' }, 'array of string'],
  [{ type: 'array', items: { $ref: '#/$defs/at' } }, 'array of timestamp'],
  [{ $ref: '#/$defs/loop' }, 'string'],
  [{ $ref: '#/$defs/ring' }, 'json'],
  [{ $ref: '#/$defs/tree' }, 'json'],
  [{ $ref: '#/$defs/absent' }, 'json'],
];
for (const [it, type] of referring) {
  test(`reads ${JSON.stringify(it)} as ${type}`, () => {
    const fields = fieldsOf({ type: 'object', properties: { it }, $defs } as object);
    assert.equal(fields.size, 4);
    const field = fields.get('it');
    assert.equal(field?.item === undefined ? field?.type : `${field.type} of ${field.item}`, type);
  });
}

test('ends where a schema object holds itself, which is refused afterwards', () => {
  const properties: Record<string, object> = { it: { $ref: '#/$defs/at' } };
  properties.self = { type: 'object', properties };
  assert.equal(fieldsOf({ type: 'object', properties, $defs } as object).get('it')?.type, 'timestamp');
});
