/** The encoding of units on their way to the writer of SQLite. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { keptRow } from '../../src/store/kept-row.ts';
import {
  absentRev,
  noRevision,
  UnitEncoder,
  UnitReader,
} from '../../src/store/sqlite/writer/writer-messages.ts';
import type { EventEntry, NextRow, Unit } from '../../src/store/store.ts';

const encoding = { indexOf: new Map([['things', 3]]), revisions: { resolve: (rev: number) => rev } };

const event: EventEntry = {
  ...{ id: 'evt_1', type: 'things.created', collection: 'things', owner: null, doc: '{"é":"\u{1f600}"}' },
  createdAt: 5,
};

function unitOf(id: string, next: NextRow | null, events: readonly EventEntry[] = []): Unit {
  return { changes: [{ table: 'things', id, expect: { absent: true }, next }], events };
}

test('reads what it wrote: texts of any width, nulls, and units that end early', () => {
  const encoder = new UnitEncoder(encoding);
  const next = { ...keptRow('{"a":"ü 漢 \ud800"}', 'ada', 1, 2), references: [{ field: 'of', id: 'x' }] };
  encoder.append(unitOf('one', next, [event]));
  encoder.append({ ...unitOf('', null), provisional: -7 });
  const reader = new UnitReader(structuredClone(encoder.finish()));
  reader.beginUnit();
  assert.deepEqual([reader.number(), reader.number(), reader.number()], [noRevision, 1, 3]);
  assert.deepEqual([reader.number(), reader.number(), reader.text()], [absentRev, 1, 'one']);
  assert.deepEqual([reader.number(), reader.number(), reader.numberOrNull()], [1, 2, null]);
  assert.equal(reader.number(), 1);
  assert.deepEqual([reader.text(), reader.textOrNull(), reader.textOrNull()], [next.doc, 'ada', null]);
  reader.endUnit();
  reader.beginUnit();
  assert.deepEqual([reader.number(), reader.number(), reader.number()], [-7, 1, 3]);
  assert.deepEqual([reader.number(), reader.number(), reader.text()], [absentRev, 0, '']);
  assert.equal(reader.number(), 0);
});

test('appends nothing of a unit with an unknown table or a value that is no text', () => {
  const encoder = new UnitEncoder(encoding);
  encoder.append(unitOf('one', keptRow('{}', null, 1, 1)));
  const foreign = { changes: [{ ...unitOf('two', null).changes[0], table: 'others' }], events: [] } as Unit;
  assert.throws(() => encoder.append(foreign), TypeError);
  const bad = { ...event, doc: undefined } as unknown as EventEntry;
  assert.throws(() => encoder.append(unitOf('two', keptRow('{}', null, 1, 1), [bad])), TypeError);
  const before = new UnitEncoder(encoding);
  before.append(unitOf('one', keptRow('{}', null, 1, 1)));
  assert.deepEqual(encoder.finish(), before.finish());
});
