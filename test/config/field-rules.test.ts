/** Rules of actions and of fields in declarations (§4.7.1, §5.1): what they become, and the sentence for every mistake. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Type } from 'typebox';
import { resolveCollections } from '../../src/config/collections.ts';
import { allow } from '../../src/model/access-function.ts';
import type { Collection, CollectionDeclaration } from '../../src/model/collection.ts';
import { mistakesFrom } from '../harness/mistakes.ts';

const schema = Type.Object({
  name: Type.String(),
  price: Type.Optional(Type.Number({ minimum: 0 })),
  ownerId: Type.Optional(Type.String()),
  live: Type.Optional(Type.Boolean()),
  address: Type.Optional(Type.Object({ city: Type.String() })),
});

/** A declaration as plain JavaScript could have it. */
type Loose = { readonly [N in keyof CollectionDeclaration]?: unknown };

function mistakesOf(declaration: Loose): readonly string[] {
  return mistakesFrom(() => resolveCollections({ things: { schema, ...declaration } } as never));
}

function resolved(declaration: Omit<CollectionDeclaration, 'schema'> = {}): Collection {
  const collection = resolveCollections({ things: { schema, ...declaration } }).get('things');
  assert.ok(collection);
  return collection;
}

const anyRule =
  "must be 'public', 'principal', 'owner', 'tenant', 'administrator', what allow(...) returns, or one of { role }, { scope }, { anyOf }, { allOf } and { where }";

/** How often a function was called that answers by that. */
let asked = 0;

/** What is wrong with the rules of `things`, and the predicate that says so. */
const refused: readonly (readonly [declaration: Loose, predicate: string])[] = [
  [{ access: { read: { role: '' } } }, 'access.read: role must be the name of a role, of 1 to 64 characters'],
  [{ access: { read: { role: 5 } } }, 'access.read: role must be the name of a role, of 1 to 64 characters'],
  [
    { access: { read: { scope: 'writes' } } },
    'access.read: scope must be one of read, write, webhooks, tunnel, admin; did you mean write?',
  ],
  [
    { access: { update: { anyOf: ['owner', 'tenant'] } } },
    "access.update is 'tenant', which needs a tenantField",
  ],
  [{ access: { read: { allow: 'all' } } }, 'access.read: allow takes a function, not a string'],
  [
    { access: { read: allow(() => undefined as never) } },
    'access.read: the function fails for nobody: an access function must return true, false or a condition on its resource, not a value of type undefined',
  ],
  [
    {
      access: {
        delete: allow((principal) => {
          if (principal.id !== null) throw new Error('cannot think');
          return false;
        }),
      },
    },
    'access.delete: the function fails for somebody: cannot think',
  ],
  [
    { access: { read: allow((principal) => principal.tenant?.startsWith('t') === true && (1 as never)) } },
    'access.read: the function fails for a member of a tenant: an access function must return true, false or a condition on its resource, not a value of type number',
  ],
  [
    {
      access: {
        read: allow(() => {
          asked += 1;
          return asked % 2 === 0;
        }),
      },
    },
    'access.read: the function returns different results for the same caller: nobody',
  ],
  [
    {
      access: { read: allow(() => true) },
      schema: Type.Object({ name: Type.String(), owner: Type.String() }),
    },
    'access.read is a function, to which "owner" means the creator of the resource; rename the field "owner"',
  ],
  [{ hidden: ['price'] }, 'hidden must be an object of fields and rules, not a list'],
  [{ readOnly: { prices: 'owner' } }, 'readOnly names "prices", which is not a field; did you mean price?'],
  [{ readOnly: { id: 'owner' } }, 'readOnly names "id", which the server sets'],
  [
    { hidden: { 'address.city': 'owner' } },
    'hidden names "address.city"; only a field at the top level can have a rule',
  ],
  [{ hidden: { price: { rule: 'x' } } }, `hidden.price ${anyRule}`],
  [
    { hidden: { ownerId: 'owner' }, search: { fields: ['name', 'ownerId'] } },
    'search names "ownerId", which some principals cannot see: a search would reveal its value to them',
  ],
  [
    { hidden: { ownerId: 'owner' }, search: ['name', 'ownerId'] },
    'search names "ownerId", which some principals cannot see: a search would reveal its value to them',
  ],
  [
    { hidden: { ownerId: { anyOf: ['owner', { role: 'hr' }] } }, unique: ['ownerId'] },
    'unique names "ownerId", which some principals cannot see: a 409 would reveal to them which values exist',
  ],
  [
    { hidden: { price: { role: 'hr' } }, cacheControl: 'public, max-age=60' },
    'cacheControl lets shared caches store responses with "price", which some principals cannot see; use private or no-store',
  ],
  [{ tenantField: 'tenant' }, 'tenantField names "tenant", which is not a field'],
  [{ tenantField: 5 }, 'tenantField must hold names of fields, not a number'],
  [
    { tenantField: 'price' },
    'tenantField names "price"; the tenant of a resource is a string at the top level that clients could write',
  ],
  [
    { tenantField: 'ownerId', unpatchable: ['ownerId'] },
    'unpatchable names "ownerId", which is fixed as the tenantField anyway; leave it out',
  ],
];
for (const [declaration, predicate] of refused) {
  test(`says: ${predicate}`, () => {
    assert.deepEqual(mistakesOf(declaration), [`collection things: ${predicate}`]);
  });
}

test('names the field behind tenant, keeps it fixed, and serves the lists of a tenant by an index', () => {
  const things = resolved({
    tenantField: 'ownerId',
    access: { read: 'tenant', update: { anyOf: ['tenant'] } },
  });
  assert.deepEqual(things.access.read, { tenantIn: 'ownerId' });
  assert.deepEqual(things.access.update, { anyOf: [{ tenantIn: 'ownerId' }] });
  assert.ok(things.unpatchable.has('ownerId'));
  assert.equal(things.searchFields.includes('ownerId'), false, 'nobody looks for words in it');
  assert.deepEqual(
    things.indexes.map((index) => index.map(({ name }) => name)),
    [['ownerId']],
  );
  assert.deepEqual(things.textBounds, [{ path: ['ownerId'], bytesMax: 2000 }]);
  const served = resolved({
    tenantField: 'ownerId',
    indexes: [['ownerId', 'price']],
    access: { read: 'tenant' },
  });
  assert.equal(served.indexes.length, 1, 'a declared index serves it already');
  const open = resolved({ tenantField: 'ownerId', access: { read: { anyOf: ['public', 'tenant'] } } });
  assert.equal(open.indexes.length, 0);
});

test('what is hidden from some is left out of searches and of shared caches', () => {
  const things = resolved({ hidden: { ownerId: 'administrator' }, access: { read: 'public' } });
  assert.deepEqual(things.searchFields, ['name']);
  assert.equal(things.cacheControl, 'private, no-cache');
  assert.equal(resolved({ access: { read: 'public' } }).cacheControl, 'no-cache');
});

test('warns where a required field is closed to some who may create', () => {
  const warnings: string[] = [];
  const declaration = { schema, readOnly: { name: { role: 'namer' } } };
  resolveCollections({ things: declaration }, (sentence) => warnings.push(sentence));
  assert.deepEqual(warnings, [
    'collection things: "name" is required and in readOnly: a principal that its rule excludes could not create any resource; give the field a default or make it optional',
  ]);
  resolveCollections({ things: { ...declaration, access: { create: 'administrator' } } }, (sentence) =>
    assert.fail(sentence),
  );
});
