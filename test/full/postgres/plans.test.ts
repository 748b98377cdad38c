/**
 * That `bounded` is true of the statements: PostgreSQL walks an index, sorts nothing and visits as many rows as it returns, on tables
 * small and large, whether it knows anything of what is in them, with the plan that it keeps after five executions.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import pg from 'pg';
import type { Field } from '../../../src/model/field.ts';
import { always, type Filter, type Sort } from '../../../src/model/filter.ts';
import type { Shape } from '../../../src/store/filter-shape.ts';
import { shapeOfFilter } from '../../../src/store/postgres/compile/filter.ts';
import { bind, type Selection } from '../../../src/store/postgres/compile/page-statement.ts';
import {
  compileFirstRows,
  compileNamedWalk,
  compileWalk,
  namedWalkOf,
} from '../../../src/store/postgres/compile/walk.ts';
import { addressOf } from '../../../src/store/postgres/connection/address.ts';
import type { Call } from '../../../src/store/postgres/connection/connection.ts';
import { createPointReads } from '../../../src/store/postgres/read/point-reads.ts';
import { readHead, readTail } from '../../../src/store/postgres/read/tail.ts';
import { openSchema } from '../../../src/store/postgres/schema/open-schema.ts';
import { type Layout, layoutsOf } from '../../../src/store/postgres/schema/schema-layout.ts';
import { serve } from '../../../src/store/serve.ts';
import type { Position, Table } from '../../../src/store/store.ts';
import { fields, tables, things } from '../../contract/fixture.ts';
import { emptyDatabase, type TestDatabase } from '../../harness/postgres-database.ts';
import { execute, explain, type Node, nodesOf, scansOf, visited } from './explained.ts';

/** Pages of two lengths, and whole rows. */
const readings = [
  { limit: 20, whole: false },
  { limit: 1000, whole: false },
  { limit: 20, whole: true },
];
const schema = 'comity';

const shapes: readonly (readonly [string, Filter, readonly Field[]])[] = [
  ['all by id', always, [fields.id]],
  ['all by price, of which nine tenths tie or are null', always, [fields.price, fields.id]],
  ['all by name and stock', always, [fields.name, fields.stock, fields.id]],
  ['all by createdAt, which all tie', always, [fields.createdAt, fields.id]],
  ['live by id, half of all', { op: 'eq', field: fields.live, value: true }, [fields.id]],
  ['one category by price', { op: 'eq', field: fields.categoryId, value: 'c1' }, [fields.price, fields.id]],
  [
    'a category that is not there',
    { op: 'eq', field: fields.categoryId, value: 'c9' },
    [fields.price, fields.id],
  ],
  ['no category by price', { op: 'eq', field: fields.categoryId, value: null }, [fields.price, fields.id]],
  ['prices above 1 by price', { op: 'gte', field: fields.price, value: 1 }, [fields.price, fields.id]],
  ['prices to 180 by price', { op: 'lte', field: fields.price, value: 180 }, [fields.price, fields.id]],
  ['prices to 1 of a category by price', pricesOf('c1', 1), [fields.price, fields.id]],
  ['one sku by what no index orders', { op: 'eq', field: fields.sku, value: 's7' }, [fields.city, fields.id]],
  [
    'one id by what no index orders',
    { op: 'eq', field: fields.id, value: 'row 000007' },
    [fields.city, fields.id],
  ],
];

/** Half of it with every run; the planner chooses alike from some thousands on. */
const manyRows = process.env.COMITY_SOAK === '1' ? 100_000 : 50_000;

for (const rows of [1000, manyRows]) {
  describe(`bounded plans over ${rows} rows`, () => {
    const loaded = loadedDatabase(tables, rows);
    describe('just loaded', () => shapeTests(loaded));
    describe('analysed', () => {
      before(() => loaded.client().query('VACUUM ANALYZE'));
      shapeTests(loaded);
    });
  });
}

describe('the list of one owner', () => {
  const owned: Table = { ...things, indexes: [[fields.price], [fields.owner]], unique: [], references: [] };
  const loaded = loadedDatabase([owned], 0);

  test('walks the index of owners, for an owner of most rows, of few and of none', async () => {
    const client = loaded.client();
    await load(client, 20_000, `json_build_object('price', g)`, 'big');
    await client.query(`UPDATE ${schema}.things SET owner = 'rare' WHERE id > 'row 019980'`);
    await client.query('VACUUM ANALYZE');
    for (const direction of ['asc', 'desc'] as const) {
      for (const owner of ['big', 'rare', 'nobody']) {
        const filter: Filter = { op: 'eq', field: fields.owner, value: owner };
        const sort = keysBy([fields.id], direction);
        for (const position of positionsOf(filter, [fields.id])) {
          const plan = await kept(client, pageCall(owned, filter, sort, position, 20), 'list of an owner');
          const skipped = position.from === 'offset' ? position.offset : 0;
          assert.ok(visited(plan) <= 21 + skipped, `${visited(plan)} rows of ${owner}`);
        }
      }
    }
  });
});

