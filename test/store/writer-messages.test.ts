/** The encoding of units on their way to the writer of SQLite. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  absentRev,
  charactersPerPiece,
  type EncodedUnits,
  noRevision,
  UnitEncoder,
  UnitReader,
} from '../../src/store/sqlite/writer/writer-messages.ts';
import { type EventEntry, keptRow, type NextRow, type Unit } from '../../src/store/store.ts';

const encoding = { indexOf: new Map([['things', 3]]), revisions: { resolve: (rev: number) => rev } };

const event: EventEntry = {
  ...{ id: 'evt_1', type: 'things.created', collection: 'things', owner: null, doc: '{"é":"\u{1f600}"}' },
  createdAt: 5,
};

function unitOf(id: string, next: NextRow | null, events: readonly EventEntry[] = []): Unit {
  return { changes: [{ table: 'things', id, expect: { absent: true }, next }], events };
}

function sentBy(encoder: UnitEncoder): EncodedUnits {
  const pieces: string[] = [];
  for (;;) {
    const piece = encoder.takePiece();
    if (piece === undefined) break;
    pieces.push(piece);
  }
  const { units, numbers, piecesBefore, lastPiece } = encoder.finish();
  assert.equal(piecesBefore, pieces.length);
  return { units, numbers, pieces: [...pieces, lastPiece] };
}

test('reads what it wrote: texts of any width, nulls, and units that end early', () => {
  const encoder = new UnitEncoder(encoding);
  const next = { ...keptRow('{"a":"ü 漢 \ud800"}', 'ada', 1, 2), references: [{ field: 'of', id: 'x' }] };
  encoder.append(unitOf('one', next, [event]));
  encoder.append({ ...unitOf('', null), provisional: -7 });
  const reader = new UnitReader(structuredClone(sentBy(encoder)));
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

for (const [what, lengths, pieces] of [
  ['as much as a piece', [charactersPerPiece], [charactersPerPiece]],
  ['one character more', [charactersPerPiece, 1], [charactersPerPiece, 1]],
  ['one text of several pieces', [3 * charactersPerPiece, 5], [3 * charactersPerPiece, 5]],
  ['many texts', Array(9).fill(charactersPerPiece / 4), [4, 4, 1].map((of) => (of * charactersPerPiece) / 4)],
] as const) {
  test(`sends a long text in pieces: ${what}`, () => {
    const encoder = new UnitEncoder(encoding);
    const docs = lengths.map((length: number, at: number) => String.fromCharCode(97 + at).repeat(length));
    for (const doc of docs) encoder.append(unitOf('', keptRow(doc, null, 1, 1)));
    const sent = sentBy(encoder);
    assert.deepEqual(
      sent.pieces.map((piece) => piece.length),
      pieces,
    );
    const reader = new UnitReader(sent);
    for (const doc of docs) {
      reader.beginUnit();
      // Its revision, its changes, the change of the row, and the row before its document.
      for (let number = 0; number < 5; number += 1) reader.number();
      assert.equal(reader.text(), '');
      for (let number = 0; number < 4; number += 1) reader.number();
      assert.equal(reader.text(), doc);
      reader.endUnit();
    }
  });
}

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
