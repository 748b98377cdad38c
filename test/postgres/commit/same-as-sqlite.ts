/** Random units, committed to both stores in the same batches, and what becomes of them: the same outcomes, and the same rows. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { always } from '../../../src/model/filter.ts';
import { openSqliteStore } from '../../../src/store/sqlite/sqlite-store.ts';
import type { Change, EventEntry, Store, Table, Unit } from '../../../src/store/store.ts';
import { categories, event, fields, nextRow, things } from '../../contract/fixture.ts';
import { freshPlace, rowsOf, startCommitter } from './fixture.ts';

/** Two unique fields of different types, two references, and nothing that refers to it. */
const offers: Table = {
  name: 'offers',
  fields: Object.values(fields),
  indexes: [],
  unique: [
    [fields.name],
    [fields.price],
    [fields.live],
    [fields.owner],
    [fields.price, fields.live],
    [{ ...fields.name, folded: true }, fields.price],
  ],
  references: [
    { field: fields.categoryId, table: 'categories' },
    { field: fields.parentId, table: 'things' },
  ],
  searched: false,
};
/** Refers to nothing and is referred to by nothing: its new rows are made before all else in their unit. */
const notes: Table = { ...offers, name: 'notes', unique: [], references: [] };
const tables = [things, categories, offers, notes];

/** Declares the test of one sequence of units. */
export function sameAsSqlite(seed: number): void {
  test(`comes to the same outcomes and rows as the embedded store (seed ${seed})`, async (context) => {
    const place = await freshPlace(context, tables);
    const { committer } = startCommitter(context, place);
    const folder = mkdtempSync(join(tmpdir(), 'comity-same-'));
    const sqlite = await openSqliteStore({ folder, tables });
    context.after(async () => {
      await sqlite.close();
      rmSync(folder, { recursive: true, force: true });
    });
    await place.look.query('UPDATE comity.comity_counters SET rev = $1 WHERE n = 0', [sqlite.revision()]);
    const random = randomFrom(seed);
    const seen = new Map<string, number>();
    for (let round = 0; round < 120; round += 1) {
      const units = await batchOf(sqlite, random);
      const [expected, actual] = await Promise.all([
        Promise.all(units.map((unit) => sqlite.commit(unit))),
        Promise.all(units.map((unit) => committer.commit(unit))),
      ]);
      assert.deepEqual(actual, expected, `round ${round}: ${JSON.stringify(units)}`);
      for (const { outcome } of expected) seen.set(outcome, (seen.get(outcome) ?? 0) + 1);
      for (const { name } of tables) {
        assert.deepEqual(await rowsOf(place.look, name), await rowsOfStore(sqlite, name), `round ${round}`);
      }
    }
    const tail = await sqlite.tail({ rev: 0, id: '' }, always, 100_000);
    const events = await rowsOf(place.look, 'events');
    assert.deepEqual(
      new Set(events.map(({ id, rev, doc }) => `${id} ${rev} ${doc}`)),
      new Set(tail.map(({ id, rev, doc }) => `${id} ${rev} ${doc}`)),
    );
    for (const outcome of ['committed', 'superseded', 'taken', 'dangling', 'depended-on'] as const) {
      assert.ok((seen.get(outcome) ?? 0) > 10, `${outcome} came up ${seen.get(outcome)} times`);
    }
  });
}

type Random = (below: number) => number;

/** mulberry32 */
function randomFrom(seed: number): Random {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296) * below);
  };
}

async function batchOf(store: Store, random: Random): Promise<readonly Unit[]> {
  const units: Unit[] = [];
  // Mostly few units, as they bear on each other less then.
  const count = 1 + random(random(3) === 0 ? 12 : 3);
  for (let index = 0; index < count; index += 1) units.push(await unitOf(store, random));
  return units;
}

async function unitOf(store: Store, random: Random): Promise<Unit> {
  const changes: Change[] = [];
  const events: EventEntry[] = [];
  const count = random(8) === 0 ? 0 : 1 + random(random(2) === 0 ? 4 : 1);
  for (let index = 0; index < count; index += 1) changes.push(await changeOf(store, random));
  for (let index = random(3); index > 0; index -= 1) events.push(event(`evt_${random(400)}`));
  return { changes, events };
}

async function changeOf(store: Store, random: Random): Promise<Change> {
  const table = tables[random(tables.length)] as Table;
  const id = `${table.name} ${random(7)}`;
  const current = await store.read(table.name, id);
  const kind = random(20);
  // One in twenty changes is made from a state that never was.
  const rev = kind === 0 ? 999_999 : current?.rev;
  const expect = rev === undefined || kind === 1 ? { absent: true as const } : { rev };
  if (random(5) === 0) return { table: table.name, id, expect, next: null };
  const deletedAt = random(6) === 0 ? 1_700_000_000_000 + random(1000) : null;
  const next = nextRow(table, id, bodyOf(table, random), {
    deletedAt,
    owner: random(2) === 0 ? null : `usr_${random(8)}`,
    search: random(2) === 0 ? null : 'found',
  });
  return { table: table.name, id, expect, next };
}

function bodyOf(table: Table, random: Random): Readonly<Record<string, unknown>> {
  const maybe = (value: unknown): unknown => (random(3) === 0 ? (random(2) === 0 ? null : undefined) : value);
  const of = (name: string): string => `${name} ${random(7)}`;
  if (table === things) return { sku: maybe(`ß"\\ ${random(9)}`), categoryId: maybe(of('categories')) };
  if (table === notes) return { name: random(3) };
  if (table === categories) return { name: maybe(random(20)), parentId: maybe(of('categories')) };
  return {
    name: maybe(['a', 'b', 'ab', 'c', '', '\u{10000}', '\uffff'][random(7)]),
    price: maybe([0, -0, 1e21, 1.5, 5e-324, 3, 4, 5][random(8)]),
    live: random(4) === 0 ? random(2) === 0 : undefined,
    categoryId: random(3) === 0 ? of('categories') : undefined,
    parentId: random(3) === 0 ? of('things') : undefined,
  };
}

async function rowsOfStore(store: Store, table: string): Promise<readonly unknown[]> {
  const rows = [];
  for (let index = 0; index < 7; index += 1) {
    const row = await store.read(table, `${table} ${index}`);
    if (row !== undefined) rows.push(row);
  }
  return rows;
}