describe('plans kept from when things were otherwise', () => {
  const teamed: Table = {
    ...things,
    indexes: [[fields.price], [fields.owner, fields.price]],
    unique: [],
    references: [],
  };
  const loaded = loadedDatabase([teamed], 0);

  test('walk the index of a prefix for a value that the statistics have not seen', async () => {
    const client = loaded.client();
    await load(client, 20_000, `json_build_object('price', g)`, 'big');
    await client.query('VACUUM ANALYZE');
    for (const direction of ['asc', 'desc'] as const) {
      for (const owner of ['big', 'rare']) {
        const filter: Filter = { op: 'eq', field: fields.owner, value: owner };
        const sort = keysBy([fields.price, fields.id], direction);
        for (const position of positionsOf(filter, [fields.price, fields.id])) {
          const plan = await kept(client, pageCall(teamed, filter, sort, position, 20), 'owned');
          const skipped = position.from === 'offset' ? position.offset : 0;
          assert.ok(visited(plan) <= 21 + skipped, `${visited(plan)} rows of ${owner}`);
        }
      }
    }
  });

  test('read by id along the primary key, though kept while the table was empty', async () => {
    const client = loaded.client();
    await client.query(`TRUNCATE ${schema}.things`);
    const calls: Call[] = [];
    const points = createPointReads(noting(calls), {
      ...{ layouts: layoutsOf([teamed], schema), numbers: new Map([['things', 1]]), schema },
    });
    await Promise.all(['row 000001', 'row 000002', 'row 000003'].map((id) => points.read('things', id)));
    const [call] = calls;
    assert.ok(call !== undefined);
    await execute(client, call, 'points');
    await load(client, 20_000, `'{}'`);
    const plan = await explain(client, call, 'points');
    assert.equal(scansOf(plan).join(), 'Index Scan');
    assert.equal(visited(plan), 3);
  });

  test('read the head and the tail of the log along the index of revisions', async () => {
    const client = loaded.client();
    await client.query(
      `INSERT INTO ${schema}.events (id, rev, created_at, updated_at, type, collection, doc)
       SELECT 'evt_' || g, g, 1, 1, 'x', 'things', '{}' FROM generate_series(1, 20000) g`,
    );
    const calls: Call[] = [];
    const layout = layoutsOf([teamed], schema).find((each) => each.table.name === 'events');
    assert.ok(layout !== undefined);
    const sources = { read: noting(calls), scan: { read: async () => [] }, layout, schema };
    const filter: Filter = { op: 'eq', field: fields.collection, value: 'things' };
    await readHead(sources);
    for (const asked of [always, filter]) {
      for (const rev of [19_900, 100])
        await readTail(sources, { after: { rev, id: '' }, filter: asked, limit: 50, bytesMax: 100_000 });
    }
    for (const [at, call] of calls.entries()) {
      const plan = await kept(client, call, `log ${at}`);
      assert.ok(visited(plan) <= 52, `${visited(plan)} rows: ${call.sql}`);
    }
  });
});

const namedTables: readonly Table[] = [
  { ...things, indexes: [...things.indexes, [fields.categoryId]] },
  ...tables.filter((table) => table !== things),
];
const namedLayouts = layoutsOf(namedTables, schema);

