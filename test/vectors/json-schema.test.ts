/**
 * The validator of collections against judges of others: the JSON Schema test suite as npm has it (json-schema-test-suite, draft 4, for
 * the keywords that mean the same in 2020-12), and Ajv for draft 2020-12, which no package of the suite covers.
 */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { describe, test } from 'node:test';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { type TObject, Type } from 'typebox';
import { compileValidator } from '../../src/kernel/content/validator.ts';

type Group = {
  readonly description: string;
  readonly schema: object;
  readonly tests: readonly {
    readonly description: string;
    readonly data: unknown;
    readonly valid: boolean;
  }[];
};

/** Files of the suite that are not run, and why. */
const leftOut: Readonly<Record<string, string>> = {
  'definitions.json': 'refers to the meta-schema of draft 4 over the network; nothing is fetched',
  'refRemote.json': 'refers to schemas over the network; nothing is fetched',
  'dependencies.json': 'draft 4; 2020-12 has dependentRequired and dependentSchemas',
};

/** Groups and single tests that differ, and why. */
const different: Readonly<Record<string, string>> = {
  'ref.json: root pointer ref': '# is the schema of the collection, of which the schema is a member here',
  'ref.json: relative pointer ref to object': 'references lead to $defs, $id and $anchor alone',
  'ref.json: relative pointer ref to array': 'references lead to $defs, $id and $anchor alone',
  'ref.json: escaped pointer ref': 'references lead to $defs, $id and $anchor alone',
  'ref.json: nested refs': 'draft 4 has definitions in place of $defs',
  'ref.json: remote ref, containing refs itself': 'nothing is fetched',
  'maximum.json: exclusiveMaximum validation': 'a boolean in draft 4, a number in 2020-12',
  'minimum.json: exclusiveMinimum validation': 'a boolean in draft 4, a number in 2020-12',
};

const folder = new URL(
  'tests/draft4/',
  `file://${createRequire(import.meta.url).resolve('json-schema-test-suite/package.json')}`,
);

/** A schema as a member of a collection's schema: faults of a value, without the pointer of the member. */
function faultsOf(schema: object, data: unknown): readonly string[] {
  const { check } = compileValidator({
    schema: Type.Object({ value: schema } as never) as unknown as TObject,
    textBounds: [],
  });
  const { missing, invalid } = check({ value: data });
  return [...missing, ...invalid].map(({ pointer, message }) => `${pointer} ${message}`);
}

describe('json-schema-test-suite, draft 4', () => {
  for (const file of readdirSync(folder).filter(
    (name) => name.endsWith('.json') && leftOut[name] === undefined,
  )) {
    const groups = JSON.parse(readFileSync(new URL(file, folder), 'utf8')) as Group[];
    for (const { description, schema, tests } of groups) {
      if (different[`${file}: ${description}`] !== undefined) continue;
      for (const { description: title, data, valid } of tests) {
        test(`${file}: ${description}: ${title}`, () => {
          const faults = faultsOf(schema, data);
          // On purpose: an undeclared member is refused, where JSON Schema lets it pass.
          const isClosed = faults.length > 0 && faults.every((fault) => fault.endsWith(' unknown property'));
          if (valid && isClosed) return;
          assert.equal(faults.length === 0, valid, faults.join('; '));
        });
      }
    }
  }
});

test('lists no file or group of the suite as left out that is not in it', () => {
  const files = readdirSync(folder);
  for (const file of Object.keys(leftOut)) assert.ok(files.includes(file), file);
  for (const name of Object.keys(different)) {
    const [file = '', description] = name.split(': ', 2);
    const groups = JSON.parse(readFileSync(new URL(file, folder), 'utf8')) as Group[];
    assert.ok(
      groups.some((group) => group.description === description || name.endsWith(group.description)),
      name,
    );
  }
});

const text = { type: 'string' };
const number = { type: 'number' };
const object = (properties: object, more: object = {}) => ({ type: 'object', properties, ...more });
const geo = (name: string) => object({ at: object({ [name]: number }) });

