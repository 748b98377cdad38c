import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { type TObject, Type } from 'typebox';
import { Settings } from 'typebox/system';
import { compileValidator } from '../../src/kernel/content/validator.ts';
import { products, profiles, sampleCollection } from './sample-collections.ts';

const product = { name: 'Chair', price: 12.5, categoryId: 'c1' };
const shop = compileValidator(products);

describe('a product', () => {
  const invalid: readonly (readonly [object, string, string])[] = [
    [{ price: -1 }, '/price', 'must be at least 0'],
    [{ price: '12' }, '/price', 'must be a number'],
    [{ price: null }, '/price', 'must be a number'],
    [{ name: '' }, '/name', 'must not be empty'],
    [{ name: 'x'.repeat(201) }, '/name', 'must be at most 200 characters long'],
    [{ name: ['x'] }, '/name', 'must be a string'],
    [{ stock: 1.5 }, '/stock', 'must be an integer'],
    [{ tags: 'a' }, '/tags', 'must be an array'],
    [{ tags: ['a', 5] }, '/tags/1', 'must be a string'],
    [{ colour: 'red' }, '/colour', 'unknown property'],
    [{ 'a/b~c': 1 }, '/a~1b~0c', 'unknown property'],
    [{ constructor: 1 }, '/constructor', 'unknown property'],
    [JSON.parse('{"__proto__":{"name":"x"}}'), '/__proto__', 'unknown property'],
  ];
  for (const [change, pointer, message] of invalid) {
    test(`refuses ${JSON.stringify(change).slice(0, 40)}: ${pointer} ${message}`, () => {
      const value = Object.defineProperties({ ...product }, Object.getOwnPropertyDescriptors(change));
      assert.deepEqual(shop.check(value), { missing: [], invalid: [{ pointer, message }] });
    });
  }

  test('is sound with the required fields alone, and with all', () => {
    assert.deepEqual(shop.check(product), { missing: [], invalid: [] });
    const all = { ...product, sku: 'S', tags: ['a', 'a'], stock: 0 };
    assert.deepEqual(shop.check(all), { missing: [], invalid: [] });
  });

  test('counts the length of a name in code points', () => {
    assert.deepEqual(shop.check({ ...product, name: '\u{1f600}'.repeat(200) }).invalid, []);
    assert.equal(shop.check({ ...product, name: '\u{1f600}'.repeat(201) }).invalid.length, 1);
  });

  test('lists every missing field by its pointer', () => {
    assert.deepEqual(shop.check({ name: 'x' }).missing, [
      { pointer: '/price', message: 'is required' },
      { pointer: '/categoryId', message: 'is required' },
    ]);
  });

  test('tells missing and invalid apart in one document', () => {
    const { missing, invalid } = shop.check({ name: '', price: 1 });
    assert.deepEqual(missing, [{ pointer: '/categoryId', message: 'is required' }]);
    assert.deepEqual(invalid, [{ pointer: '/name', message: 'must not be empty' }]);
  });

  for (const value of [null, 5, 'x', [], undefined]) {
    test(`refuses ${JSON.stringify(value)} in place of an object`, () => {
      assert.deepEqual(shop.check(value).invalid, [{ pointer: '', message: 'must be an object' }]);
    });
  }
});

