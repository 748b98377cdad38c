/** Fields that are closed to who writes (§5.1): read-only ones, hidden ones and the tenant, in POST, PUT and both kinds of patch. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Type } from 'typebox';
import { resolveCollections } from '../../src/config/collections.ts';
import type { Json } from '../../src/http/syntax/json.ts';
import { compileValidator } from '../../src/kernel/content/validator.ts';
import type { CollectionDeclaration } from '../../src/model/collection.ts';
import { anonymous, authenticated, type Principal } from '../../src/model/principal.ts';
import { patchLimitsDefault } from '../../src/resources/document/json-patch.ts';
import {
  type Proposed,
  proposeCreate,
  proposePatch,
  proposeReplace,
} from '../../src/resources/document/propose.ts';

const schema = Type.Object({
  name: Type.String(),
  status: Type.Optional(Type.String({ default: 'new' })),
  salary: Type.Optional(Type.Number({ minimum: 0 })),
  secret: Type.Optional(Type.String({ default: 'none' })),
  box: Type.Optional(Type.Object({ depth: Type.Optional(Type.Number({ default: 1 })) })),
  tenantId: Type.Optional(Type.String()),
});

const declaration: CollectionDeclaration = {
  schema,
  readOnly: { status: { role: 'clerk' }, box: { role: 'clerk' } },
  hidden: { salary: { anyOf: ['owner', { role: 'hr' }] }, secret: { role: 'hr' } },
  tenantField: 'tenantId',
};
const people =
  resolveCollections({ people: declaration }).get('people') ?? assert.fail('the declaration is sound');
const validator = compileValidator(people);

const person = (id: string, roles: readonly string[] = [], tenant: string | null = 'north') =>
  authenticated({ id, scopes: ['read', 'write'], roles, tenant });
const ada = person('ada');
const bob = person('bob');
const clerk = person('cleo', ['clerk']);
const hr = person('hana', ['hr']);
const root = authenticated({ id: 'root', scopes: ['admin'] });

const times = { createdAt: '2026-01-01T00:00:00.000Z', updatedAt: '2026-01-02T00:00:00.000Z' };
const fields = { name: 'Ada', status: 'hired', salary: 5, secret: 'x', box: {}, tenantId: 'north' };
/** Ada's. */
const current = { id: 'p1', ...fields, ...times };

const create = (value: unknown, principal: Principal) =>
  proposeCreate(people, validator, value, {
    principal,
    owner: principal.kind === 'anonymous' ? null : principal.id,
  });
const replace = (value: unknown, principal: Principal, standing: object = current) =>
  proposeReplace(people, validator, 'p1', standing as never, value, { principal, owner: 'ada' });
const merge = (value: Json, principal: Principal) =>
  proposePatch(people, validator, current, { format: 'merge-patch', value }, patchLimitsDefault, {
    principal,
    owner: 'ada',
  });
const patch = (value: Json, principal: Principal) =>
  proposePatch(people, validator, current, { format: 'json-patch', value }, patchLimitsDefault, {
    principal,
    owner: 'ada',
  });

function told(proposed: Proposed): unknown {
  if (proposed.ok) return proposed.fields;
  const { code, errors = [], message } = proposed.problem;
  return [
    code,
    ...(errors.length === 0 ? [message] : errors.map((error) => `${error.pointer} ${error.message}`)),
  ];
}

