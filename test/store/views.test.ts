/** The views of collections in the embedded store, read by another connection as SQL tools do. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import type { Table } from '../../src/store/store.ts';
import { commitAll, fields, put, things } from '../contract/fixture.ts';
import { folderFor } from './folder.ts';

const shown: Table = {
  ...things,
  ...{ indexes: [], unique: [], references: [], searched: false, view: true },
  fields: [fields.id, fields.name, fields.price, fields.stock, fields.live, fields.tags, fields.extra],
};

test('a view has a column for each member, follows the declaration, and leaves what others made', async (context) => {
  const folder = folderFor(context);
  const store = await folder.open({ tables: [shown] });
  await commitAll(
    store,
    put(shown, 'a', { name: 'Lamp', price: 1.5, stock: 7, live: true, tags: ['x'], extra: { deep: 1 } }),
    put(shown, 'b', { name: 1, price: 'x', stock: 1.5, live: 'no', tags: null }),
    put(shown, 'c', { name: 'gone' }, undefined, { deletedAt: 1 }),
  );
  const other = new DatabaseSync(join(folder.path, 'comity.db'), { readOnly: true });
  const read = (): unknown[] =>
    other
      .prepare('SELECT name, price, stock, live, tags, extra, created_at FROM view_things ORDER BY id')
      .all();
  const createdAt = '2023-11-14T22:13:20.000Z';
  assert.deepEqual(
    read().map((row) => ({ ...(row as object) })),
    [
      {
        name: 'Lamp',
        price: 1.5,
        stock: 7,
        live: 1,
        tags: '["x"]',
        extra: '{"deep":1}',
        created_at: createdAt,
      },
      { name: null, price: null, stock: null, live: null, tags: null, extra: null, created_at: createdAt },
    ],
  );
  other.close();
  await store.close();

  const own = new DatabaseSync(join(folder.path, 'comity.db'));
  own.exec('CREATE VIEW report AS SELECT name FROM view_things; CREATE VIEW view_mine AS SELECT 1 AS mine');
  own.close();
  const lean: Table = { ...shown, fields: [fields.id, fields.name] };
  await (await folder.open({ tables: [lean, { ...shown, name: 'mine' }] })).close();
  const later = new DatabaseSync(join(folder.path, 'comity.db'));
  assert.deepEqual(Object.keys(later.prepare('SELECT * FROM view_things').get() ?? {}), [
    ...['id', 'owner', 'created_at', 'updated_at', 'name'],
  ]);
  assert.equal(later.prepare('SELECT count(*) AS n FROM report').get()?.n, 2);
  assert.equal(later.prepare('SELECT mine FROM view_mine').get()?.mine, 1);
  later.close();
});

test('a view shows equal instants as equal texts, and text that is not kept as one as null', async (context) => {
  const folder = folderFor(context);
  const timed: Table = { ...shown, fields: [fields.id, fields.due] };
  const store = await folder.open({ tables: [timed] });
  const second = '2026-01-31T12:00:00';
  const stored = ['.500Z', '.50000Z', '.5001Z', '.000Z', '.0000Z', 'Z', '.5+02:00'];
  await commitAll(store, ...stored.map((end, at) => put(timed, `${at}`, { due: `${second}${end}` })));
  const other = new DatabaseSync(join(folder.path, 'comity.db'), { readOnly: true });
  assert.deepEqual(
    other
      .prepare('SELECT due FROM view_things ORDER BY id')
      .all()
      .map(({ due }) => due?.toString().replace(second, '')),
    ['.500Z', '.500Z', '.5001Z', '.000Z', '.000Z', undefined, undefined],
  );
  const found = other.prepare('SELECT count(*) AS n FROM view_things WHERE due = ?').get(`${second}.500Z`);
  assert.equal(found?.n, 2);
  other.close();
});