describe('nested objects and alternatives', () => {
  const { check } = compileValidator(profiles);
  const profile = { name: 'A', address: { city: 'B' }, flags: [] };

  test('closes nested objects too', () => {
    const { invalid } = check({ ...profile, address: { city: 'B', planet: 'C' } });
    assert.deepEqual(invalid, [{ pointer: '/address/planet', message: 'unknown property' }]);
  });

  test('points at a missing member of a nested object', () => {
    assert.deepEqual(check({ ...profile, address: {} }).missing, [
      { pointer: '/address/city', message: 'is required' },
    ]);
  });

  const cases: readonly (readonly [object, string, string])[] = [
    [{ address: { city: 'B', zip: 'x' } }, '/address/zip', 'must match the pattern ^[0-9]{5}$'],
    [{ level: 'middle' }, '/level', 'must be "low" or "high"'],
    [{ level: 5 }, '/level', 'must be "low" or "high"'],
    [{ age: 'x' }, '/age', 'must be an integer or null'],
    [{ age: -1 }, '/age', 'must be at least 0'],
    [{ active: 'yes' }, '/active', 'must be true or false'],
  ];
  for (const [change, pointer, message] of cases) {
    test(`says one sentence of ${JSON.stringify(change)}: ${message}`, () => {
      assert.deepEqual(check({ ...profile, ...change }).invalid, [{ pointer, message }]);
    });
  }

  test('adds the description of a pattern, also behind a reference and within an alternative', () => {
    const code = { type: 'string', pattern: '^[A-Z]{2}$', description: 'Two capitals.' };
    const schema = {
      type: 'object',
      properties: {
        code: { $ref: '#/$defs/code' },
        'a/b': code,
        list: { type: 'array', items: { anyOf: [{ type: 'null' }, code] } },
      },
      $defs: { code },
    };
    const validator = compileValidator(sampleCollection(Type.Unsafe(schema) as unknown as TObject));
    const message = 'must match the pattern ^[A-Z]{2}$ (Two capitals.)';
    assert.deepEqual(
      validator.check({ code: 'x', list: ['AB', 'x'] }).invalid,
      ['/code', '/list/1'].map((pointer) => ({ pointer, message })),
    );
    const [fault] = validator.check({ 'a/b': 'x' }).invalid;
    assert.match(String(fault?.message), /^must match the pattern/);
  });

  test('keeps the faults of item 1 and item 10 of an array of alternatives apart', () => {
    const items = Type.Array(Type.Union([Type.Integer({ minimum: 0 }), Type.Null()]));
    const validator = compileValidator(sampleCollection(Type.Object({ items })));
    const values = [0, -1, 0, 0, 0, 0, 0, 0, 0, 0, 'x'];
    assert.deepEqual(validator.check({ items: values }).invalid, [
      { pointer: '/items/1', message: 'must be at least 0' },
      { pointer: '/items/10', message: 'must be an integer or null' },
    ]);
  });

  test('leaves an object open that says so, and checks what it says of the rest', () => {
    const schema = Type.Object({ name: Type.String() }, { additionalProperties: Type.Number() });
    const validator = compileValidator(sampleCollection(schema));
    assert.deepEqual(validator.check({ name: 'x', other: 1 }).invalid, []);
    assert.deepEqual(validator.check({ name: 'x', other: 'y' }).invalid, [
      { pointer: '/other', message: 'must be a number' },
    ]);
  });

  test('closes a composed object as a whole', () => {
    const both = Type.Intersect([Type.Object({ a: Type.String() }), Type.Object({ b: Type.String() })]);
    const validator = compileValidator(sampleCollection(Type.Object({ both })));
    assert.deepEqual(validator.check({ both: { a: 'x', b: 'y' } }), { missing: [], invalid: [] });
    const { missing, invalid } = validator.check({ both: { a: 'x', b: 'y', c: 'z' } });
    assert.deepEqual([missing, invalid], [[], [{ pointer: '/both/c', message: 'unknown property' }]]);
  });

  test('uses the sentence of a refinement', () => {
    const even = Type.Refine(
      Type.Integer(),
      (value) => value % 2 === 0,
      () => 'must be even',
    );
    const validator = compileValidator(sampleCollection(Type.Object({ even })));
    assert.deepEqual(validator.check({ even: 3 }).invalid, [{ pointer: '/even', message: 'must be even' }]);
  });
});

