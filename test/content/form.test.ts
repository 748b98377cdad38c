import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Type } from 'typebox';
import { parseMediaType } from '../../src/http/syntax/media-type.ts';
import { contentLimitsDefault, contentShape, type Parsed } from '../../src/kernel/content/content-shape.ts';
import { parseContent } from '../../src/kernel/content/parse-content.ts';
import { products, profiles, sampleCollection } from '../document/sample-collections.ts';

const mediaType = parseMediaType('application/x-www-form-urlencoded');
assert.ok(mediaType);

function read(text: string, collection = profiles, limits = contentLimitsDefault): Parsed {
  assert.ok(mediaType);
  const parsed = parseContent(new TextEncoder().encode(text), mediaType, contentShape(collection), limits);
  assert.ok(!(parsed instanceof Promise));
  return parsed;
}

function outcomeOf(text: string, collection = profiles): unknown {
  const parsed = read(text, collection);
  return parsed.ok ? parsed.value : parsed.problem;
}

describe('the texts of a form', () => {
  const cases: readonly (readonly [string, string, unknown])[] = [
    ['stay strings where a string stands', 'name=12.5&note=true', { name: '12.5', note: 'true' }],
    ['become numbers by the grammar of JSON', 'scores=1&scores=-2.5e3&scores=0', { scores: [1, -2500, 0] }],
    ['become integers', 'age=42', { age: 42 }],
    ['become booleans', 'active=true&flags=false', { active: true, flags: [false] }],
    ['stay texts where they are no number', 'age=%2B1&scores=0x10', { age: '+1', scores: ['0x10'] }],
    [
      'stay texts with a leading zero, a space or a trailing letter',
      'scores=01&scores=%201&scores=1a',
      { scores: ['01', ' 1', '1a'] },
    ],
    [
      'are refused as numbers that a double cannot hold, each at its pointer',
      'age=1e999&scores=1&scores=9007199254740993&scores=9007199254740992&note=9007199254740993',
      {
        code: 'validation_failed',
        errors: ['/age', '/scores'].map((pointer) => ({
          pointer,
          message: 'is beyond the range that a double holds exactly',
        })),
      },
    ],
    [
      'stay texts where more follows than a number that a double cannot hold',
      'age=9007199254740993x&scores=1e999-',
      { age: '9007199254740993x', scores: ['1e999-'] },
    ],
    ['stay texts where they are no boolean', 'active=on&flags=TRUE', { active: 'on', flags: ['TRUE'] }],
    ['of alternatives of strings stay strings', 'level=low', { level: 'low' }],
    ['are decoded: plus is a space, escapes are UTF-8', 'name=a+b%20c%C3%A9%2B', { name: 'a b cé+' }],
  ];
  for (const [what, text, expected] of cases) test(what, () => assert.deepEqual(outcomeOf(text), expected));
});

describe('an empty text', () => {
  const cases: readonly (readonly [string, string, unknown])[] = [
    ['of an optional field that is no string leaves it out', 'age=&active=&scores=', {}],
    ['of an optional string is the empty string', 'note=', { note: '' }],
    ['of an optional string that may not be empty leaves it out', 'nick=&level=', {}],
    ['of a required string is the empty string', 'name=&address[city]=', { name: '', address: { city: '' } }],
    ['of a required array is an array without items', 'flags=', { flags: [] }],
    ['among other items stays', 'scores=&scores=1', { scores: ['', 1] }],
  ];
  for (const [what, text, expected] of cases) test(what, () => assert.deepEqual(outcomeOf(text), expected));

  test('of a required field that may be null is null', () => {
    const collection = sampleCollection(Type.Object({ size: Type.Union([Type.Number(), Type.Null()]) }));
    assert.deepEqual(outcomeOf('size=', collection), { size: null });
    assert.deepEqual(outcomeOf('size=5', collection), { size: 5 });
  });

  test('of a field with a default leaves it out, so that the default stands', () => {
    const collection = sampleCollection(Type.Object({ size: Type.Number({ default: 3 }) }));
    assert.deepEqual(outcomeOf('size=', collection), {});
  });
});