describe('pages by the rows that references name', () => {
  /** The number of categories beneath each parent, each with twenty things among 20,000. */
  const beneath = { none: 0, few: 8, rare: 70, many: 900 } as const;
  const loaded = loadedDatabase(namedTables, 0);

  before(async () => {
    const client = loaded.client();
    await client.query(`ALTER TABLE ${schema}.categories SET (autovacuum_enabled = off)`);
    await client.query(
      `INSERT INTO ${schema}.categories (id, rev, created_at, updated_at, doc)
       SELECT 'c' || lpad(g::text, 4, '0'), 1, 1, 1, json_build_object('name', 'n' || g, 'parentId',
         CASE WHEN g % 125 = 1 THEN 'few' WHEN g % 1000 < ${beneath.rare + 8} AND g % 125 <> 1 THEN 'rare' ELSE 'many' END)
       FROM generate_series(0, 999) g`,
    );
    await load(
      client,
      20_000,
      `json_build_object('price', g % 50, 'categoryId', 'c' || lpad((g * 7 % 1000)::text, 4, '0'), 'live', g % 2 = 0)`,
    );
  });

  namedTests('just loaded');
  describe('analysed', () => {
    before(() => loaded.client().query('VACUUM ANALYZE'));
    namedTests('analysed');
  });

  function namedTests(when: string): void {
    for (const keys of [[fields.id], [fields.price, fields.id]]) {
      for (const direction of ['asc', 'desc'] as const) {
        test(`find the named rows, or ask the first rows of the list: ${when}, by ${keys[0]?.name}, ${direction}`, async () => {
          for (const [parent, named] of Object.entries(beneath)) {
            const filter: Filter = {
              ...{ op: 'related', field: fields.categoryId, table: 'categories' },
              filter: { op: 'eq', field: fields.parentId, value: parent },
            };
            for (const position of positionsOf(filter, keys)) {
              if (position.from === 'offset' || ('key' in position && position.key.includes(null))) continue;
              const call = namedCall(filter, keysBy(keys, direction), position, 20);
              await execute(loaded.client(), call, `${when} ${parent}`);
              const plan = await explain(loaded.client(), call, `${when} ${parent}`);
              for (const scan of scansOf(plan)) assert.match(scan, /^Index (Only )?Scan$/, call.sql);
              // Those of each named row, or each of the first rows with its look.
              const most = named <= 64 ? named + named * 21 : 65 + 2 * 256;
              assert.ok(visited(plan) <= most, `${visited(plan)} rows of ${parent}: ${call.sql}`);
              if (parent === 'many' && position.from === 'start')
                assert.ok(visited(plan) <= 65 + 3 * 21, `${visited(plan)} rows of many: ${call.sql}`);
              // Above it the server compiles the statement.
              assert.ok(plan['Total Cost'] < 100_000, `a cost of ${plan['Total Cost']}: ${call.sql}`);
            }
          }
        });
      }
    }

    test(`ask the first rows of the list beyond two references: ${when}`, async () => {
      const filter: Filter = {
        ...{ op: 'related', field: fields.categoryId, table: 'categories' },
        filter: {
          ...{ op: 'related', field: fields.parentId, table: 'categories' },
          filter: { op: 'eq', field: fields.name, value: 'n1' },
        },
      };
      const sort = keysBy([fields.id], 'asc');
      const { shape, values } = shapeOfFilter(filter);
      const page = compileFirstRows(namedSelection(shape, sort, 20), { from: 'start' });
      const call = bind(page, sort, { values, position: { from: 'start' } });
      await execute(loaded.client(), call, `first ${when}`);
      const plan = await explain(loaded.client(), call, `first ${when}`);
      for (const scan of scansOf(plan)) assert.match(scan, /^Index (Only )?Scan$/, call.sql);
      assert.ok(visited(plan) <= 3 * 256, `${visited(plan)} rows: ${call.sql}`);
      assert.ok(plan['Total Cost'] < 100_000, `a cost of ${plan['Total Cost']}: ${call.sql}`);
    });
  }
});

type Loaded = { readonly client: () => pg.Client };

/** Has things past the committer, and no autovacuum that could come between. */
function loadedDatabase(declared: readonly Table[], rows: number): Loaded {
  let client: pg.Client | undefined;
  let server: TestDatabase | undefined;
  before(async () => {
    server = await emptyDatabase();
    await openSchema(addressOf(server.url), {
      schema,
      tables: declared,
      observe: () => undefined,
      connectTimeoutMs: 5000,
    });
    client = new pg.Client({ connectionString: server.url });
    await client.connect();
    for (const name of ['things', 'events']) {
      await client.query(`ALTER TABLE ${schema}.${name} SET (autovacuum_enabled = off)`);
    }
    await load(
      client,
      rows,
      `json_build_object('price', CASE WHEN g % 10 < 5 THEN NULL WHEN g % 10 < 9 THEN 1 ELSE g / 100.0 END,
         'name', 'n' || g % 3, 'stock', 1, 'live', g % 2 = 0, 'sku', 's' || g,
         'categoryId', CASE WHEN g % 2 = 0 THEN 'c1' END)`,
    );
  });
  after(async () => {
    await client?.end();
    await server?.dispose();
  });
  return {
    client() {
      if (client === undefined) throw new Error('the database is not open yet');
      return client;
    },
  };
}

async function load(client: pg.Client, rows: number, doc: string, owner = ''): Promise<void> {
  await client.query(
    `INSERT INTO ${schema}.things (id, rev, owner, created_at, updated_at, doc)
     SELECT 'row ' || lpad(g::text, 6, '0'), 1, nullif('${owner}', ''), 1700000000000, 1700000000000, ${doc}
     FROM generate_series(0, ${rows - 1}) g`,
  );
}

