import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { formatQueryString } from '../../../src/http/syntax/query-string.ts';
import {
  contentLimitsDefault,
  contentShape,
  type Parsed,
} from '../../../src/kernel/content/content-shape.ts';
import { parseContent } from '../../../src/kernel/content/parse-content.ts';
import { compileValidator } from '../../../src/kernel/content/validator.ts';
import { proposeCreate } from '../../../src/resources/document/propose.ts';
import { products, profiles } from '../../document/sample-collections.ts';
import { bounds } from './bounds.ts';

const mediaType = { type: 'application/x-www-form-urlencoded', parameters: new Map<string, string>() };
const shapes = { products: contentShape(products), profiles: contentShape(profiles) };
const validators = { products: compileValidator(products), profiles: compileValidator(profiles) };

function read(text: string, name: keyof typeof shapes): Parsed {
  const parsed = parseContent(new TextEncoder().encode(text), mediaType, shapes[name], contentLimitsDefault);
  assert.ok(!(parsed instanceof Promise));
  return parsed;
}

const text = fc.string({ unit: 'grapheme', minLength: 2 });
const profile = fc.record(
  {
    name: text,
    address: fc.record({ city: text, zip: fc.stringMatching(/^[0-9]{5}$/) }, { requiredKeys: ['city'] }),
    age: fc.nat(),
    active: fc.boolean(),
    level: fc.constantFrom('low', 'high'),
    scores: fc.array(
      fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => value + 0),
      { minLength: 1 },
    ),
    flags: fc.array(fc.boolean(), { minLength: 1 }),
    nick: text,
    note: text,
  },
  { requiredKeys: ['name', 'address', 'flags'], noNullPrototype: true },
);

function* pairsOf(value: object, prefix = ''): Generator<readonly [string, string]> {
  for (const [name, member] of Object.entries(value)) {
    const here = prefix === '' ? name : `${prefix}[${name}]`;
    if (Array.isArray(member)) for (const item of member) yield [here, String(item)];
    else if (typeof member === 'object') yield* pairsOf(member, here);
    else yield [here, String(member)];
  }
}

test('a document written as a form is read as the same document, in whatever order its fields come', () => {
  fc.assert(
    fc.property(profile, fc.boolean(), (value, reversed) => {
      const pairs = [...pairsOf(structuredClone(value))];
      // Items of one array must keep their order; so fields are turned round by name.
      const names = [...new Set(pairs.map(([name]) => name))];
      if (reversed) names.reverse();
      const ordered = names.flatMap((name) => pairs.filter(([each]) => each === name));
      assert.deepEqual(read(formatQueryString(ordered), 'profiles'), {
        ok: true,
        format: 'form',
        value: structuredClone(value),
      });
    }),
    bounds,
  );
});

const name = fc.oneof(
  fc.constantFrom(
    'name',
    'price',
    'tags',
    'tags[]',
    'address',
    'address[city]',
    'address.city',
    'flags[]',
    'age',
  ),
  fc.constantFrom(
    '__proto__',
    'constructor',
    'constructor[prototype][x]',
    '__proto__[x]',
    'address[__proto__]',
    'toString',
    'hasOwnProperty',
    '',
    '[]',
    '[',
    'a]b[',
  ),
  fc.string(),
);
const value = fc.oneof(fc.constantFrom('', '0', '-1', '1e5', '1e999', 'true', 'null', 'x'), fc.string());

test('any form is read to an ordinary object or refused, and validated without a throw', () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(name, value), { maxLength: 8 }),
      fc.constantFrom('products', 'profiles'),
      (pairs, of) => {
        const parsed = read(`${formatQueryString(pairs)}&`, of);
        assert.equal(({} as Record<string, unknown>).x, undefined);
        if (!parsed.ok) return;
        assert.equal(Object.getPrototypeOf(parsed.value), Object.prototype);
        assert.deepEqual(JSON.parse(JSON.stringify(parsed.value)), parsed.value);
        const collection = of === 'products' ? products : profiles;
        const proposed = proposeCreate(collection, validators[of], parsed.value);
        const known = pairs.every(([each]) => shapes[of].places.has(each));
        if (!known) assert.equal(proposed.ok, false, 'an unknown name is never accepted');
      },
    ),
    bounds,
  );
});

test('any octets in any format are parsed or refused, and nothing is thrown', async () => {
  const types = [
    'application/json',
    'application/merge-patch+json',
    'application/json-patch+json',
    'application/x-www-form-urlencoded',
    'multipart/form-data',
    'text/plain',
    'application/sql',
  ];
  const octets = fc.oneof(
    fc.uint8Array({ maxLength: 64 }),
    fc
      .string({ unit: fc.constantFrom(...'{}[]":,=&%+-.eE019 ntu\\\r\nB') })
      .map((each) => new TextEncoder().encode(each)),
  );
  const parameters = new Map([['boundary', 'B']]);
  await fc.assert(
    fc.asyncProperty(octets, fc.constantFrom(...types), async (bytes, type) => {
      const parsed = await parseContent(bytes, { type, parameters }, shapes.products, contentLimitsDefault);
      if (!parsed.ok)
        assert.match(
          parsed.problem.code,
          /^(content_(malformed|missing)|media_type_unsupported|validation_failed)$/,
        );
    }),
    bounds,
  );
});
