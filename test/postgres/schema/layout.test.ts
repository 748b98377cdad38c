/** Names and index texts of the layout, which are compared with what stands and therefore must never change by chance. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { channelOf, layoutsOf, physicalName } from '../../../src/store/postgres/schema/schema-layout.ts';
import type { Table } from '../../../src/store/store.ts';
import { categories, fields, tables, things } from '../../contract/fixture.ts';

const plain: Table = {
  name: 'plain',
  fields: [],
  indexes: [],
  unique: [],
  references: [],
  searched: false,
};

test('keeps a name of 63 bytes and cuts one of 64', () => {
  assert.equal(physicalName('n'.repeat(63)), 'n'.repeat(63));
  const cut = physicalName('n'.repeat(64));
  assert.equal(Buffer.byteLength(cut), 63);
  assert.ok(cut.startsWith(`${'n'.repeat(42)}~`));
});

test('tells two long names apart that are cut to the same beginning, and cuts at a whole character', () => {
  const names = ['a', 'b'].map((end) => physicalName(`${'é'.repeat(40)}${end}`));
  assert.notEqual(names[0], names[1]);
  for (const name of names) {
    assert.ok(Buffer.byteLength(name) <= 63);
    assert.ok(!name.includes('�'));
  }
});

test('gives every index of a table with long names a name of its own that fits', () => {
  const long = (end: string) => ({ ...fields.name, name: `${'field'.repeat(12)}${end}` });
  const name = `table-${'x'.repeat(57)}`;
  const [layout] = layoutsOf(
    [{ ...plain, name, indexes: [[long('1')], [long('2')]], unique: [[long('1')]] }],
    's',
  );
  assert.ok(layout);
  const names = [layout.primaryKey, ...layout.indexes.map((index) => index.name)];
  assert.equal(new Set(names).size, 4);
  for (const each of names) assert.ok(Buffer.byteLength(each) <= 63, each);
  assert.deepEqual([...layout.uniqueFields], [[names[3], [long('1')]]]);
});

test('puts nulls first where a value can be null, and nowhere else, as the primary key cannot', () => {
  const declared = { ...plain, indexes: [[fields.createdAt], [fields.owner], [fields.id]] };
  const [layout] = layoutsOf([declared], 'own');
  assert.deepEqual(
    layout?.indexes.map(({ definition }) => definition),
    [
      'ON "own"."plain" (created_at, id) WHERE deleted_at IS NULL',
      'ON "own"."plain" (owner NULLS FIRST, id) WHERE deleted_at IS NULL',
      'ON "own"."plain" (id) WHERE deleted_at IS NULL',
    ],
  );
});

test('makes an index for a reference that no other index begins with, and two of events: by revision, and by their resource', () => {
  const [first, second, events] = layoutsOf(tables, 'own');
  assert.deepEqual(
    first?.indexes.map(({ keys }) => keys[0]),
    ['price', 'categoryId', 'name', 'live'].map((name) => `["${name}"]`).concat('createdAt', '["sku"]'),
  );
  assert.ok(second?.indexes.some(({ keys }) => keys[0] === '["parentId"]'));
  assert.deepEqual(
    events?.indexes.map(({ keys }) => keys),
    [
      ['rev', 'id'],
      ['collection', 'document', 'rev', 'id'],
    ],
  );
});

for (const [what, declared, message] of [
  [
    'two names that differ in case alone',
    [plain, { ...plain, name: 'PLAIN' }],
    /two tables are named "PLAIN"/,
  ],
  [
    'a name of the store',
    [{ ...plain, name: 'comity_counters' }],
    /names must not be empty or start with sqlite_, pg_, comity_/,
  ],
  [
    'a name of the server',
    [{ ...plain, name: 'pg_plain' }],
    /names must not be empty or start with sqlite_, pg_, comity_/,
  ],
  ['an empty name', [{ ...plain, name: '' }], /names must not be empty/],
  ['a name of 64 bytes', [{ ...plain, name: 'n'.repeat(64) }], /longer than 63 bytes/],
  ['an index over no field', [{ ...plain, indexes: [[]] }], /an index without fields/],
  ['a reference to a table that is not declared', [things], /refers to categories, which is not declared/],
  [
    'a reference by a number',
    [categories, { ...plain, references: [{ field: fields.price, table: 'categories' }] }],
    /is not a string field/,
  ],
] as const) {
  test(`refuses ${what}`, () => {
    assert.throws(
      () => layoutsOf(declared, 'own'),
      (error) => error instanceof TypeError && message.test(error.message),
    );
  });
}

test('calls the processes on a schema by a name that the server takes, however long the schema is named', () => {
  assert.equal(channelOf('comity'), 'comity_comity');
  assert.ok(Buffer.byteLength(channelOf('s'.repeat(63))) <= 63);
});
