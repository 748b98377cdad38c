/** That reads by rows that references name cost what they find, by the steps of SQLite in a table of 20,000 rows. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, before, describe, test } from 'node:test';
import type { Filter, Sort } from '../../src/model/filter.ts';
import { shapeFilter } from '../../src/store/filter-shape.ts';
import { serve, settle } from '../../src/store/serve.ts';
import { encoding } from '../../src/store/sqlite/compile/filter.ts';
import {
  bind,
  compileFewPage,
  compileFirstOnCaller,
  compileFirstRows,
  firstOnCallerMax,
  type PageStatement,
  type Selection,
} from '../../src/store/sqlite/compile/select.ts';
import { relatedSearchOf } from '../../src/store/sqlite/compiled-shape.ts';
import { installDeadline } from '../../src/store/sqlite/reader/deadline.ts';
import { type Layout, layoutsOf } from '../../src/store/sqlite/sqlite-schema.ts';
import type { Position } from '../../src/store/store.ts';
import { byId, categories, fields, nextRow, tables, things } from '../contract/fixture.ts';
import { seedTable } from '../harness/seed-table.ts';

const rowsSeeded = 20_000;
const perCategory = 20;
const limit = 20;

/** What node:sqlite counts of a statement; @types/node does not know it yet. */
type Counted = { stat(counter: 'vmStep'): number };

const layouts = new Map(layoutsOf(tables).map((layout) => [layout.table.name, layout]));
function layoutOf(name: string): Layout {
  const layout = layouts.get(name);
  if (layout === undefined) throw new Error(`no table is named ${name}`);
  return layout;
}

const inParent = (parent: string): Filter => ({
  ...{ op: 'related', field: fields.categoryId, table: 'categories' },
  filter: { op: 'eq', field: fields.parentId, value: parent },
});

const inNamed: Filter = {
  ...{ op: 'related', field: fields.parentId, table: 'categories' },
  filter: { op: 'eq', field: fields.name, value: 'c1' },
};

const positions: readonly Position[] = [
  { from: 'start' },
  { from: 'after', key: ['row 000900'] },
  { from: 'before', key: ['row 019000'] },
];

