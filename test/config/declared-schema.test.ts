/** Schemas of declarations: their bounds, loops and defaults, and how values are checked where TypeBox decides otherwise. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type TSchema, Type } from 'typebox';
import type { SchemaNode } from '../../src/config/declared-schema.ts';
import {
  enumValuesMax,
  keywordSubschemasMax,
  schemaLevelsMax,
  schemaMistakes,
} from '../../src/config/inspect-schema.ts';
import { compileValidator } from '../../src/kernel/content/validator.ts';

const object = (properties: object, rest: object = {}): SchemaNode => ({
  type: 'object',
  properties: properties as SchemaNode,
  ...rest,
});
const text = { type: 'string' };
const times = <T>(count: number, make: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, index) => make(index));
const named = (count: number, prefix = 'p') =>
  Object.fromEntries(times(count, (index) => [`${prefix}${index}`, text]));
const nested = (levels: number): SchemaNode => (levels === 1 ? text : { items: nested(levels - 1) });
const chained = (count: number, link: (next: SchemaNode) => SchemaNode): SchemaNode =>
  object(
    { a: { $ref: '#/$defs/d0' } },
    {
      $defs: Object.fromEntries(
        times(count, (index) => [
          `d${index}`,
          index + 1 < count ? link({ $ref: `#/$defs/d${index + 1}` }) : text,
        ]),
      ),
    },
  );
const ofDefs = ($defs: object) => object({ a: { $ref: '#/$defs/t' } }, { $defs });

function check(schema: SchemaNode, value: unknown) {
  const { missing, invalid } = compileValidator({ schema: schema as TSchema as never, textBounds: [] }).check(
    value,
  );
  return [...missing, ...invalid].map(({ pointer, message }) => `${pointer} ${message}`);
}

const bounds: readonly (readonly [what: string, sound: SchemaNode, beyond: SchemaNode, mistake: RegExp])[] = [
  [
    'properties',
    object(named(keywordSubschemasMax)),
    object(named(keywordSubschemasMax + 1)),
    /^schema\.properties has 1,001 entries; at most 1,000 are allowed$/,
  ],
  [
    'a tuple',
    object({ a: { prefixItems: times(keywordSubschemasMax, () => text) } }),
    object({ a: { prefixItems: times(keywordSubschemasMax + 1, () => text) } }),
    /^schema\.properties\.a\.prefixItems has 1,001 entries/,
  ],
  [
    'values of an enum',
    object({ a: { enum: times(enumValuesMax, (index) => index) } }),
    object({ a: { enum: times(enumValuesMax + 1, (index) => index) } }),
    /^schema\.properties\.a\.enum has 10,001 entries; at most 10,000 are allowed$/,
  ],
  [
    'literals',
    object({ a: { anyOf: times(enumValuesMax, (index) => ({ const: index })) } }),
    object({ a: { anyOf: times(enumValuesMax + 1, (index) => ({ const: index })) } }),
    /^schema\.properties\.a\.anyOf has 10,001 entries/,
  ],
  [
    'levels',
    object({ a: nested(schemaLevelsMax - 1) }),
    object({ a: nested(schemaLevelsMax) }),
    /is nested deeper than 64 levels of schemas$/,
  ],
  [
    'schemas',
    object(Object.fromEntries(times(9, (index) => [`o${index}`, object(named(999))]))),
    object(Object.fromEntries(times(11, (index) => [`o${index}`, object(named(999))]))),
    /^schema has more than 10,000 schemas within it$/,
  ],
  [
    'schemas for one value',
    chained(12, (next) => ({ allOf: [next, next] })),
    chained(14, (next) => ({ allOf: [next, next] })),
    /^schema checks a value against more than 10,000 schemas at "#\/\$defs\/d\d"$/,
  ],
];
for (const [what, sound, beyond, mistake] of bounds) {
  test(`bounds ${what}, and compiles a schema at the bound`, () => {
    assert.deepEqual(schemaMistakes(sound, 'schema'), []);
    check(sound, { a: [1], p1: 1, o1: { p1: 1 } });
    assert.match(schemaMistakes(beyond, 'schema').join('\n'), mistake);
  });
}

const loops: readonly (readonly [schema: SchemaNode, reference: string])[] = [
  [ofDefs({ t: { anyOf: [text, { $ref: '#/$defs/t' }] } }), '#/$defs/t'],
  [ofDefs({ t: { $ref: '#/$defs/u' }, u: { allOf: [{ $ref: '#/$defs/t' }] } }), '#/$defs/t'],
  [object({ a: { $id: 'T', anyOf: [text, { $ref: 'T' }] } }), 'T'],
  [object({ a: text }, { anyOf: [{ required: ['a'] }, { $ref: '#' }] }), '#'],
];
for (const [schema, reference] of loops) {
  test(`refuses a reference to ${reference} that a check would follow without end`, () => {
    assert.deepEqual(schemaMistakes(schema, 'schema'), [
      `schema refers to "${reference}" from within, for the same value: a check would not end; put a member or an item between`,
    ]);
  });
}

test('checks a value against a schema that refers to itself once, however often alternatives refer to it', () => {
  const kind = (name: string) =>
    object({ arg: { $ref: '#/$defs/t' }, kind: { const: name } }, { required: ['kind'] });
  const schema = ofDefs({ t: { anyOf: [kind('and'), kind('or')] } });
  const deep = (inmost: object) => {
    let value = inmost;
    for (let level = 0; level < 60; level += 1) value = { arg: value, kind: 'or' };
    return { a: value };
  };
  // 2^60 checks would not end.
  assert.deepEqual(check(schema, deep({ kind: 'and' })), []);
  assert.deepEqual(check(schema, deep({ kind: 'no' })), ['/a does not match any of the allowed forms']);
  const tree = ofDefs({ t: { anyOf: [text, { type: 'array', items: { $ref: '#/$defs/t' } }] } });
  assert.deepEqual(check(tree, { a: ['x', [['y', [1]]]] }), ['/a/1/0/1/0 must be a string or an array']);
});

test('follows pointers of every form', () => {
  const schema = object(
    { a: { $ref: '#/definitions/x%25y' }, b: { $ref: '#/properties/c/items' }, c: { items: text } },
    { definitions: { 'x%y': { type: 'integer' } } },
  );
  assert.deepEqual(check(schema, { a: 1, b: 'x', c: ['y'] }), []);
  assert.deepEqual(check(schema, { a: 'x', b: 1 }), ['/a must be an integer', '/b must be a string']);
});

test('names defaults that do not fit their own schema, with their place', () => {
  const schema = object({
    n: { type: 'number', default: '1' },
    o: object({ list: { type: 'array', items: { ...text, default: 1 }, default: ['x', 2] } }),
    price: { type: 'number', multipleOf: 0.01, default: 1234567.89 },
    sound: { anyOf: [text, { type: 'null' }], default: null },
    long: { ...text, pattern: '^a', default: 'b'.repeat(100) },
  });
  assert.deepEqual([...schemaMistakes(schema, 'schema')].sort(), [
    `schema.properties.long.default "${'b'.repeat(63)}... does not fit its own schema: must match the pattern ^a`,
    'schema.properties.n.default "1" does not fit its own schema: must be a number',
    'schema.properties.o.properties.list.default/1 ["x",2] does not fit its own schema: must be a string',
    'schema.properties.o.properties.list.items.default 1 does not fit its own schema: must be a string',
  ]);
});

test('names a date-time that could never be kept: a default that is no instant, and too short a bound', () => {
  const instant = { ...text, format: 'date-time' };
  const schema = object({
    leap: { ...instant, default: '2026-12-31T23:59:60Z' },
    day: { ...instant, default: '2026-12-31' },
    short: { ...instant, maxLength: 23 },
    sound: { ...instant, maxLength: 24, default: '2026-12-31T23:59:59Z' },
  });
  const [day, leap, short, ...others] = [...schemaMistakes(schema, 'schema')].sort();
  assert.match(
    day ?? '',
    /^schema.properties.day.default "2026-12-31" does not fit its own schema: must be an RFC 3339/,
  );
  assert.match(
    leap ?? '',
    /^schema.properties.leap.default "2026-12-31T23:59:60Z" is not an RFC 3339 date and time/,
  );
  assert.match(short ?? '', /^schema.properties.short.maxLength 23 leaves no room for a date-time/);
  assert.deepEqual(others, []);
});

test('names what cannot be compiled', () => {
  assert.match(
    schemaMistakes(object({ a: { ...text, pattern: '(' } }), 'input').join(),
    /^input cannot be compiled: .*Unterminated group/,
  );
  assert.deepEqual(schemaMistakes(object({ a: { multipleOf: 0 } }), 'schema'), [
    'schema.properties.a.multipleOf must be greater than 0',
  ]);
});

const multiples: readonly (readonly [
  multipleOf: number,
  fitting: readonly number[],
  others: readonly number[],
])[] = [
  [
    0.01,
    [0, -0, 1234567.89, 50_000_000.01, 99_999_999_999.99, -0.07, 1e21, 0.1, 4.35],
    [0.001, 1.005, 99_999_999_999.995, 1e-7, 0.010000000000000002],
  ],
  [0.1, [0.3, 1.1, 123456789.1], [0.30000000000000004, 0.25]],
  [1e-12, [1e-12, 0.5, 3], [1e-13]],
  [3, [9, -9, 9_007_199_254_740_990], [10, 9_007_199_254_740_991, 1.5]],
  [1e21, [3e21], [1e20]],
  [0.25, [1e300, 0.75], [0.3]],
];
for (const [multipleOf, fitting, others] of multiples) {
  test(`judges multiples of ${multipleOf} by decimal digits`, () => {
    const schema = object({ n: { type: 'number', multipleOf } });
    for (const n of fitting) assert.deepEqual(check(schema, { n }), [], String(n));
    for (const n of others)
      assert.deepEqual(check(schema, { n }), [`/n must be a multiple of ${multipleOf}`], String(n));
  });
}

test('takes every amount of two decimals as a multiple of 0.01', () => {
  const schema = object({ n: { type: 'number', multipleOf: 0.01 } });
  const { check: checkOnce } = compileValidator({ schema: schema as TSchema as never, textBounds: [] });
  for (let cents = 1; cents < 90_000_000_000_000; cents = Math.ceil(cents * 1.01))
    assert.deepEqual(
      checkOnce({ n: Number(`${Math.floor(cents / 100)}.${cents % 100}`) }).invalid,
      [],
      `${cents}`,
    );
});

const same: readonly (readonly unknown[])[] = [
  [0, -0],
  [1, 2, 1.0],
  [
    { a: 1, b: [0] },
    { b: [-0], a: 1 },
  ],
  [[{ a: { x: 1, y: 2 } }], [{ a: { y: 2, x: 1 } }]],
  [null, null],
];
const different: readonly (readonly unknown[])[] = [
  [],
  [1, '1', true, 'true', null, 'null', [1], ['1'], { 1: 1 }],
  [{ a: 1 }, { a: 1, b: 1 }, { b: 1 }],
  [
    [1, 2],
    [2, 1],
  ],
];
test('tells items apart by the equality of JSON', () => {
  const schema = object({ a: { type: 'array', uniqueItems: true } });
  for (const a of same)
    assert.deepEqual(check(schema, { a }), ['/a must not contain the same item twice'], JSON.stringify(a));
  for (const a of different) assert.deepEqual(check(schema, { a }), [], JSON.stringify(a));
});

test('takes members whose names match a declared pattern, and no others', () => {
  const ids = { patternProperties: { '^x-': { type: 'integer' } } };
  const schema = object({ open: object({ a: text }, ids), record: { type: 'object', ...ids } });
  for (const name of ['open', 'record']) {
    assert.deepEqual(check(schema, { [name]: { 'x-1': 1 } }), []);
    assert.deepEqual(check(schema, { [name]: { 'x-1': 'one', y: 1 } }).sort(), [
      `/${name}/x-1 must be an integer`,
      `/${name}/y unknown property`,
    ]);
  }
  const composed = object({}, { allOf: [ids, object({ b: text })] });
  assert.deepEqual(check(composed, { 'x-1': 1, b: 'x' }), []);
  assert.deepEqual(check(composed, { y: 1 }), ['/y unknown property']);
});

test('takes many allowed values, also as literals of a TypeBox union, and names some', () => {
  const codes = times(2500, (index) => `c${index}`);
  const literals = codes.map((code) => ({ const: code }));
  const union = Type.Union(codes.map((code) => Type.Literal(code)));
  const refined = Type.Refine(union, (code) => code !== 'c0');
  for (const a of [{ enum: codes }, { anyOf: literals }, { oneOf: literals }, union, refined]) {
    assert.deepEqual(check(object({ a }), { a: 'c2499' }), []);
    const [fault = ''] = check(object({ a }), { a: 'd' });
    assert.match(fault, /^\/a must be one of "c0", .*, "c19" and 2,480 more$/);
  }
  const declared: readonly object[] = [
    Type.Object({ a: union }),
    Type.Object({ a: Type.Optional(Type.Array(Type.Tuple([union]))) }),
  ];
  assert.deepEqual(
    declared.flatMap((schema) => schemaMistakes(schema as SchemaNode, 'schema')),
    [],
  );
});

// An object literal with a member `then` is taken for a promise by the linter.
const conditional = JSON.parse('{"if":{"type":"string"},"then":{"minLength":3},"else":false}');
const worded: readonly (readonly [schema: SchemaNode, value: unknown, words: readonly string[]])[] = [
  [{ contains: text, minContains: 2 }, ['x'], ['must contain at least 2 matching items']],
  [{ contains: text, maxContains: 1 }, ['x', 'y'], ['must contain at most 1 matching item']],
  [{ prefixItems: [text], items: false }, ['x', 1], ['/1 unexpected item']],
  [{ items: [text], additionalItems: false }, ['x', 1], ['/1 unexpected item']],
  [object({ items: false }), { items: 1 }, ['/items unknown property']],
  [{ oneOf: [text, { minLength: 1 }] }, 'x', ['must have only one of the allowed forms']],
  [conditional, 'x', ['does not have the form that applies to it']],
  [conditional, 1, ['is not allowed', 'does not have the form that applies to it']],
  [{ not: text }, 'x', ['must not have this form']],
];
for (const [part, value, words] of worded) {
  test(`says of ${JSON.stringify(value)}: ${words.join(', ')}`, () => {
    const faults = check(object({ a: part }), { a: value }).map((fault) => fault.slice('/a'.length).trim());
    assert.deepEqual(faults, words);
  });
}
