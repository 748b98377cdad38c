/** That `bounded` is true of the statements: SQLite says it walks an index, sorts nothing, and visits as many rows as it returns. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, before, describe, test } from 'node:test';
import type { Field } from '../../src/model/field.ts';
import { always, type Filter, type Sort } from '../../src/model/filter.ts';
import { shapeFilter } from '../../src/store/filter-shape.ts';
import { serve } from '../../src/store/serve.ts';
import { encoding } from '../../src/store/sqlite/compile/filter.ts';
import { bind, compilePage } from '../../src/store/sqlite/compile/select.ts';
import { layoutsOf } from '../../src/store/sqlite/sqlite-schema.ts';
import type { Position } from '../../src/store/store.ts';
import { fields, nextRow, tables, things } from '../contract/fixture.ts';
import { seedTable } from '../harness/seed-table.ts';

const rowsSeeded = 20_000;
const limit = 20;

const shapes: readonly (readonly [string, Filter, readonly Field[]])[] = [
  ['all by id', always, [fields.id]],
  ['all by price, of which nine tenths tie or are null', always, [fields.price, fields.id]],
  ['all by name and stock', always, [fields.name, fields.stock, fields.id]],
  ['all by createdAt, which all tie', always, [fields.createdAt, fields.id]],
  ['live by id, half of all', { op: 'eq', field: fields.live, value: true }, [fields.id]],
  ['one category by price', { op: 'eq', field: fields.categoryId, value: 'c1' }, [fields.price, fields.id]],
  ['no category by price', { op: 'eq', field: fields.categoryId, value: null }, [fields.price, fields.id]],
  ['prices above 1 by price', { op: 'gte', field: fields.price, value: 1 }, [fields.price, fields.id]],
  ['prices to 180 by price', { op: 'lte', field: fields.price, value: 180 }, [fields.price, fields.id]],
  ['prices to 1 of a category by price', pricesOf('c1', 1), [fields.price, fields.id]],
];

describe('bounded plans', () => {
  const root = mkdtempSync(join(tmpdir(), 'comity-plans-'));
  let database: DatabaseSync;
  before(() => {
    const rows = Array.from({ length: rowsSeeded }, (_, index) => {
      const id = `row ${String(index).padStart(6, '0')}`;
      const price = index % 10 < 5 ? null : index % 10 < 9 ? 1 : index / 100;
      const body = {
        price,
        name: `n${index % 3}`,
        stock: 1,
        live: index % 2 === 0,
        categoryId: index % 2 === 0 ? 'c1' : null,
      };
      return { id, row: nextRow(things, id, body) };
    });
    seedTable(root, tables, 'things', rows);
    database = new DatabaseSync(join(root, 'comity.db'), { readOnly: true });
  });
  after(() => {
    database.close();
    rmSync(root, { recursive: true, force: true });
  });

  for (const [what, filter, keys] of shapes) {
    for (const direction of ['asc', 'desc'] as const) {
      for (const whole of [false, true])
        test(`walk an index, without sorting, for ${whole ? 'rows of' : 'pages of'} ${what}, ${direction}`, () => {
          const sort: readonly Sort[] = keys.map((field) => ({ field, direction }));
          const layout = layoutsOf(tables).find((each) => each.table.name === 'things');
          assert.ok(layout !== undefined);
          const { shape, values: inFilter } = shapeFilter(filter, encoding);
          const service = serve(layout, shape, sort);
          assert.ok(service !== undefined && service !== 'never');
          const selection = {
            layout,
            filter: shape,
            sort,
            service,
            whole,
            timed: false,
            capped: !whole,
            heads: false,
          };
          const key = keys.map((field) => middle.get(field) ?? 1);
          const nulls = keys.map((field) => (field === fields.price ? null : (middle.get(field) ?? 1)));
          // No page gives a null as key of rows that a range lets pass.
          const ranged = filter.op === 'gte' || filter.op === 'lte' || filter.op === 'and';
          const all: readonly Position[] = [
            { from: 'start' },
            { from: 'after', key },
            { from: 'before', key },
            { from: 'after', key: nulls },
            { from: 'before', key: nulls },
            {
              from: 'after',
              key: keys.map((field) => (field === fields.price ? 150 : (middle.get(field) ?? 1))),
            },
            {
              from: 'before',
              key: keys.map((field) => (field === fields.price ? 150 : (middle.get(field) ?? 1))),
            },
          ];
          const positions = all.filter(
            (position) => !(ranged && 'key' in position && position.key === nulls),
          );
          for (const position of positions) {
            let rows = 0;
            let done = 0;
            for (const page of compilePage(selection, position)) {
              if (rows > limit) break;
              const values = bind(page, sort, {
                values: inFilter,
                position,
                limit: limit + 1 - rows,
                docBytesMax: 1000,
              });
              for (const { detail } of database.prepare(`EXPLAIN QUERY PLAN ${page.sql}`).all(...values)) {
                assert.ok(!String(detail).includes('TEMP B-TREE'), `${detail}: ${page.sql}`);
              }
              const prepared = database.prepare(page.sql);
              rows += prepared.all(...values).length;
              const counted = prepared as unknown as Counted;
              done += counted.stat('vmStep');
              assert.equal(counted.stat('reprepare'), 0, `compiled again with its values: ${page.sql}`);
            }
            // A walk takes some 10 steps of SQLite's machine a row; a scan of all rows would take 10^5.
            assert.ok(
              done < 200 + 30 * (rows + 1),
              `${done} steps for ${rows} rows, ${JSON.stringify(position)}`,
            );
          }
        });
    }
  }
});

/** What node:sqlite counts of a statement; @types/node does not know it yet. */
type Counted = { stat(counter: 'vmStep' | 'reprepare'): number };

/** As a queue is read: the nulls of the category come first in its index. */
function pricesOf(category: string, most: number): Filter {
  const filters: readonly Filter[] = [
    { op: 'eq', field: fields.categoryId, value: category },
    { op: 'lte', field: fields.price, value: most },
  ];
  return { op: 'and', filters };
}

/** A value amid each field's, so that pages in both directions are full or end at the filter. */
const middle = new Map<Field, string | number>([
  [fields.id, 'row 010000'],
  [fields.createdAt, 1_700_000_000_000],
  [fields.name, 'n1'],
]);
