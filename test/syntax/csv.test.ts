/** Records of CSV (RFC 4180), read and written. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { formatCsvCell, parseCsvRecord, withoutGuard } from '../../src/http/syntax/csv.ts';

const cellsMax = 4;

describe('a record of CSV', () => {
  for (const [text, cells] of [
    ['', ['']],
    ['a,b', ['a', 'b']],
    [' a ,', [' a ', '']],
    ['"a","b,c"', ['a', 'b,c']],
    ['"a ""b""",""', ['a "b"', '']],
    ['"""",","', ['"', ',']],
    ['"a\r\nb",c', ['a\r\nb', 'c']],
    ['1,2,3,4', ['1', '2', '3', '4']],
  ] as const)
    test(`of ${JSON.stringify(text)} has ${cells.length} cells`, () => {
      const row = parseCsvRecord(text, cellsMax);
      assert.deepEqual(row.ok && row.cells.map((cell) => cell.text), cells);
    });

  test('says which cells are quoted', () => {
    const row = parseCsvRecord(',"",a,"a"', cellsMax);
    assert.deepEqual(row.ok && row.cells.map(({ isQuoted }) => isQuoted), [false, true, false, true]);
  });

  for (const [text, column, message] of [
    ['1,2,3,4,5', 5, /more than 4 cells/],
    ['a,"b', 2, /not closed/],
    ['a"b', 1, /quote within it/],
    ['a,"b"c', 2, /text after the quote/],
  ] as const)
    test(`of ${JSON.stringify(text)} is refused at cell ${column}`, () => {
      const row = parseCsvRecord(text, cellsMax);
      assert.ok(!row.ok);
      assert.equal(row.column, column);
      assert.match(row.message, message);
    });
});

test('a cell that is written is read as the value that it was', () => {
  for (const value of [
    '',
    ' a',
    'a"b',
    'a,b',
    '1',
    'true',
    '[1]',
    '=1',
    "'=1",
    "''-1",
    '@',
    "it's",
    '\t',
    'é',
  ]) {
    for (const guard of [true, false]) {
      const row = parseCsvRecord(formatCsvCell(value, guard), cellsMax);
      assert.ok(row.ok);
      const [cell] = row.cells;
      assert.equal(guard ? withoutGuard(cell?.text ?? '') : cell?.text, value);
      const isAmbiguous = ['', '1', 'true', '[1]'].includes(value);
      if (isAmbiguous) assert.equal(cell?.isQuoted, true, value);
    }
  }
  assert.deepEqual(
    [null, undefined, 1.5, true, ['a'], { a: 1 }].map((value) => formatCsvCell(value, true)),
    ['', '', '1.5', 'true', '"[""a""]"', '"{""a"":1}"'],
  );
});