/** Composed schemas as declared, and what they mean with every object closed, written out for the judge. */
const composed: Readonly<Record<string, { readonly declared: object; readonly closed: object }>> = {
  'an intersection of objects': both({ allOf: [object({ a: text }), object({ b: number })] }),
  'an intersection of arrays': {
    declared: {
      allOf: [
        { type: 'array', items: number },
        { type: 'array', minItems: 1 },
      ],
    },
    closed: {
      allOf: [
        { type: 'array', items: number },
        { type: 'array', minItems: 1 },
      ],
    },
  },
  'allOf with a reference': both({
    $defs: { part: object({ a: text }) },
    ...object({ b: number }),
    allOf: [{ $ref: '#/$defs/part' }],
  }),
  'a reference beside properties': both({
    $defs: { part: object({ a: text }) },
    $ref: '#/$defs/part',
    ...object({ b: number }),
  }),
  'members only in then and else': both({
    ...object({ kind: text }),
    if: object({ kind: { const: 'x' } }, { required: ['kind'] }),
    // biome-ignore lint/suspicious/noThenProperty: the keyword of JSON Schema
    then: object({ a: text }),
    else: object({ b: number }),
  }),
  'members only in an if that may fail': both({
    ...object({ kind: text }),
    if: object({ a: { const: 'x' }, kind: { const: 'x' } }),
    // biome-ignore lint/suspicious/noThenProperty: the keyword of JSON Schema
    then: object({ b: number }),
  }),
  'members only in dependentSchemas': both({
    ...object({ kind: text }),
    dependentSchemas: { kind: object({ a: text }, { required: ['a'] }) },
  }),
  'alternatives beside properties': both({
    ...object({ kind: text }),
    anyOf: [object({ a: text }, { required: ['a'] }), object({ b: number }, { required: ['b'] })],
  }),
  'alternatives of which both may fit': both({ anyOf: [object({ a: text }), object({ b: number })] }),
  'alternatives of which one fits': both({
    oneOf: [
      object({ kind: { const: 'x' }, a: text }, { required: ['kind'] }),
      object({ kind: { const: 'y' }, b: number }, { required: ['kind'] }),
    ],
  }),
  'a negation, which closes nothing': both({
    ...object({ kind: text, a: text }),
    not: object({ a: { const: 'x' } }, { required: ['a'] }),
  }),
  'a nested object that two parts speak of': {
    declared: { allOf: [geo('lat'), geo('lng')] },
    closed: {
      allOf: [geo('lat'), geo('lng')],
      properties: {
        at: { allOf: [object({ lat: number }), object({ lng: number })], unevaluatedProperties: false },
      },
      unevaluatedProperties: false,
    },
  },
  'a part that is open by its own word': {
    declared: { allOf: [object({ a: text }), object({ b: number }, { additionalProperties: true })] },
    closed: { allOf: [object({ a: text }), object({ b: number }, { additionalProperties: true })] },
  },
  'itself as a whole, or null': {
    declared: object({ a: text, at: { anyOf: [{ $ref: '#' }, { type: 'null' }] } }),
    closed: object(
      { a: text, at: { anyOf: [{ $ref: '#' }, { type: 'null' }] } },
      { additionalProperties: false },
    ),
  },
  'itself, one level down': {
    declared: object(
      { a: text, at: { anyOf: [{ $ref: '#/$defs/node' }, { type: 'null' }] } },
      {
        $defs: { node: object({ a: text, at: { $ref: '#/$defs/node' } }) },
      },
    ),
    closed: object(
      { a: text, at: { anyOf: [{ $ref: '#/$defs/node' }, { type: 'null' }] } },
      {
        additionalProperties: false,
        $defs: { node: object({ a: text, at: { $ref: '#/$defs/node' } }, { additionalProperties: false }) },
      },
    ),
  },
};

function both(declared: object) {
  return { declared, closed: { ...declared, unevaluatedProperties: false } };
}

/** Every document of these members and values, and some that are no objects. */
function* documents(): Generator<unknown> {
  const values: Readonly<Record<string, readonly unknown[]>> = {
    a: [undefined, 'x', 1],
    b: [undefined, 1, 'x'],
    kind: [undefined, 'x', 'y'],
    at: [
      undefined,
      null,
      { lat: 1 },
      { lng: 1 },
      { lat: 1, lng: 1 },
      { lat: 1, far: 1 },
      { a: 'x', at: { c: 1 } },
    ],
    other: [undefined, 1],
  };
  let all: Readonly<Record<string, unknown>>[] = [{}];
  for (const [name, choices] of Object.entries(values)) {
    all = all.flatMap((base) =>
      choices.map((value) => (value === undefined ? base : { ...base, [name]: value })),
    );
  }
  yield* all;
  yield* [null, [], [1], ['x'], [1, 2], 'x', 1];
}

describe('Ajv agrees on every document about the closed form of', () => {
  for (const [title, { declared, closed }] of Object.entries(composed)) {
    test(title, () => {
      const judge = new Ajv2020({ strict: false }).compile(closed);
      const validator = compileValidator({ schema: declared as TObject, textBounds: [] });
      let valid = 0;
      for (const document of documents()) {
        const { missing, invalid } = validator.check(document);
        const faults = [...missing, ...invalid];
        const shown = `${JSON.stringify(document)} ${JSON.stringify(faults)}`;
        assert.equal(faults.length === 0, judge(document), shown);
        if (faults.length === 0) valid += 1;
      }
      assert.ok(valid > 0, 'the declaration can be satisfied');
    });
  }
});
