/** The views of collections: typed columns, replaced by a migration, and never in its way. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Field } from '../../../src/model/field.ts';
import { migrateSchema } from '../../../src/store/postgres/schema/migrate.ts';
import { openSchema } from '../../../src/store/postgres/schema/open-schema.ts';
import type { Table } from '../../../src/store/store.ts';
import { fields, notes, things } from '../../contract/fixture.ts';
import { makeSchema, migrateOptions, openOptions, stepsTo, testDatabase } from './database.ts';

const database = await testDatabase();
const { address, client } = database;

const dueAt: Field = { name: 'dueAt', path: ['dueAt'], type: 'timestamp' };
const owner: Field = { name: 'owner', path: ['owner'], type: 'string' };
const shown: Table = {
  ...things,
  name: 'order-lines',
  ...{ indexes: [], unique: [], references: [], searched: false, view: true },
  fields: [
    fields.id,
    fields.name,
    fields.price,
    fields.stock,
    fields.live,
    dueAt,
    fields.tags,
    fields.extra,
    owner,
  ],
};

async function insert(
  schema: string,
  id: string,
  body: unknown,
  deletedAt: number | null = null,
): Promise<void> {
  await client.query(
    `INSERT INTO ${schema}."order-lines" (id, rev, owner, created_at, updated_at, deleted_at, doc) VALUES ($1, 1, 'ada', 0, 1500, $2, $3)`,
    [id, deletedAt, JSON.stringify(body)],
  );
}

test('a view has a typed column for each member, undeleted rows only, and null for values of other types', async () => {
  await makeSchema(database, 'typed', [shown]);
  await insert('typed', 'a', {
    ...{
      name: 'Lamp',
      price: 1.5,
      stock: 7,
      live: true,
      dueAt: '2024-02-29T10:00:00.250+02:00',
      tags: ['x'],
    },
    ...{ extra: { deep: [1] }, owner: 'a member' },
  });
  await insert('typed', 'b', {
    name: 1,
    price: 'x',
    stock: 1.5,
    live: 'no',
    dueAt: '2023-02-29T10:00:00Z',
    tags: null,
  });
  await insert('typed', 'c', { stock: 1e300, dueAt: '2024-13-01T00:00:00Z' });
  await insert('typed', 'd', { name: 'gone' }, 1);
  await insert('typed', 'e', { dueAt: '2024-02-29t10:00:00.123456z' });
  const { rows: types } = await client.query(
    `SELECT column_name, data_type FROM information_schema.columns WHERE table_schema = 'typed' AND table_name = 'view_order_lines' ORDER BY ordinal_position`,
  );
  assert.deepEqual(
    types.map(({ column_name, data_type }) => `${column_name} ${data_type}`),
    [
      ...[
        'id text',
        'owner text',
        'created_at timestamp with time zone',
        'updated_at timestamp with time zone',
      ],
      ...[
        'name text',
        'price double precision',
        'stock bigint',
        'live boolean',
        'due_at timestamp with time zone',
      ],
      ...['tags jsonb', 'extra jsonb', 'owner_2 text'],
    ],
  );
  const { rows } = await client.query('SELECT * FROM typed.view_order_lines ORDER BY id');
  assert.equal(rows.length, 4);
  const [a, b, c, e] = rows;
  assert.equal(e.due_at.toISOString(), '2024-02-29T10:00:00.123Z');
  assert.deepEqual(
    [a.name, a.price, a.stock, a.live, a.due_at.toISOString(), a.tags, a.extra, a.owner, a.owner_2],
    ['Lamp', 1.5, '7', true, '2024-02-29T08:00:00.250Z', ['x'], { deep: [1] }, 'ada', 'a member'],
  );
  assert.equal(a.updated_at.toISOString(), '1970-01-01T00:00:01.500Z');
  for (const row of [b, c]) {
    assert.deepEqual([row.name, row.price, row.stock, row.live, row.due_at, row.tags], Array(6).fill(null));
  }
});

test('a changed declaration replaces the view with its privileges, and a start does not wait for it', async () => {
  await makeSchema(database, 'changing', [shown]);
  await client.query('CREATE ROLE analyst; GRANT SELECT ON changing.view_order_lines TO analyst');
  const lean: Table = { ...shown, fields: [fields.id, fields.stock] };
  await openSchema(address, openOptions('changing', { tables: [lean] }));
  assert.deepEqual(await stepsTo(database, 'changing', [lean]), ['view view_order_lines']);
  assert.deepEqual(await stepsTo(database, 'changing', [lean]), []);
  const { rows } = await client.query(
    `SELECT has_table_privilege('analyst', 'changing.view_order_lines', 'SELECT') AS may`,
  );
  assert.equal(rows[0].may, true);
  await client.query('DROP OWNED BY analyst; DROP ROLE analyst');
});

test('a view that someone built upon one goes on, and the one below is removed when nothing uses it', async () => {
  await makeSchema(database, 'built', [shown]);
  await insert('built', 'a', { name: 'Lamp', stock: 2 });
  await client.query('CREATE VIEW public.report AS SELECT name FROM built.view_order_lines');
  for (const declared of [[fields.id, fields.stock], shown.fields, [fields.id]]) {
    const tables = [{ ...shown, fields: declared }];
    assert.deepEqual((await stepsTo(database, 'built', tables)).slice(0, 1), ['view view_order_lines']);
    assert.deepEqual(await stepsTo(database, 'built', tables), []);
    const { rows } = await client.query('SELECT * FROM public.report');
    assert.deepEqual(rows, [{ name: 'Lamp' }]);
  }
  await client.query('DROP VIEW public.report');
  const [left, ...others] = await stepsTo(database, 'built', [{ ...shown, fields: [fields.id] }]);
  assert.match(left ?? '', /^view view_order_lines~[0-9a-f]{16} dropped$/);
  assert.deepEqual(others, []);
});

test('an object of the same name that Comity did not make stays as it is', async () => {
  await makeSchema(database, 'foreign_view', [notes]);
  await client.query('CREATE VIEW foreign_view.view_notes AS SELECT 1 AS mine');
  assert.deepEqual(await stepsTo(database, 'foreign_view', [{ ...notes, view: true }]), []);
  await migrateSchema(address, migrateOptions('foreign_view', { tables: [{ ...notes, view: true }] }));
  assert.deepEqual((await client.query('SELECT * FROM foreign_view.view_notes')).rows, [{ mine: 1 }]);
});

test('jsonb does not keep the octets that are served, so documents stay texts (decision 0085)', async () => {
  const doc = '{"id":"a","b":1.10,"a":1e2,"long":9007199254740993,"b":2}';
  const { rows } = await client.query('SELECT $1::jsonb::text AS kept', [doc]);
  assert.notEqual(rows[0].kept, doc);
  assert.deepEqual(rows[0].kept, '{"a": 100, "b": 2, "id": "a", "long": 9007199254740993}');
});