describe('the names of a form', () => {
  const cases: readonly (readonly [string, string, unknown])[] = [
    [
      'repeat for the items of an array, with or without []',
      'scores=1&scores[]=2&scores=3',
      { scores: [1, 2, 3] },
    ],
    [
      'reach nested members by brackets',
      'address[city]=B&address[zip]=12345',
      { address: { city: 'B', zip: '12345' } },
    ],
    ['reach nested members by dots', 'address.city=B', { address: { city: 'B' } }],
    [
      'that the schema does not know pass on',
      'colour=red&address[planet]=C',
      { colour: 'red', 'address[planet]': 'C' },
    ],
    [
      'of inherited members are names like any other',
      'constructor=x&toString=y',
      { constructor: 'x', toString: 'y' },
    ],
  ];
  for (const [what, text, expected] of cases) {
    test(what, () => assert.deepEqual(outcomeOf(text), Object.assign({}, expected)));
  }

  test('of places inside __proto__ or constructor change no prototype', () => {
    outcomeOf('constructor[prototype][polluted]=1&address[__proto__][polluted]=1&__proto__.polluted=1');
    assert.equal(({} as Record<string, unknown>).polluted, undefined);
  });

  test('include no __proto__: 422 at its pointer', () => {
    assert.deepEqual(outcomeOf('name=x&__proto__=y'), {
      code: 'validation_failed',
      errors: [{ pointer: '/__proto__', message: 'unknown property' }],
    });
  });

  for (const [text, name] of [
    ['name=a&name=b', 'name'],
    ['age=1&age=1', 'age'],
    ['address[city]=a&address.city=b', 'address.city'],
    ['address=a&address[city]=b', 'address[city]'],
    ['address[city]=b&address=a', 'address'],
    ['colour=a&colour=b', 'colour'],
  ] as const) {
    test(`are refused when one place is filled twice: ${text}`, () => {
      const message = `field "${name}" is given more than once`;
      assert.deepEqual(outcomeOf(text), { code: 'content_malformed', message });
    });
  }

  test('prefer a property that is literally called a.b to the member b of a', () => {
    const nested = { a: Type.Object({ b: Type.String() }) };
    const literal = { 'a.b': Type.Number() };
    for (const properties of [
      { ...nested, ...literal },
      { ...literal, ...nested },
    ]) {
      const collection = sampleCollection(Type.Object(properties));
      assert.deepEqual(outcomeOf('a.b=5&a[b]=6', collection), { 'a.b': 5, a: { b: '6' } });
    }
  });

  test('cannot reach arrays of objects', () => {
    const schema = Type.Object({ parts: Type.Array(Type.Object({ count: Type.Integer() })) });
    assert.deepEqual(outcomeOf('parts=1', sampleCollection(schema)), { parts: '1' });
  });
});

describe('a form', () => {
  for (const text of ['name=%', 'name=%zz', 'name=%C3%28', 'name=%ff']) {
    test(`with ${text} is malformed`, () => {
      const parsed = read(text);
      assert.equal(parsed.ok ? '' : parsed.problem.code, 'content_malformed');
      assert.match(
        parsed.ok ? '' : (parsed.problem.message ?? ''),
        /it has a % without two hexadecimal digits, or octets that are not UTF-8$/,
      );
    });
  }

  test('has at most formFieldsMax fields', () => {
    const limits = { ...contentLimitsDefault, formFieldsMax: 3 };
    assert.equal(read('tags=a&tags=b&tags=c', products, limits).ok, true);
    const over = read('tags=a&tags=b&tags=c&tags=d', products, limits);
    assert.equal(over.ok ? '' : over.problem.code, 'content_malformed');
    assert.equal(over.ok ? '' : over.problem.message, 'malformed form: it has more than 3 fields');
  });
});
