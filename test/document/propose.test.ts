import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Type } from 'typebox';
import type { Json } from '../../src/http/syntax/json.ts';
import { compileValidator } from '../../src/kernel/content/validator.ts';
import {
  type Proposed,
  proposeCreate,
  proposePatch,
  proposeReplace,
} from '../../src/resources/document/propose.ts';
import { referencesOf } from '../../src/resources/document/representation.ts';
import { products, sampleCollection } from './sample-collections.ts';

const validator = compileValidator(products);
const given = { name: 'Chair', price: 12.5, categoryId: 'c1', sku: 'CH-1' };
const times = { createdAt: '2026-01-01T00:00:00.000Z', updatedAt: '2026-01-02T00:00:00.000Z' };
const current = { id: 'p1', ...given, tags: ['oak'], ...times };

const create = (value: unknown) => proposeCreate(products, validator, value);
const replace = (value: unknown, standing: typeof current | undefined = current) =>
  proposeReplace(products, validator, 'p1', standing, value);
const merge = (value: Json, standing: Readonly<Record<string, unknown>> = current) =>
  proposePatch(products, validator, standing, { format: 'merge-patch', value });
const patch = (value: Json) => proposePatch(products, validator, current, { format: 'json-patch', value });

function refusal(proposed: Proposed): readonly [string, readonly string[]] {
  if (proposed.ok) return ['accepted', []];
  const { code, errors = [] } = proposed.problem;
  return [code, errors.map(({ pointer, message }) => `${pointer} ${message}`)];
}

function fieldsOf(proposed: Proposed): unknown {
  return proposed.ok ? proposed.fields : proposed.problem;
}

describe('POST', () => {
  test('takes the fields in the order of the schema', () => {
    const proposed = create({ sku: 'S', categoryId: 'c', price: 1, name: 'x' });
    assert.deepEqual(Object.keys(fieldsOf(proposed) as object), ['name', 'price', 'categoryId', 'sku']);
  });

  test('answers 400 field_missing and points at each missing field', () => {
    const expected = ['field_missing', ['/price is required', '/categoryId is required']];
    assert.deepEqual(refusal(create({ name: 'x' })), expected);
  });

  test('answers 422 validation_failed for invalid data', () => {
    const expected = ['validation_failed', ['/price must be at least 0']];
    assert.deepEqual(refusal(create({ ...given, price: -1 })), expected);
  });

  test('answers 400 with all faults for a body with both kinds', () => {
    const expected = ['field_missing', ['/categoryId is required', '/price must be at least 0']];
    assert.deepEqual(refusal(create({ name: 'x', price: -1 })), expected);
  });

  for (const name of ['id', 'createdAt', 'updatedAt', 'deletedAt']) {
    test(`refuses ${name} given by the client as field_unpatchable, whatever its value`, () => {
      for (const value of ['x', null, {}]) {
        const expected = ['field_unpatchable', [`/${name} is assigned by the server`]];
        assert.deepEqual(refusal(create({ ...given, [name]: value })), expected);
      }
    });
  }

  test('sets an unpatchable field', () => {
    assert.equal(create(given).ok, true);
  });

  test('lists unpatchable, missing and invalid members together, the gravest code first', () => {
    const expected = [
      'field_unpatchable',
      ['/id is assigned by the server', '/categoryId is required', '/price must be at least 0'],
    ];
    assert.deepEqual(refusal(create({ id: 'x', name: 'x', price: -1 })), expected);
  });

  for (const value of [null, [], 5, 'x', undefined]) {
    test(`answers 422 for ${JSON.stringify(value)} in place of an object`, () => {
      assert.deepEqual(refusal(create(value)), ['validation_failed', [' must be an object']]);
    });
  }

  test('lists at most twenty faults in all, or as many as the validator is told', () => {
    const value = { ...given, id: 1, tags: new Array(100).fill(5) };
    assert.equal(refusal(create(value))[1].length, 20);
    const proposed = proposeCreate(products, compileValidator(products, 3), value);
    assert.equal(refusal(proposed)[1].length, 3);
  });

  test('fills defaults before it looks for missing fields', () => {
    const collection = sampleCollection(Type.Object({ status: Type.String({ default: 'draft' }) }));
    const proposed = proposeCreate(collection, compileValidator(collection), {});
    assert.deepEqual(fieldsOf(proposed), { status: 'draft' });
  });
});

