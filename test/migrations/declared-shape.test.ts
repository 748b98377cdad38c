/** Which changes of a declaration every stored document fits. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type TObject, type TSchema, Type } from 'typebox';
import { resolveCollections } from '../../src/config/collections.ts';
import { fingerprintOfShape, misfits, shapeOf } from '../../src/migrations/declared-shape.ts';
import type { CollectionDeclaration } from '../../src/model/collection.ts';

type More = Omit<CollectionDeclaration, 'schema'>;

function shape(schema: TObject, more: More = {}) {
  const [collection] = resolveCollections({ things: { schema, ...more } }).values();
  assert.ok(collection);
  return shapeOf(collection);
}

function compare(before: TSchema, after: TSchema): readonly string[] {
  return misfits(shape(Type.Object({ a: before })), shape(Type.Object({ a: after })));
}

const text = Type.String();
const literals = (...values: string[]) => Type.Union(values.map((value) => Type.Literal(value)));

const additive: readonly (readonly [title: string, before: TSchema, after: TSchema])[] = [
  ['a longer text', Type.String({ maxLength: 5 }), Type.String({ maxLength: 6 })],
  ['a text without its bound', Type.String({ minLength: 5, pattern: 'a' }), text],
  ['a description and a default', text, Type.String({ description: 'words', default: 'x', title: 'A' })],
  ['a number in place of an integer', Type.Integer({ minimum: 1 }), Type.Number({ minimum: 0 })],
  ['more literals', literals('a', 'b'), literals('c', 'b', 'a')],
  ['null beside a type', text, Type.Union([text, Type.Null()])],
  ['an enum with more values', Type.Enum(['a']), Type.Enum(['b', 'a'])],
  ['a literal among literals', Type.Literal('a'), literals('a', 'b')],
  ['a text in place of a literal', Type.Literal('a'), text],
  ['a longer list', Type.Array(text, { maxItems: 2 }), Type.Array(text, { maxItems: 3 })],
  [
    'an optional member within a member',
    Type.Object({ b: text }),
    Type.Object({ b: text, c: Type.Optional(text) }),
  ],
  ['a member that is no longer required', Type.Object({ b: text }), Type.Object({ b: Type.Optional(text) })],
];

for (const [title, before, after] of additive)
  test(`takes ${title} as an addition`, () => assert.deepEqual(compare(before, after), []));

const misfitting: readonly (readonly [title: string, before: TSchema, after: TSchema, reason: string])[] = [
  ['a shorter text', text, Type.String({ maxLength: 5 }), '/a has the maxLength 5 now'],
  ['another type', text, Type.Integer(), '/a must be of the type integer now, and was string'],
  [
    'an integer in place of a number',
    Type.Number(),
    Type.Integer(),
    '/a must be of the type integer now, and was number',
  ],
  ['a pattern', text, Type.String({ pattern: '^a' }), '/a must have the pattern "^a" now'],
  ['a format', text, Type.String({ format: 'email' }), '/a must have the format "email" now'],
  ['fewer literals', literals('a', 'b', 'c'), literals('a', 'b'), '/a may no longer be "c"'],
  ['an enum of less', Type.Enum(['a', 'b']), Type.Enum(['a']), '/a may no longer be "b"'],
  [
    'a type without null',
    Type.Union([text, Type.Null()]),
    text,
    '/a may no longer be of the type null as declared before',
  ],
  [
    'items of another type',
    Type.Array(text),
    Type.Array(Type.Integer()),
    '/a/- must be of the type integer now, and was string',
  ],
  [
    'unique items',
    Type.Array(text),
    Type.Array(text, { uniqueItems: true }),
    '/a must have unique items now',
  ],
  ['a required member', Type.Object({}), Type.Object({ b: text }), '/a/b is required now'],
  ['a member less', Type.Object({ b: text }), Type.Object({}), '/a/b is no longer declared'],
  [
    'a type for a member that any object had',
    Type.Object({}, { additionalProperties: true }),
    Type.Object({ b: Type.Optional(text) }, { additionalProperties: true }),
    '/a/b has a declared type now',
  ],
  ['a multiple', Type.Integer(), Type.Integer({ multipleOf: 2 }), '/a must have the multipleOf 2 now'],
];

for (const [title, before, after, reason] of misfitting)
  test(`knows that documents may not fit ${title}`, () => assert.deepEqual(compare(before, after), [reason]));

test('counts what indexes and references demand', () => {
  const schema = Type.Object({ a: text });
  assert.deepEqual(misfits(shape(schema), shape(schema, { indexes: ['a'] })), [
    '/a is indexed now, and may be too long for an index',
  ]);
  assert.deepEqual(misfits(shape(schema, { unique: ['a'] }), shape(schema, { indexes: ['a'] })), []);
  const referring = shape(schema, { references: { a: { collection: 'things' } } });
  assert.deepEqual(misfits(referring, shape(schema)), []);
  assert.ok(
    misfits(shape(schema), referring).includes('/a refers to things now, where its value may be missing'),
  );
});

test('has one fingerprint for what differs in annotations and in the order of members', () => {
  const one = shape(Type.Object({ a: text, b: Type.Optional(Type.Integer()) }));
  const other = shape(
    Type.Object({ b: Type.Optional(Type.Integer({ default: 1 })), a: Type.String({ title: 'A' }) }),
  );
  assert.equal(fingerprintOfShape(one), fingerprintOfShape(other));
  assert.notEqual(fingerprintOfShape(one), fingerprintOfShape(shape(Type.Object({ a: text }))));
});

test('names five reasons at most', () => {
  const names = ['a', 'b', 'c', 'd', 'e', 'f', 'g'];
  const required = Type.Object(Object.fromEntries(names.map((name) => [name, text])));
  assert.equal(misfits(shape(Type.Object({ z: text })), shape(required)).length, 5);
});