describe('POST', () => {
  test('refuses a read-only field that the writer may not set, and fills in its default', () => {
    assert.deepEqual(told(create({ name: 'x', status: 'hired' }, bob)), [
      'field_unpatchable',
      '/status is read-only',
    ]);
    assert.deepEqual(told(create({ name: 'x', status: 'new' }, bob)), [
      'field_unpatchable',
      '/status is read-only',
    ]);
    assert.deepEqual(told(create({ name: 'x' }, bob)), {
      name: 'x',
      status: 'new',
      secret: 'none',
      tenantId: 'north',
    });
    assert.deepEqual(told(create({ name: 'x', status: 'hired' }, clerk)), {
      name: 'x',
      status: 'hired',
      secret: 'none',
      tenantId: 'north',
    });
  });

  test('calls a hidden field unknown, and takes what the owner will see', () => {
    assert.deepEqual(told(create({ name: 'x', secret: 'y' }, bob)), [
      'validation_failed',
      '/secret unknown property',
    ]);
    assert.deepEqual(told(create({ name: 'x', salary: 5 }, bob)), {
      name: 'x',
      status: 'new',
      salary: 5,
      secret: 'none',
      tenantId: 'north',
    });
    assert.deepEqual(told(create({ name: 'x', salary: 5 }, anonymous)), [
      'validation_failed',
      '/salary unknown property',
    ]);
  });

  test('tells nothing more of a hidden field than that it is unknown', () => {
    assert.deepEqual(told(create({ name: 'x', secret: 5 }, bob)), [
      'validation_failed',
      '/secret unknown property',
    ]);
    assert.deepEqual(told(create({ name: 'x', secret: 5 }, hr)), [
      'validation_failed',
      '/secret must be a string',
    ]);
  });

  test('sets the tenant of the writer and refuses another, but an administrator may name one', () => {
    const tenantOf = (value: object, principal: Principal) =>
      (told(create({ name: 'x', ...value }, principal)) as { tenantId?: string }).tenantId;
    const refusal = ['field_unpatchable', '/tenantId must be your own tenant'];
    assert.equal(tenantOf({}, bob), 'north');
    assert.equal(tenantOf({ tenantId: 'north' }, bob), 'north');
    assert.deepEqual(told(create({ name: 'x', tenantId: 'south' }, bob)), refusal);
    assert.deepEqual(told(create({ name: 'x', tenantId: 5 }, bob)), refusal);
    assert.equal(tenantOf({}, person('eve', [], null)), undefined);
    assert.deepEqual(told(create({ name: 'x', tenantId: 'south' }, person('eve', [], null))), refusal);
    assert.deepEqual(told(create({ name: 'x', tenantId: 'south' }, anonymous)), refusal);
    assert.equal(tenantOf({ tenantId: 'south' }, root), 'south');
    assert.equal(tenantOf({}, root), undefined);
  });

  test('counts every fault, the gravest first', () => {
    assert.deepEqual(told(create({ status: 'x', secret: 'y', tenantId: 'south' }, bob)), [
      'field_unpatchable',
      '/tenantId must be your own tenant',
      '/status is read-only',
      '/name is required',
      '/secret unknown property',
    ]);
  });
});

describe('PUT', () => {
  test('keeps read-only and hidden fields and the tenant that it leaves out, rather than reset them', () => {
    assert.deepEqual(told(replace({ name: 'New' }, bob)), { ...fields, name: 'New' });
  });

  test('resets what the writer may write', () => {
    assert.deepEqual(told(replace({ name: 'New' }, person('chief', ['clerk', 'hr']))), {
      name: 'New',
      status: 'new',
      secret: 'none',
      tenantId: 'north',
    });
  });

  test('keeps a closed field absent where it stands absent, default or not', () => {
    const standing = { id: 'p1', name: 'Ada', ...times };
    assert.deepEqual(told(replace({ name: 'New' }, bob, standing)), { name: 'New' });
  });

  test('takes a read-only field that repeats what stands, and refuses another value', () => {
    assert.deepEqual(told(replace({ name: 'New', status: 'hired', box: {} }, bob)), {
      ...fields,
      name: 'New',
    });
    assert.deepEqual(told(replace({ name: 'New', status: 'fired' }, bob)), [
      'field_unpatchable',
      '/status is read-only',
    ]);
    const { box: _box, ...others } = fields;
    const changed = { ...others, name: 'New', status: 'fired' };
    assert.deepEqual(told(replace({ name: 'New', status: 'fired' }, clerk)), changed);
  });

  test('calls a hidden field unknown, even with the value that stands', () => {
    assert.deepEqual(told(replace({ name: 'New', salary: 5 }, bob)), [
      'validation_failed',
      '/salary unknown property',
    ]);
    assert.equal((told(replace({ name: 'New', salary: 6 }, ada)) as { salary: number }).salary, 6);
  });

  test('refuses to move a resource to another tenant, whoever asks', () => {
    for (const principal of [bob, root]) {
      assert.deepEqual(told(replace({ name: 'New', tenantId: 'south' }, principal)), [
        'field_unpatchable',
        '/tenantId cannot be changed after creation',
      ]);
    }
  });

  test('says nothing of a hidden field that the schema no longer takes, and leaves it', () => {
    const standing = { ...current, salary: -5 };
    assert.deepEqual(told(replace({ name: 'New' }, bob, standing)), { ...fields, name: 'New', salary: -5 });
    assert.deepEqual(told(replace({ name: 'New', salary: -5 }, hr, standing)), [
      'validation_failed',
      '/salary must be at least 0',
    ]);
  });
});