describe('reads by rows that references name', () => {
  const root = mkdtempSync(join(tmpdir(), 'comity-related-plans-'));
  let database: DatabaseSync;

  before(() => {
    const body = (at: number) => ({ name: `c${at}`, parentId: at % 100 === 7 ? 'few' : 'many' });
    const parents = Array.from({ length: rowsSeeded / perCategory }, (_, at) => {
      const id = `c${String(at).padStart(4, '0')}`;
      return { id, row: nextRow(categories, id, body(at)) };
    });
    const rows = Array.from({ length: rowsSeeded }, (_, at) => {
      const id = `row ${String(at).padStart(6, '0')}`;
      const categoryId = `c${String(at % (rowsSeeded / perCategory)).padStart(4, '0')}`;
      return { id, row: nextRow(things, id, { categoryId, price: at % 7, live: at % 2 === 0 }) };
    });
    seedTable(root, tables, 'categories', parents);
    seedTable(root, tables, 'things', rows);
    database = new DatabaseSync(join(root, 'comity.db'), { readOnly: true });
    installDeadline(database, Number.POSITIVE_INFINITY, new Int32Array(1));
  });

  after(() => {
    database.close();
    rmSync(root, { recursive: true, force: true });
  });

  function selectionOf(filter: Filter, sort: readonly Sort[]): Selection {
    const { shape } = shapeFilter(filter, encoding);
    const common = { layout: layoutOf('things'), filter: shape, sort, service: undefined };
    return { ...common, whole: false, heads: false, timed: true, capped: false };
  }

  function searchOf(filter: Filter, sort: readonly Sort[] = byId) {
    const search = relatedSearchOf(layoutOf('things'), layoutOf, shapeFilter(filter, encoding).shape, sort);
    assert.ok(search !== undefined);
    return search;
  }

  /** @returns the rows, and the steps of SQLite's machine */
  function run(sql: string, values: readonly (string | number | null)[]): [readonly unknown[], number] {
    const prepared = database.prepare(sql);
    return [prepared.all(...values), (prepared as unknown as Counted).stat('vmStep')];
  }

  test('find few rows without a look at any other', () => {
    const filter = inParent('few');
    const { steps = [], countSql, drive } = searchOf(filter);
    assert.equal(steps.length, 1);
    const [named, atFirst] = run(String(steps[0]?.sql), ['few']);
    assert.equal(named.length, 10);
    const ids = JSON.stringify(named.map((row) => (row as { id: string }).id));
    const [[count], atSecond] = run(countSql, [ids]);
    assert.deepEqual(Object.values(count as object), [200]);
    for (const position of positions) {
      const page = compileFewPage(selectionOf(filter, byId), drive, position);
      const { values } = shapeFilter(filter, encoding);
      const asked = { values, position, named: ids, limit: limit + 1 };
      const [rows, atLast] = run(String(page?.sql), bind(page as PageStatement, byId, asked));
      assert.equal(rows.length, limit + 1);
      assert.ok(atFirst + atSecond + atLast < 200 * 60, `${atFirst}, ${atSecond}, ${atLast} steps`);
    }
  });

  test('fill a page from the first rows where many match, and look at no further ones where few do', () => {
    for (const [parent, stepsMost] of [
      ['many', limit * 120],
      ['few', 1024 * 120],
    ] as const) {
      const filter = inParent(parent);
      const { walked } = searchOf(filter);
      for (const position of positions) {
        const page = compileFirstRows(selectionOf(filter, byId), String(walked), position);
        const { values } = shapeFilter(filter, encoding);
        const [rows, steps] = run(
          String(page?.sql),
          bind(page as PageStatement, byId, { values, position, limit: limit + 1 }),
        );
        assert.equal(rows.length === limit + 1, parent === 'many');
        assert.ok(steps < stepsMost, `${steps} steps for ${parent}`);
      }
    }
  });

  test('ask a few of the first rows on the calling thread, by indexes and short documents alone', () => {
    const isLive: Filter = { op: 'eq', field: fields.live, value: true };
    for (const [parent, filter, stepsMost] of [
      ['many', inParent('many'), limit * 120],
      ['many', { op: 'and', filters: [inParent('many'), isLive] }, 2 * limit * 120],
      ['few', inParent('few'), firstOnCallerMax * 120],
    ] as const) {
      const { drive, walked, named } = searchOf(filter);
      assert.ok(walked !== undefined && named !== undefined);
      for (const position of positions) {
        const by = { drive, by: named, index: walked };
        const page = compileFirstOnCaller(selectionOf(filter, byId), by, position);
        const { values } = shapeFilter(filter, encoding);
        const asked = { values, position, limit: limit + 1, docBytesMax: 4096 };
        const sql = String(page?.sql);
        const [rows, steps] = run(sql, bind(page as PageStatement, byId, asked));
        assert.equal(rows.length === limit + 1, parent === 'many');
        assert.ok(steps < stepsMost, `${steps} steps for ${parent}`);
        const plan = database.prepare(`EXPLAIN QUERY PLAN ${sql}`);
        const looks = plan
          .all(...bind(page as PageStatement, byId, asked))
          .map(({ detail }) => String(detail));
        assert.ok(
          looks.some((look) =>
            /USING INDEX categories.index\["parentId"\] \(<expr>=\? AND id=\?\)/.test(look),
          ),
          looks.join('; '),
        );
        // Of longer documents only the place is known.
        const omitted = run(sql, bind(page as PageStatement, byId, { ...asked, docBytesMax: 10 }))[0];
        assert.deepEqual(
          omitted.map((row) => (row as { [column: string]: unknown })[Object.keys(row as object)[0] ?? '']),
          Array.from({ length: limit + 1 }, () => ''),
        );
      }
    }
    const byName: Filter = { op: 'related', field: fields.categoryId, table: 'categories', filter: inNamed };
    assert.equal(searchOf(byName).named, undefined);
    const like: Filter = { op: 'like', field: fields.name, pattern: 'a%' };
    assert.equal(searchOf({ op: 'and', filters: [inParent('few'), like] }).named, undefined);
  });

  test('begin on the calling thread only where no value of a document is read', () => {
    const isLive: Filter = { op: 'eq', field: fields.live, value: true };
    const owned: Filter = { op: 'eq', field: fields.owner, value: 'ada' };
    const all = (...filters: readonly Filter[]): Filter => ({ op: 'and', filters });
    const named = (...filters: readonly Filter[]): Filter =>
      ({ ...inParent('few'), filter: all(...filters) }) as Filter;
    const ofFew: Filter = { op: 'eq', field: fields.parentId, value: 'few' };
    assert.ok(searchOf(all(inParent('few'), owned)).steps !== undefined);
    assert.equal(searchOf(all(inParent('few'), isLive)).steps, undefined);
    assert.equal(searchOf(named(ofFew, owned)).steps, undefined);
    assert.equal(
      searchOf(inParent('few'), [{ field: fields.price, direction: 'asc' }, ...byId]).steps,
      undefined,
    );
  });

  test('have no way but a walk without an index of the value, or without a conjunction', () => {
    const search = (filter: Filter) =>
      relatedSearchOf(layoutOf('things'), layoutOf, shapeFilter(filter, encoding).shape, byId);
    const byStock: Filter = {
      ...inParent('few'),
      filter: { op: 'eq', field: fields.stock, value: 1 },
    } as Filter;
    assert.equal(search(byStock), undefined);
    assert.equal(search({ op: 'not', filter: inParent('few') }), undefined);
    assert.equal(search({ op: 'or', filters: [inParent('few'), inParent('many')] }), undefined);
  });

  test('decide a condition once where the filter fixes the reference, and walk the index of the rest', () => {
    const ofOne: Filter = { op: 'eq', field: fields.categoryId, value: 'c0007' };
    const { shape } = shapeFilter({ op: 'and', filters: [ofOne, inParent('few')] }, encoding);
    const { rest, gate } = settle(shape);
    assert.equal(gate.op, 'related');
    const service = serve(layoutOf('things'), rest, [{ field: fields.price, direction: 'asc' }, ...byId]);
    assert.equal(typeof service === 'object' && service.index, 'things.index["categoryId","price"]');
  });
});
