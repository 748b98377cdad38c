/** Lists of a tenant and of an owner (§5.1): what one sees of a collection costs the same however many others there are. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Type } from 'typebox';
import { resolveCollections } from '../../src/config/collections.ts';
import { visibleTo } from '../../src/model/access.ts';
import { ownerField } from '../../src/model/field.ts';
import { authenticated } from '../../src/model/principal.ts';
import { storeTables, tableOf } from '../../src/store-tables.ts';
import { openEmbedded } from '../harness/stores.ts';

test('an index serves the list of a tenant, in order of id', async (context) => {
  const offices = resolveCollections({
    offices: {
      schema: Type.Object({ title: Type.String(), tenantId: Type.Optional(Type.String()) }),
      tenantField: 'tenantId',
      access: { read: 'tenant' },
    },
  }).get('offices');
  assert.ok(offices);
  const store = await openEmbedded(context, [tableOf(offices)]);
  const member = authenticated({ id: 'nora', scopes: ['read'], tenant: 'north' });
  const named = (name: string) => offices.fields.get(name) ?? assert.fail(name);
  const filter = visibleTo(offices.access.read, member, ownerField, named);
  const sort = [{ field: named('id'), direction: 'asc' as const }];
  const plan = (of: typeof filter) => store.plan({ table: 'offices', filter: of, sort, limit: 20 });
  assert.equal(plan(filter).bounded, true);
  const title = { op: 'eq', field: named('title'), value: 'x' } as const;
  assert.equal(plan(title).bounded, false, 'so the answer means something');
});

test('an index serves the list of one owner, in order of id, for an administrator', async (context) => {
  const collections = resolveCollections({
    offices: { schema: Type.Object({ title: Type.String() }), access: { read: 'public' } },
  });
  const store = await openEmbedded(context, storeTables({ collections }));
  const id = collections.get('offices')?.fields.get('id') ?? assert.fail('id');
  for (const direction of ['asc', 'desc'] as const) {
    for (const value of ['ada', null]) {
      const filter = { op: 'eq', field: ownerField, value } as const;
      const plan = store.plan({ table: 'offices', filter, sort: [{ field: id, direction }], limit: 20 });
      assert.equal(plan.bounded, true);
    }
  }
});