describe('PUT', () => {
  test('removes the fields that are left out', () => {
    assert.deepEqual(fieldsOf(replace(given)), given);
  });

  test('resets a field that is left out to its default', () => {
    const schema = Type.Object({ name: Type.String(), size: Type.Optional(Type.Integer({ default: 3 })) });
    const collection = sampleCollection(schema);
    const standing = { id: 'x', name: 'a', size: 9, ...times };
    const proposed = proposeReplace(collection, compileValidator(collection), 'x', standing, { name: 'b' });
    assert.deepEqual(fieldsOf(proposed), { name: 'b', size: 3 });
  });

  test('ignores server-made members that are those that stand, so that a GET can be put back', () => {
    const proposed = replace(current);
    assert.deepEqual(fieldsOf(proposed), { ...given, tags: ['oak'] });
    assert.equal(proposed.ok && proposed.unchanged, true);
  });

  test('takes a time that stands in another spelling', () => {
    assert.equal(replace({ ...given, createdAt: '2026-01-01T01:00:00+01:00' }).ok, true);
  });

  test('takes a deletedAt of null for an absent one', () => {
    assert.equal(replace({ ...given, deletedAt: null }).ok, true);
  });

  for (const [name, value] of [
    ['id', 'p2'],
    ['id', null],
    ['createdAt', '2026-01-01T00:00:00.001Z'],
    ['updatedAt', '2026-01-03T00:00:00.000Z'],
    ['deletedAt', '2026-01-03T00:00:00.000Z'],
  ] as const) {
    test(`refuses ${name} of ${value}, which is not what stands`, () => {
      const expected = ['field_unpatchable', [`/${name} is assigned by the server`]];
      assert.deepEqual(refusal(replace({ ...given, [name]: value })), expected);
    });
  }

  test('refuses another value of an unpatchable field, and leaving it out', () => {
    const expected = ['field_unpatchable', ['/sku cannot be changed after creation']];
    assert.deepEqual(refusal(replace({ ...given, sku: 'other' })), expected);
    const { sku: _, ...without } = given;
    assert.deepEqual(refusal(replace(without)), expected);
  });

  test('answers 400 for a missing required field', () => {
    assert.deepEqual(refusal(replace({ ...given, name: undefined })), [
      'field_missing',
      ['/name is required'],
    ]);
  });

  test('creates with the id of its target alone, and sets unpatchable fields', () => {
    const creating = (value: unknown) => proposeReplace(products, validator, 'p1', undefined, value);
    assert.deepEqual(fieldsOf(creating({ id: 'p1', ...given })), given);
    assert.deepEqual(refusal(creating({ id: 'p2', ...given }))[0], 'field_unpatchable');
    assert.deepEqual(refusal(creating({ createdAt: times.createdAt, ...given }))[0], 'field_unpatchable');
  });
});

describe('PATCH by merge patch', () => {
  test('changes the fields present and keeps the others', () => {
    assert.deepEqual(fieldsOf(merge({ price: 1 })), { ...given, price: 1, tags: ['oak'] });
  });

  test('means the same as application/json', () => {
    const asJson = proposePatch(products, validator, current, { format: 'json', value: { price: 1 } });
    assert.deepEqual(asJson, merge({ price: 1 }));
  });

  test('removes an optional field by null', () => {
    assert.deepEqual(fieldsOf(merge({ tags: null })), given);
  });

  test('answers 422 where it removes a required field', () => {
    assert.deepEqual(refusal(merge({ name: null })), ['validation_failed', ['/name is required']]);
  });

  for (const value of [null, [], 5, 'x', true] as Json[]) {
    test(`refuses ${JSON.stringify(value)} as patch_malformed`, () => {
      assert.equal(refusal(merge(value))[0], 'patch_malformed');
    });
  }

  for (const [name, value] of [
    ['id', 'p2'],
    ['id', null],
    ['createdAt', 'x'],
    ['updatedAt', null],
    ['deletedAt', 'x'],
  ] as const) {
    test(`refuses ${name} of ${value} as field_unpatchable`, () => {
      const expected = ['field_unpatchable', [`/${name} is assigned by the server`]];
      assert.deepEqual(refusal(merge({ [name]: value })), expected);
    });
  }

  test('refuses changing, removing or adding an unpatchable field', () => {
    const expected = ['field_unpatchable', ['/sku cannot be changed after creation']];
    assert.deepEqual(refusal(merge({ sku: 'other' })), expected);
    assert.deepEqual(refusal(merge({ sku: null })), expected);
    const { sku: _, ...without } = current;
    assert.deepEqual(refusal(merge({ sku: 'new' }, without)), expected);
  });

  test('accepts naming what already stands', () => {
    const proposed = merge({ id: 'p1', sku: 'CH-1', createdAt: times.createdAt, deletedAt: null });
    assert.equal(proposed.ok && proposed.unchanged, true);
  });

  test('tells a patch that changes nothing from one that does', () => {
    assert.equal((merge({ tags: ['oak'] }) as { unchanged: boolean }).unchanged, true);
    assert.equal((merge({ tags: ['oak', 'oak'] }) as { unchanged: boolean }).unchanged, false);
    assert.equal((merge({ tags: null }) as { unchanged: boolean }).unchanged, false);
    assert.equal((merge({ stock: 1 }) as { unchanged: boolean }).unchanged, false);
  });

  test('changes neither the representation nor the patch', () => {
    const standing = structuredClone(current);
    const value = { tags: ['a'], price: 2 };
    merge(value, standing);
    assert.deepEqual([standing, value], [current, { tags: ['a'], price: 2 }]);
  });
});

