/** What a batch without judgement sends: how many statements, in which order. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ProvisionalRevisions } from '../../../src/store/lines.ts';
import { commitTables, resolveUnit } from '../../../src/store/postgres/commit/commit-table.ts';
import { boldChanges } from '../../../src/store/postgres/commit/flight.ts';
import { layoutsOf } from '../../../src/store/postgres/schema/schema-layout.ts';
import type { Unit } from '../../../src/store/store.ts';
import { categories, event, notes, put, remove, suiteTables, things, unit } from '../../contract/fixture.ts';
import { numbers } from './pure.ts';

const tables = commitTables(layoutsOf(suiteTables, 'comity'), new Map([...numbers, ['notes', 4]]), 'comity');
const byName = new Map(tables.map((table) => [table.layout.table.name, table]));

test('makes an event with a thousand deliveries in as many statements as one with one', () => {
  const withNotes = (count: number): Unit =>
    unit(
      put(things, 'a', {}),
      ...Array.from({ length: count }, (_, index) => put(notes, `n${index}`, {})),
      event('e'),
    );
  assert.deepEqual(sent(withNotes(1000)), sent(withNotes(1)));
  assert.deepEqual(sent(withNotes(1000)), ['insert things', 'insert notes', 'append events']);
});

test('makes a change of a row and a new one beside it in one stage', () => {
  const units = [1, 2, 3].map((at) => unit(put(things, `t${at}`, {}, at), put(notes, `n${at}`, {})));
  assert.deepEqual(sent(...units), ['insert notes', 'update things']);
});

test('keeps the order of changes that others of their unit may depend on', () => {
  const changes = unit(
    put(categories, 'c', {}),
    put(things, 'a', { categoryId: 'c' }),
    put(notes, 'n', {}),
    remove(notes, 'o', 1),
  );
  assert.deepEqual(sent(changes), [
    'insert categories',
    'insert notes',
    'expectLive categories',
    'insert things',
    'remove notes',
  ]);
});

test('asks whether a row is absent after it was made, never before', () => {
  const asked = { table: 'notes', id: 'n', expect: { absent: true as const }, next: null };
  assert.deepEqual(sent({ changes: [put(notes, 'n', {}), asked], events: [] }), [
    'insert notes',
    'expectAbsent notes',
  ]);
});

/** Kind and table of each statement. */
function sent(...units: readonly Unit[]): readonly string[] {
  const { calls } = boldChanges(
    units.map((each) => resolveUnit(each, byName, new ProvisionalRevisions())),
    tables,
  );
  return calls.map(({ sql }) => {
    for (const { layout, statements } of tables) {
      const kind = Object.entries(statements).find(([, text]) => text === sql)?.[0];
      if (kind !== undefined) return `${kind} ${layout.table.name}`;
    }
    throw new Error(`no statement of a table: ${sql}`);
  });
}
