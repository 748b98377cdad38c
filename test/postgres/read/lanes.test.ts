/** Which lane a read takes, in how many statements, and what it sees. */
import assert from 'node:assert/strict';
import { before, beforeEach, test } from 'node:test';
import { always, type Filter, type Sort } from '../../../src/model/filter.ts';
import { createCompiledShapes } from '../../../src/store/filter-shape.ts';
import { createPointReads, createVersions } from '../../../src/store/postgres/read/point-reads.ts';
import { makePlan } from '../../../src/store/postgres/read/postgres-query.ts';
import { readHead, readTail } from '../../../src/store/postgres/read/tail.ts';
import type { Plan } from '../../../src/store/store.ts';
import { byId, fields, idsOn } from '../../contract/fixture.ts';
import { insertThing, openRead, schema } from './open-read.ts';

const open = await openRead();

before(async () => {
  await open.client.query(
    `INSERT INTO ${schema}.things (id, rev, created_at, updated_at, doc)
     SELECT format('row %s', lpad(g::text, 4, '0')), g, 1, 1, format('{"id":"row %s"}', lpad(g::text, 4, '0'))
     FROM generate_series(1, 1500) g`,
  );
  await open.client.query(`UPDATE ${schema}.comity_counters SET rev = 1500 WHERE name = 'things'`);
});
beforeEach(() => {
  open.sent.read.length = 0;
  open.sent.scan.length = 0;
});

function planOf(filter: Filter, sort: readonly Sort[], limit = 5): Plan {
  const { read, scan, numbers } = open;
  const versions = createVersions(read, numbers, schema);
  const tableNumber = numbers.get('things') ?? 0;
  return makePlan(
    {
      read,
      scan,
      versions,
      layout: open.layoutOf('things'),
      layoutOf: open.layoutOf,
      schema,
      tableNumber,
      relatedNumbers: [],
      shapes: createCompiledShapes(),
      onUnready: () => undefined,
      frequentWords: new Set(),
    },
    { table: 'things', filter, sort, limit },
  );
}

test('reads all rows of a table asked for in one turn by one statement, and each table by its own', async () => {
  const points = createPointReads(open.read, { layouts: open.layouts, numbers: open.numbers, schema });
  const ids = ['row 0001', 'row 0002', 'none', 'row 0001'];
  const rows = await Promise.all([
    ...ids.map((id) => points.read('things', id)),
    points.read('categories', 'c'),
  ]);
  assert.deepEqual(
    rows.map((row) => row?.rev),
    [1, 2, undefined, 1, undefined],
  );
  assert.deepEqual(
    open.sent.read.map(({ values }) => values),
    [[['row 0001', 'row 0002', 'none']], [['c']]],
  );
});

test('reads the many rows that several callers ask for in one turn by one statement, each within its bound', async () => {
  const points = createPointReads(open.read, { layouts: open.layouts, numbers: open.numbers, schema });
  const [one, other, none] = await Promise.all([
    points.readMany('things', ['row 0001', 'row 0002', 'none'], 1000),
    points.readMany('things', ['row 0002', 'row 0003'], 1000),
    points.readMany('things', [], 1000),
  ]);
  assert.deepEqual([...(one?.rows.keys() ?? [])], ['row 0001', 'row 0002']);
  assert.deepEqual([...(other?.rows.keys() ?? [])], ['row 0002', 'row 0003']);
  assert.equal(none?.rows.size, 0);
  assert.equal(open.sent.read.length, 1);
  const { version } = createVersions(open.read, open.numbers, schema);
  for (const found of [one, other, none]) assert.equal(found?.version, await version('things'));

  open.sent.read.length = 0;
  const octets = Buffer.byteLength('{"id":"row 0001"}');
  const bounded = await Promise.all([
    points.readMany('things', ['row 0001', 'row 0002'], 2 * octets - 1),
    points.readMany('things', ['row 0003'], octets),
    points.readMany('things', ['row 0004', 'row 0005'], 2 * octets),
  ]);
  assert.deepEqual(
    bounded.map((found) => found?.rows.size),
    [undefined, 1, 2],
  );
  assert.equal(open.sent.read.length, 4);
});

test('reads the many rows of several callers by as many statements as their ids need', async () => {
  const points = createPointReads(open.read, { layouts: open.layouts, numbers: open.numbers, schema });
  const ids = Array.from({ length: 900 }, (_, at) => `row ${String(at + 1).padStart(4, '0')}`);
  const parts = [ids.slice(0, 200), ids.slice(150, 256), ids.slice(300, 900), ids.slice(0, 1)];
  const found = await Promise.all(parts.map((part) => points.readMany('things', part, 100_000)));
  assert.deepEqual(
    found.map((each) => [...(each?.rows.keys() ?? [])]),
    parts,
  );
  // The first two name 256 ids together; the third takes three statements; the last one waits for none of them.
  assert.deepEqual(
    open.sent.read.map(({ values }) => (values[0] as readonly string[]).length).sort((a, b) => a - b),
    [1, 88, 256, 256, 256],
  );
});