function shapeTests({ client }: Loaded): void {
  for (const [what, filter, keys] of shapes) {
    for (const direction of ['asc', 'desc'] as const) {
      test(`walk an index, without sorting, for ${what}, ${direction}`, async () => {
        const sort = keysBy(keys, direction);
        for (const [at, position] of positionsOf(filter, keys).entries()) {
          for (const { limit, whole } of readings) {
            // Their statements differ from those of pages by what they select.
            if (whole && (direction === 'desc' || position.from === 'offset')) continue;
            const call = pageCall(things, filter, sort, position, limit, whole);
            const plan = await kept(client(), call, `page ${at} ${limit}`);
            const skipped = position.from === 'offset' ? position.offset : 0;
            const most = limit + 1 + skipped;
            assert.ok(
              visited(plan) <= most,
              `${visited(plan)} rows, ${JSON.stringify(position)}: ${call.sql}`,
            );
          }
        }
      });
    }
  }
}

/** As a queue is read: the nulls of the category come first in its index. */
function pricesOf(category: string, most: number): Filter {
  const filters: readonly Filter[] = [
    { op: 'eq', field: fields.categoryId, value: category },
    { op: 'lte', field: fields.price, value: most },
  ];
  return { op: 'and', filters };
}

function keysBy(keys: readonly Field[], direction: 'asc' | 'desc'): readonly Sort[] {
  return keys.map((field) => ({ field, direction }));
}

/** No page gives a null as key of rows that a range lets pass. */
function positionsOf(filter: Filter, keys: readonly Field[]): readonly Position[] {
  const prices =
    filter.op === 'gte' || filter.op === 'lte' || filter.op === 'and' ? [1, 150] : [1, null, 150];
  const beyond = prices.flatMap((price): Position[] => {
    const key = keys.map((field) => (field === fields.price ? price : (middle.get(field) ?? 1)));
    return [
      { from: 'after', key },
      { from: 'before', key },
    ];
  });
  return [{ from: 'start' }, { from: 'offset', offset: 40 }, ...beyond];
}

/** A value amid each field's, so that pages in both directions are full or end at the filter. */
const middle = new Map<Field, string | number>([
  [fields.id, 'row 000500'],
  [fields.createdAt, 1_700_000_000_000],
  [fields.name, 'n1'],
  [fields.city, 'nowhere'],
]);

function pageCall(
  table: Table,
  filter: Filter,
  sort: readonly Sort[],
  position: Position,
  limit: number,
  whole = false,
): Call {
  const layout = layoutsOf([table, ...tables.filter(({ name }) => name !== table.name)], schema)[0];
  assert.ok(layout !== undefined);
  const { shape, values } = shapeOfFilter(filter);
  const service = serve(layout, shape, sort);
  assert.ok(service !== undefined && service !== 'never');
  // The most that is put around a walk: it must stay one.
  const octets = whole ? undefined : ({ kind: 'cut', bytesMax: 1_000_000 } as const);
  const common = { layout, schema, tableNumber: 1, relatedNumbers: [], filter: shape, sort };
  const selection = { ...common, rows: limit + 1, whole, heads: false, octets };
  return bind(compileWalk(selection, service, position), sort, { values, position, limit });
}

function layoutNamed(name: string): Layout {
  const layout = namedLayouts.find(({ table }) => table.name === name);
  assert.ok(layout !== undefined);
  return layout;
}

function namedSelection(filter: Shape, sort: readonly Sort[], limit: number): Selection {
  const octets = { kind: 'capped', docBytesMax: 100_000 } as const;
  const common = { layout: layoutNamed('things'), schema, tableNumber: 1, relatedNumbers: [2], filter, sort };
  return { ...common, rows: limit + 1, whole: false, heads: false, octets };
}

function namedCall(filter: Filter, sort: readonly Sort[], position: Position, limit: number): Call {
  const { shape, values } = shapeOfFilter(filter);
  const walk = namedWalkOf(layoutNamed('things'), layoutNamed, shape, sort);
  assert.ok(walk !== undefined);
  const page = compileNamedWalk(namedSelection(shape, sort, limit), walk, position);
  return bind(page, sort, { values, position });
}

/** A lane that answers nothing, and notes what it is asked. */
function noting(calls: Call[]) {
  return {
    async send(call: Call): Promise<readonly []> {
      calls.push(call);
      return [];
    },
  };
}

/** The plan that the server keeps for the call, which it made without looking at the values, is a walk. */
async function kept(client: pg.Client, call: Call, name: string): Promise<Node> {
  await execute(client, call, name);
  const plan = await explain(client, call, name);
  for (const node of nodesOf(plan)) {
    assert.ok(!node['Node Type'].includes('Sort'), `${node['Node Type']}: ${call.sql}`);
  }
  for (const scan of scansOf(plan)) assert.match(scan, /^Index (Only )?Scan$/, call.sql);
  return plan;
}
