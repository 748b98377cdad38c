/** Samples of schemas: whatever TypeBox can say, what is shown of it is valid; what cannot be is not shown. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type TSchema, Type } from 'typebox';
import { Check } from 'typebox/value';
import { plainSchema } from '../../../src/config/declared-schema.ts';
import { patternSample, schemaSample } from '../../../src/webhooks/sending/event-types/schema-sample.ts';

function assertSample(schema: TSchema): void {
  const sample = schemaSample(plainSchema(schema));
  const shown = `${JSON.stringify(schema)} ${JSON.stringify(sample)}`;
  assert.notEqual(sample, undefined, shown);
  assert(Check(schema, sample), shown);
  assert.deepEqual(schemaSample(plainSchema(schema)), sample, 'it is always the same');
}

const formats = [
  ...[
    'date-time',
    'date',
    'time',
    'duration',
    'email',
    'idn-email',
    'hostname',
    'idn-hostname',
    'ipv4',
    'ipv6',
  ],
  ...['uri', 'uri-reference', 'iri', 'iri-reference', 'uri-template', 'uuid', 'json-pointer', 'url', 'regex'],
  ...['json-pointer-uri-fragment', 'relative-json-pointer'],
];

test('has a sample for each format that TypeBox knows', () => {
  for (const format of formats) assertSample(Type.String({ format }));
});

test('has a sample for what is declared by other means than plain types', () => {
  assertSample(Type.Enum(['a', 'b']));
  assertSample(
    Type.TemplateLiteral([
      Type.Union([Type.Literal('a'), Type.Literal('b')]),
      Type.Literal('-'),
      Type.Number(),
    ]),
  );
  assertSample(Type.Record(Type.String(), Type.Number(), { minProperties: 3 }));
  assertSample(Type.Record(Type.Integer(), Type.String(), { minProperties: 2 }));
  assertSample(Type.Record(Type.Union([Type.Literal('a'), Type.Literal('b')]), Type.Boolean()));
  assertSample(Type.Cyclic({ Node: Type.Object({ next: Type.Optional(Type.Ref('Node')) }) }, 'Node'));
  assertSample(Type.Cyclic({ Tree: Type.Object({ leaves: Type.Array(Type.Ref('Tree')) }) }, 'Tree'));
  assertSample(
    Type.Intersect([Type.Object({ a: Type.String() }), Type.Object({ b: Type.Number({ minimum: 4 }) })]),
  );
  assertSample(Type.Array(Type.Enum(['a', 'b', 'c']), { minItems: 3, uniqueItems: true }));
  assertSample(Type.Array(Type.Unknown(), { contains: Type.Literal('x'), minItems: 2 }));
  assertSample(Type.Number({ exclusiveMinimum: 3, exclusiveMaximum: 4 }));
  assertSample(Type.Union([Type.Null(), Type.Object({ a: Type.Literal(1) })]));
  assertSample(Type.Partial(Type.Object({ a: Type.Never() })));
  assertSample(Type.String({ format: 'email', default: 'not an address' }));
});

test('has no sample of what has no value, and ends', () => {
  for (const schema of [
    Type.Never(),
    Type.Object({ a: Type.Never() }),
    Type.Cyclic({ Node: Type.Object({ next: Type.Ref('Node') }) }, 'Node'),
    Type.Integer({ minimum: 2, maximum: 1 }),
    Type.String({ pattern: '^a$', minLength: 2 }),
    { $ref: 'Nothing' },
  ]) {
    assert.equal(schemaSample(plainSchema(schema)), undefined, JSON.stringify(schema));
  }
});

test('makes texts that their patterns match', () => {
  for (const pattern of [
    ...[
      '^[A-Z]{3}-\\d{4,6}$',
      '^(usd|eur)$',
      '^#[0-9a-fA-F]{6}$',
      '^\\+?[1-9]\\d{1,14}$',
      '[^a-z0-9]',
      '^\\S+@\\S+$',
    ],
    ...[
      '^(?:a|b)+c?$',
      '^\\p{Lu}\\p{Ll}*$',
      '^\\u00e4\\x41\\n$',
      '^(?<year>\\d{4})-(0[1-9]|1[0-2])$',
      '^[\\w.-]+\\/$',
    ],
    ...['^.{3,}$', '^a{2}b*$', '^(?!x)(?<!y).*$', '^$', '\\bword\\b', '^[\\]\\-^]$'],
  ]) {
    const sample = patternSample(pattern, 0);
    assert(
      sample !== undefined && new RegExp(pattern, 'u').test(sample),
      `${pattern} ${JSON.stringify(sample)}`,
    );
  }
  assert.equal(patternSample('^(a)\\1$', 0), undefined, 'references back are not followed');
});

/** Schemas of every kind that have at least one value, nested. */
const schemas: fc.Arbitrary<TSchema> = fc.letrec<{ schema: TSchema }>((tie) => {
  const bounds = fc.tuple(fc.nat(8), fc.nat(8));
  const leaf = fc.oneof(
    fc.constantFrom(...formats).map((format) => Type.String({ format })),
    bounds.map(([minLength, more]) => Type.String({ minLength, maxLength: minLength + more })),
    bounds.map(([minimum, more]) => Type.Integer({ minimum: minimum - 4, maximum: minimum - 4 + more })),
    fc.double({ min: -1e6, max: 1e6, noNaN: true }).map((minimum) => Type.Number({ minimum })),
    fc
      .double({ min: -1e6, max: 1e6, noNaN: true })
      .map((maximum) => Type.Number({ exclusiveMaximum: maximum })),
    fc.integer({ min: 1, max: 50 }).map((multipleOf) => Type.Integer({ multipleOf, minimum: 7 })),
    fc.constantFrom<TSchema>(
      Type.Boolean(),
      Type.Null(),
      Type.Unknown(),
      Type.Any(),
      Type.Literal('x'),
      Type.Literal(7),
    ),
  );
  const nested = fc.oneof(
    fc
      .dictionary(fc.stringMatching(/^[a-z]{1,5}$/), tie('schema'), { maxKeys: 4 })
      .map((members) => Type.Object(members)),
    fc
      .dictionary(fc.stringMatching(/^[a-z]{1,5}$/), tie('schema'), { maxKeys: 3 })
      .map((members) => Type.Partial(Type.Object(members))),
    fc.tuple(tie('schema'), fc.nat(3)).map(([items, minItems]) => Type.Array(items, { minItems })),
    fc.array(tie('schema'), { minLength: 1, maxLength: 3 }).map((parts) => Type.Tuple(parts)),
    fc.array(tie('schema'), { minLength: 1, maxLength: 3 }).map((parts) => Type.Union(parts)),
    tie('schema').map((value) => Type.Record(Type.String(), value, { minProperties: 1 })),
    fc
      .tuple(tie('schema'), tie('schema'))
      .map(([a, b]) => Type.Intersect([Type.Object({ a }), Type.Object({ b })])),
  );
  return { schema: fc.oneof({ maxDepth: 3, depthIdentifier: 'schema' }, leaf, nested) };
}).schema;

test('has a valid sample for whatever schema can be built of the kinds that TypeBox has', () => {
  fc.assert(
    fc.property(schemas, (schema) => assertSample(schema)),
    { numRuns: 300 },
  );
});