describe('PATCH by JSON Patch', () => {
  test('sees the whole representation, so the id and the times can be tested', () => {
    const proposed = patch([
      { op: 'test', path: '/id', value: 'p1' },
      { op: 'test', path: '/updatedAt', value: times.updatedAt },
      { op: 'add', path: '/tags/-', value: 'new' },
    ]);
    assert.deepEqual(fieldsOf(proposed), { ...given, tags: ['oak', 'new'] });
  });

  test('answers 400 for what is no patch and 422 for what cannot be applied', () => {
    assert.equal(refusal(patch({ op: 'add' }))[0], 'patch_malformed');
    assert.equal(refusal(patch([{ op: 'remove', path: '/stock' }]))[0], 'patch_not_applicable');
    assert.equal(refusal(patch([{ op: 'test', path: '/price', value: 0 }]))[0], 'patch_not_applicable');
  });

  test('answers 422 where the result is invalid', () => {
    const expected = ['validation_failed', ['/price must be at least 0']];
    assert.deepEqual(refusal(patch([{ op: 'replace', path: '/price', value: -1 }])), expected);
    assert.equal(refusal(patch([{ op: 'remove', path: '/name' }]))[0], 'validation_failed');
    assert.equal(refusal(patch([{ op: 'add', path: '/colour', value: 1 }]))[0], 'validation_failed');
    assert.equal(refusal(patch([{ op: 'replace', path: '', value: 5 }]))[0], 'validation_failed');
  });

  test('answers 400 where it changes an unpatchable member, in whatever way', () => {
    for (const operation of [
      { op: 'replace', path: '/sku', value: 'x' },
      { op: 'remove', path: '/sku' },
      { op: 'move', from: '/name', path: '/sku' },
      { op: 'copy', from: '/name', path: '/id' },
      { op: 'add', path: '/deletedAt', value: 'x' },
      { op: 'replace', path: '', value: given },
    ]) {
      assert.equal(refusal(patch([operation]))[0], 'field_unpatchable', JSON.stringify(operation));
    }
  });

  test('accepts replacing an unpatchable member by the same value', () => {
    const proposed = patch([{ op: 'replace', path: '/sku', value: 'CH-1' }]);
    assert.equal(proposed.ok && proposed.unchanged, true);
  });

  test('judges what an unpatchable member is in the end', () => {
    const proposed = patch([
      { op: 'move', from: '/sku', path: '/name' },
      { op: 'copy', from: '/name', path: '/sku' },
    ]);
    assert.deepEqual(fieldsOf(proposed), { ...given, name: 'CH-1', tags: ['oak'] });
  });
});

describe('references', () => {
  test('are the non-null values of the reference fields, items of arrays each', () => {
    const references = ['one', 'many', 'none', 'absent'].map((field) => ({
      field,
      collection: 'c',
      countAs: 'n',
      onDelete: 'restrict' as const,
    }));
    const fields = { one: 'a', many: ['b', 'c'], none: null, other: 'd' };
    assert.deepEqual(referencesOf({ references }, fields), [
      { field: 'one', id: 'a' },
      { field: 'many', id: 'b' },
      { field: 'many', id: 'c' },
    ]);
  });

  test('are none where a collection declares none', () => {
    assert.deepEqual(referencesOf({ references: [] }, { categoryId: 'x' }), []);
  });
});

describe('a member with a default', () => {
  const priced = sampleCollection(
    Type.Object({
      title: Type.String(),
      currency: Type.String({ default: 'EUR' }),
      colour: Type.Optional(Type.String({ default: 'white' })),
      box: Type.Optional(Type.Object({ width: Type.Optional(Type.Integer({ default: 10 })) })),
    }),
    { unpatchable: new Set(['colour']) },
  );
  const pricedValidator = compileValidator(priced);
  const whole = { title: 'x', currency: 'USD', colour: 'white', box: { width: 20 } };
  const patched = (value: Json, format: 'merge-patch' | 'json-patch', stored: object = whole) =>
    proposePatch(priced, pricedValidator, { id: 'i1', ...stored, ...times }, { format, value });

  const expected = { title: 'x', currency: 'EUR', colour: 'white', box: { width: 10 } };

  test('has its default again when a merge patch removes it, also a required or a nested one', () => {
    const proposed = patched({ currency: null, box: { width: null } }, 'merge-patch');
    assert.deepEqual(fieldsOf(proposed), expected);
  });

  test('has its default again when a JSON Patch removes it', () => {
    const operations = ['/currency', '/box/width'].map((path) => ({ op: 'remove', path }));
    assert.deepEqual(fieldsOf(patched(operations, 'json-patch')), expected);
  });

  test('stays refused where the field is fixed at creation', () => {
    const refused = refusal(patched({ colour: null }, 'merge-patch'));
    assert.deepEqual(refused, ['field_unpatchable', ['/colour cannot be changed after creation']]);
  });

  test('is added to a resource that is older than the declaration, by a PATCH and by a PUT', () => {
    const old = { title: 'y' };
    const filled = { title: 'x', currency: 'EUR', colour: 'white' };
    assert.deepEqual(fieldsOf(patched({ title: 'x' }, 'merge-patch', old)), filled);
    const put = proposeReplace(priced, pricedValidator, 'i1', { id: 'i1', ...old, ...times }, { title: 'x' });
    assert.deepEqual(fieldsOf(put), filled);
  });
});