describe('the bounds of validation', () => {
  const tags = new Array(100_000).fill(5);

  test('lists at most twenty faults of each kind', () => {
    assert.equal(shop.check({ ...product, tags }).invalid.length, 20);
  });

  test('lists as many faults as it is told', () => {
    assert.equal(compileValidator(products, 3).check({ ...product, tags }).invalid.length, 3);
  });

  test('looks for faults in the first ten thousand values of a long document alone', () => {
    const far = [...new Array(20_000).fill('x'), ...new Array(500_000).fill(5)];
    assert.equal(shop.check({ ...product, tags: far }).invalid.length, 1);
    assert.equal(shop.check({ ...product, tags: far.toReversed() }).invalid.length, 20);
  });

  test('points at the array whose fault lies beyond those', () => {
    const message = 'does not match the schema, in its number of items or in a later item';
    const far = [...new Array(20_000).fill('x'), 5];
    assert.deepEqual(shop.check({ ...product, tags: far }), {
      missing: [],
      invalid: [{ pointer: '/tags', message }],
    });
    const missing = shop.check({ name: 'x', price: 1, tags: far });
    assert.deepEqual(missing, { missing: [{ pointer: '/categoryId', message: 'is required' }], invalid: [] });
  });

  test('finds a missing field behind many invalid ones', () => {
    const { missing } = shop.check({ name: 'x', price: 1, tags });
    assert.deepEqual(missing, [{ pointer: '/categoryId', message: 'is required' }]);
  });

  test('points at the object that holds an unknown property with an endless name', () => {
    const { invalid } = shop.check({ ...product, ['x'.repeat(100_000)]: 1 });
    assert.deepEqual(invalid, [
      { pointer: '', message: 'unknown property (in a member whose name is too long to show)' },
    ]);
  });

  test('leaves the settings of TypeBox as they were', () => {
    const before = Settings.Get().maxErrors;
    shop.check({ ...product, price: -1 });
    assert.equal(Settings.Get().maxErrors, before);
  });

  test('works where the process forbids code made from strings', () => {
    const script = `
      import { compileValidator } from ${JSON.stringify(new URL('../../src/kernel/content/validator.ts', import.meta.url).href)};
      import { products } from ${JSON.stringify(new URL('./sample-collections.ts', import.meta.url).href)};
      let forbidden = false;
      try { new Function('return 1'); } catch { forbidden = true; }
      const { check } = compileValidator(products);
      const sound = check({ name: 'x', price: 1, categoryId: 'c' });
      const faulty = check({ name: 'x', price: -1, other: 1 });
      console.log(JSON.stringify({ forbidden, sound, faulty }));`;
    const run = spawnSync(
      process.execPath,
      ['--disallow-code-generation-from-strings', '--input-type=module', '--eval', script],
      { encoding: 'utf8', cwd: fileURLToPath(new URL('../..', import.meta.url)) },
    );
    const { forbidden, sound, faulty } = JSON.parse(run.stdout || `{"error":${JSON.stringify(run.stderr)}}`);
    assert.equal(forbidden, true, run.stderr);
    assert.deepEqual(sound, { missing: [], invalid: [] });
    assert.deepEqual(faulty.missing, [{ pointer: '/categoryId', message: 'is required' }]);
    assert.equal(faulty.invalid.length, 2);
  });
});

describe('defaults of a schema', () => {
  const schema = Type.Object({
    name: Type.String(),
    status: Type.String({ default: 'draft' }),
    tags: Type.Optional(Type.Array(Type.String(), { default: [] })),
    size: Type.Optional(Type.Object({ unit: Type.String({ default: 'cm' }), width: Type.Number() })),
    parts: Type.Optional(Type.Array(Type.Object({ count: Type.Integer({ default: 1 }) }))),
  });
  const { fillDefaults } = compileValidator(sampleCollection(schema));

  test('fill what is absent, inside given objects and items too', () => {
    assert.deepEqual(fillDefaults?.({ name: 'x', size: { width: 1 }, parts: [{}, { count: 5 }] }), {
      name: 'x',
      status: 'draft',
      tags: [],
      size: { width: 1, unit: 'cm' },
      parts: [{ count: 1 }, { count: 5 }],
    });
  });

  test('never make a nested object, replace a given null, change the input or share a value', () => {
    const given = { name: 'x', status: null };
    const expected = { name: 'x', status: null, tags: [] };
    const first = fillDefaults?.(given) as { tags: string[] };
    first.tags.push('changed');
    assert.deepEqual(given, { name: 'x', status: null });
    assert.deepEqual(fillDefaults?.(given), expected);
  });

  test('cost nothing where the schema has none', () => {
    assert.equal(shop.fillDefaults, undefined);
  });
});