test('reads ids of any characters, and lets none fail the others', async () => {
  const points = createPointReads(open.read, { layouts: open.layouts, numbers: open.numbers, schema });
  const odd = ['"', '\\', '{', '}', ',', 'NULL', "'", ' ', '😀', '\uffff'];
  for (const [index, id] of odd.entries()) await insertThing(open, id, {}, 2000 + index);
  const asked = [...odd, 'a\0b', '\ud800', 'row 0003'];
  const rows = await Promise.all(asked.map((id) => points.read('things', id)));
  assert.deepEqual(
    rows.map((row) => row?.rev),
    [...odd.map((_, index) => 2000 + index), undefined, undefined, 3],
  );
  await open.client.query(`DELETE FROM ${schema}.things WHERE rev >= 2000`);
});

test('sees a row that was committed before the read was called, though the turn had others', async () => {
  const points = createPointReads(open.read, { layouts: open.layouts, numbers: open.numbers, schema });
  const before = points.read('things', 'late');
  await insertThing(open, 'late', {}, 3000);
  const after = points.read('things', 'late');
  await before;
  assert.equal((await after)?.rev, 3000);
  await open.client.query(`DELETE FROM ${schema}.things WHERE id = 'late'`);
});

test('reads the versions of any number of tables in one statement', async () => {
  const versions = createVersions(open.read, open.numbers, schema);
  const found = await Promise.all(['things', 'categories', 'things'].map(versions.version));
  assert.deepEqual(found, [(1500).toString(36), '0', (1500).toString(36)]);
  assert.equal(open.sent.read.length, 1);
  await assert.rejects(versions.version('nowhere'), TypeError);
});

test('reads a bounded page in one statement on the read lane, up to an offset of 1000', async () => {
  const plan = planOf(always, byId);
  assert.deepEqual(idsOn(await plan.page({ from: 'offset', offset: 1000 })).at(0), 'row 1001');
  const page = await plan.page({ from: 'after', key: ['row 1000'] });
  assert.deepEqual(idsOn(page).at(-1), 'row 1005');
  assert.equal(page.version, (1500).toString(36));
  assert.deepEqual([open.sent.read.length, open.sent.scan.length], [2, 0]);
  assert.deepEqual(idsOn(await plan.page({ from: 'offset', offset: 1001 })).at(0), 'row 1002');
  assert.deepEqual([open.sent.read.length, open.sent.scan.length], [2, 1]);
});

test('reads a page that no index serves on the scan lane, planned for its values', async () => {
  const plan = planOf({ op: 'eq', field: fields.city, value: 'x' }, byId);
  const page = await plan.page({ from: 'start' });
  assert.deepEqual([page.docs.length, page.first, page.version], [0, null, (1500).toString(36)]);
  assert.deepEqual([open.sent.read.length, open.sent.scan.length], [0, 1]);
  assert.equal(open.sent.scan[0]?.prepared, false);
});

test('keeps one text for every position of the same shape', async () => {
  const plan = planOf(always, [{ field: fields.price, direction: 'asc' }, ...byId]);
  for (const price of [1, 2.5, 7]) await plan.page({ from: 'after', key: [price, 'row 0001'] });
  await plan.page({ from: 'after', key: [null, 'row 0001'] });
  assert.equal(new Set(open.sent.read.map(({ sql }) => sql)).size, 2);
});

test('reads a tail that filters on the read lane up to 256 revisions behind the head, beyond on the scan lane', async () => {
  const { read, scan, client } = open;
  const sources = { read, scan, layout: open.layoutOf('events'), schema };
  assert.deepEqual(await readHead(sources), { rev: 0, id: '' });
  assert.deepEqual(await readTail(sources, tailOf(0)), []);
  await client.query(
    `INSERT INTO ${schema}.events (id, rev, created_at, updated_at, type, collection, doc)
     SELECT 'evt_' || g, g, 1, 1, 'x', CASE WHEN g % 2 = 0 THEN 'things' ELSE 'notes' END, '{}' FROM generate_series(1, 300) g`,
  );
  assert.deepEqual(await readHead(sources), { rev: 300, id: 'evt_300' });
  open.sent.read.length = 0;
  open.sent.scan.length = 0;
  const near = await readTail(sources, tailOf(44));
  assert.deepEqual([near.length, near[0]?.rev], [128, 46]);
  assert.deepEqual([open.sent.read.length, open.sent.scan.length], [1, 0]);
  const far = await readTail(sources, tailOf(43));
  assert.deepEqual([far.length, far[0]?.rev], [129, 44]);
  assert.equal(open.sent.scan.length, 1);
  assert.equal((await readTail(sources, { ...tailOf(0), filter: always })).length, 300);
  assert.equal(open.sent.scan.length, 1);
});

function tailOf(rev: number) {
  const filter: Filter = { op: 'eq', field: fields.collection, value: 'things' };
  return { after: { rev, id: '\u{10ffff}' }, filter, limit: 1000, bytesMax: undefined };
}