describe('PATCH', () => {
  test('refuses to change or remove a read-only field, and takes one that changes nothing', () => {
    const refusal = ['field_unpatchable', '/status is read-only'];
    assert.deepEqual(told(merge({ status: 'fired' }, bob)), refusal);
    assert.deepEqual(told(merge({ status: null }, bob)), refusal);
    assert.deepEqual(told(merge({ status: 'hired', name: 'New' }, bob)), { ...fields, name: 'New' });
    assert.deepEqual(told(patch([{ op: 'replace', path: '/status', value: 'fired' }], bob)), refusal);
    assert.deepEqual(told(patch([{ op: 'remove', path: '/status' }], bob)), refusal);
    assert.deepEqual(told(patch([{ op: 'move', from: '/status', path: '/name' }], bob)), refusal);
    assert.deepEqual(told(patch([{ op: 'copy', from: '/name', path: '/status' }], bob)), refusal);
    assert.deepEqual(told(patch([{ op: 'add', path: '/box/depth', value: 2 }], bob)), [
      'field_unpatchable',
      '/box is read-only',
    ]);
    assert.deepEqual(told(patch([{ op: 'copy', from: '/status', path: '/name' }], bob)), {
      ...fields,
      name: 'hired',
    });
    const fired = { ...fields, status: 'fired', box: { depth: 1 } };
    assert.deepEqual(told(merge({ status: 'fired' }, clerk)), fired);
  });

  test('names the read-only target of a patch that cannot be applied', () => {
    const operations = [
      { op: 'replace', path: '/status', value: 'fired' },
      { op: 'remove', path: '/nothing' },
    ];
    assert.deepEqual(told(patch(operations, bob)), ['field_unpatchable', '/status is read-only']);
    assert.equal((told(patch(operations, clerk)) as string[])[0], 'patch_not_applicable');
  });

  test('finds nothing where a hidden field stands: test, copy, move, remove and replace fail alike', () => {
    const absent = (path: string) => [
      [{ op: 'test', path, value: 5 }],
      [{ op: 'copy', from: path, path: '/name' }],
      [{ op: 'move', from: path, path: '/name' }],
      [{ op: 'remove', path }],
      [{ op: 'replace', path, value: 5 }],
    ];
    for (const [index, operations] of absent('/salary').entries()) {
      const [code, ...rest] = told(patch(operations, bob)) as string[];
      const unknown = told(patch(absent('/nowhere')[index] ?? [], bob)) as string[];
      assert.equal(code, 'patch_not_applicable');
      assert.deepEqual([code, ...rest], JSON.parse(JSON.stringify(unknown).replaceAll('nowhere', 'salary')));
    }
    assert.notEqual(
      (told(patch([{ op: 'test', path: '/salary', value: 5 }], ada)) as string[])[0],
      'patch_not_applicable',
    );
  });

  test('keeps hidden fields through every patch, the replacement of the whole document too', () => {
    assert.deepEqual(told(merge({ name: 'New', salary: null, secret: null }, bob)), {
      ...fields,
      name: 'New',
    });
    const whole = { id: 'p1', name: 'New', status: 'hired', box: {}, tenantId: 'north', ...times };
    assert.deepEqual(told(patch([{ op: 'replace', path: '', value: whole }], bob)), {
      ...fields,
      name: 'New',
    });
  });

  test('calls a hidden field unknown, whatever is written into it', () => {
    const refusal = ['validation_failed', '/salary unknown property'];
    assert.deepEqual(told(merge({ salary: 5 }, bob)), refusal);
    assert.deepEqual(told(merge({ salary: 'much' }, bob)), refusal);
    assert.deepEqual(told(patch([{ op: 'add', path: '/salary', value: 7 }], bob)), refusal);
    assert.deepEqual(told(patch([{ op: 'copy', from: '/name', path: '/salary' }], bob)), refusal);
    assert.equal((told(merge({ salary: 7 }, hr)) as { salary: number }).salary, 7);
  });

  test('refuses to move a resource to another tenant', () => {
    assert.deepEqual(told(merge({ tenantId: 'south' }, bob)), [
      'field_unpatchable',
      '/tenantId cannot be changed after creation',
    ]);
  });
});

test('to the program itself nothing is closed', () => {
  const proposed = proposeCreate(people, validator, {
    name: 'x',
    status: 'hired',
    secret: 'y',
    tenantId: 'south',
  });
  assert.deepEqual(told(proposed), { name: 'x', status: 'hired', secret: 'y', tenantId: 'south' });
});
